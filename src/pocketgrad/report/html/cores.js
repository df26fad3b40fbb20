// How busy every core was over three steps: a row per core, its height the share of time it worked.
"use strict";
function cores() {
  const c = P.cores, made = section("cores", "Cores over three steps", [], c.note);
  if (!c.rows.length) { made.append(absent(c.absent)); return; }
  const canvas = el("canvas", { role: "img", "aria-label": `utilisation of ${c.rows.length} cores over three steps; the numbers are in the table below` });
  made.append(el("div", { class: "canvas" }, canvas), folded("Table: utilisation by core and step", () =>
    table([{ name: "core" }, ...c.steps.map((s) => ({ name: `step ${s.number}`, n: true })), { name: "all measured steps", n: true }],
      c.rows.map((r) => [r.name, ...r.bySteps.map((v) => si(v, "%")), si(r.all, "%")]))));
  const [a, b] = c.window;
  let left = 0, wide = 0, row = 0;
  const draw = () => {
    row = c.rows.length > 24 ? 15 : c.rows.length > 8 ? 22 : 34;
    const [pen, width] = prepare(canvas, AXIS + c.rows.length * (row + 3) + 2);
    left = 58;
    wide = width - left - 48;
    const x = (t) => left + (t - a) / (b - a) * wide;
    c.rows.forEach((r, i) => {
      const top = AXIS + i * (row + 3);
      pen.fillStyle = theme.faint;
      pen.fillRect(left, top, wide, row);
      pen.fillStyle = theme.colours[0];
      r.t.forEach((t, k) => {
        if (r.v[k] === null) return;
        const x0 = Math.max(left, x(t)), x1 = Math.min(left + wide, x(k + 1 < r.t.length ? r.t[k + 1] : b)), high = r.v[k] / 100 * row;
        if (x1 > x0) pen.fillRect(x0, top + row - high, x1 - x0 + 0.3, high);
      });
      pen.fillStyle = theme.quiet;
      pen.textAlign = "left";
      pen.fillText(clip(pen, r.name, left - 6), 0, top + row / 2);
      pen.textAlign = "right";
      pen.fillText(r.mean === null ? "–" : `${Math.round(r.mean)} %`, width - 2, top + row / 2);
    });
    pen.textAlign = "center";
    c.steps.forEach((s, i) => {
      const at = x(s.start), end = x(s.end);
      pen.fillStyle = theme.text;
      pen.fillRect(Math.round(at), AXIS - 5, 1, canvas.clientHeight);
      if (i === c.steps.length - 1) pen.fillRect(Math.round(end), AXIS - 5, 1, canvas.clientHeight);
      pen.fillStyle = theme.quiet;
      const text = clip(pen, `step ${s.number} · ${duration(s.end - s.start)}`, end - at - 6);
      pen.fillText(text, (at + end) / 2, AXIS / 2 - 2);
    });
    pen.textAlign = "right";
    pen.fillText("mean", canvas.clientWidth - 2, AXIS / 2 - 2);
    canvas.dataset.drawn = "true";
  };
  chart(draw);
  canvas.addEventListener("pointermove", (e) => {
    const i = Math.floor((e.offsetY - AXIS) / (row + 3)), r = c.rows[i], t = a + (e.offsetX - left) / wide * (b - a);
    if (!r || t < a || t > b) { hideTip(); return; }
    const k = lower(r.t, t + 1) - 1;
    showTip(e.clientX, e.clientY, [r.name, k < 0 || r.v[k] === null ? "no sample here" : `busy ${si(r.v[k], "%")}`, `at ${duration(t - a)} of these steps`]);
  });
  canvas.addEventListener("pointerleave", hideTip);
}
