// Arithmetic per byte against arithmetic per second, under the ceilings measured on this device.
"use strict";
function roofline() {
  const r = P.roofline, made = section("roofline", "Roofline", [], r.note);
  if (!r.points.length) { made.append(absent(r.absent)); return; }
  const drawn = el("div", {}), legend = el("ul", { class: "legend" });
  made.append(drawn, legend, folded("Table: launches and ceilings", () => el("div", {},
    table([{ name: "launch", cls: "name" }, { name: "layer", cls: "name" }, { name: "phase" }, { name: "flop/B", n: true }, { name: "flop/s", n: true }, { name: "B/s", n: true }, { name: "time", n: true }, { name: "of the ceiling", n: true }],
      r.points.map((p) => [p.name, p.scope, p.phase, digits(p.x), si(p.y), si(p.bps), duration(p.ns), percent(p.reached)])),
    table([{ name: "ceiling" }, { name: "best", n: true }, { name: "how it was measured", cls: "name" }], r.ceilings.map((c) => [c.name, si(c.per_s, c.unit), c.how])))));
  const flops = r.ceilings.find((c) => c.unit === "flop/s"), bytes = r.ceilings.find((c) => c.unit === "B/s");
  const roof = (x) => Math.min(flops ? flops.per_s : Infinity, bytes ? bytes.per_s * x : Infinity);
  const shown = r.points.filter((p) => p.shown), most = Math.max(...shown.map((p) => p.ns));
  const groups = P.topOps.slice(0, 6).map((name) => shown.filter((p) => p.op === name));
  const rest = shown.filter((p) => !P.topOps.slice(0, 6).includes(p.op));
  const sets = [...groups, rest];
  const radius = (p) => 3 + 11 * Math.sqrt(p.ns / most);
  let plot = null, places = [];
  chart(() => {
    if (plot) plot.destroy();
    const hues = sets.map((s, i) => theme.colours[i < groups.length ? i : COLOURS - 2]);
    const xs = shown.map((p) => p.x), ys = shown.map((p) => p.y);
    const knee = flops && bytes ? [flops.per_s / bytes.per_s] : [];
    const span = (list, low, high) => [10 ** Math.floor(Math.log10(Math.min(...list)) - low), 10 ** Math.ceil(Math.log10(Math.max(...list)) + high)];
    const [x0, x1] = span([...xs, ...knee], 0.05, 0.05), [y0, y1] = span([...ys, ...(flops ? [flops.per_s] : [])], 0.05, 0.3);
    places = [];
    const paint = (u) => {
      const pen = u.ctx, ratio = devicePixelRatio || 1;
      pen.save();
      pen.beginPath();
      pen.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      pen.clip();
      drawRoof(u, pen, ratio, [x0, x1], [y0, y1], roof);
      places = [];
      sets.forEach((set, i) => {
        for (const p of [...set].sort((a, b) => b.ns - a.ns)) {
          const px = u.valToPos(p.x, "x", true), py = u.valToPos(p.y, "y", true), size = radius(p);
          pen.beginPath();
          pen.arc(px, py, size * ratio, 0, 7);
          pen.globalAlpha = 0.62;
          pen.fillStyle = hues[i];
          pen.fill();
          pen.globalAlpha = 1;
          pen.lineWidth = ratio;
          pen.strokeStyle = theme.panel;
          pen.stroke();
          places.push([px / ratio - u.bbox.left / ratio, py / ratio - u.bbox.top / ratio, size, p]);
        }
      });
      nameRoof(u, pen, ratio, [x0, x1], [y0, y1]);
      pen.restore();
    };
    const powers = (u, found) => found.map((v) => { if (v === null) return ""; const l = Math.log10(v); return Math.abs(l - Math.round(l)) > 1e-6 ? "" : v < 1 ? String(Number(v.toPrecision(3))) : brief(si(v)); });
    const axis = (label) => ({ stroke: theme.quiet, grid: { stroke: theme.grid, width: 1 }, ticks: { show: false }, font: theme.font, labelFont: theme.font, label, labelSize: 20, values: powers });
    plot = new uPlot({ width: drawn.clientWidth, height: drawn.clientWidth < 560 ? 320 : 400, legend: { show: false }, cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, distr: 3, range: () => [x0, x1] }, y: { distr: 3, range: () => [y0, y1] } },
      axes: [{ ...axis("flop per byte"), size: 28 }, { ...axis("flop per second"), size: 58 }],
      series: [{}, { stroke: "transparent", points: { show: false } }], hooks: { draw: [paint] } },
    [[x0, x1], [y0, y0]], drawn);
    plot.over.addEventListener("pointermove", (e) => {
      const found = places.findLast(([x, y, s]) => Math.hypot(e.offsetX - x, e.offsetY - y) <= s + 2);
      if (!found) { hideTip(); return; }
      const p = found[3];
      showTip(e.clientX, e.clientY, [p.name, `${p.phase}${p.scope ? ` · ${p.scope}` : ""}`, `${si(p.y, "flop/s")} at ${digits(p.x)} flop/B, ${duration(p.ns)} a step`, `${percent(p.reached)} of the ceiling there`]);
    });
    plot.over.addEventListener("pointerleave", hideTip);
    legend.replaceChildren(...sets.map((s, i) => s.length ? el("li", {}, el("i", { style: `background:${hues[i]}` }), i < groups.length ? P.topOps[i] : "other operations") : null).filter(Boolean),
      el("li", {}, "area: time in the step"));
    drawn.dataset.drawn = "true";
  });

  function drawRoof(u, pen, ratio, [x0, x1], [y0, y1], top) {
    if (!flops && !bytes) return;
    pen.strokeStyle = theme.text;
    pen.lineWidth = 1.6 * ratio;
    pen.beginPath();
    const N = 200;
    for (let i = 0; i <= N; i += 1) {
      const x = x0 * (x1 / x0) ** (i / N), px = u.valToPos(x, "x", true), py = u.valToPos(Math.max(top(x), y0 / 10), "y", true);
      if (i) pen.lineTo(px, py); else pen.moveTo(px, py);
    }
    pen.stroke();
  }

  function nameRoof(u, pen, ratio, [x0, x1], [y0, y1]) {
    const say = (text, x, y) => { pen.strokeText(text, x, y); pen.fillText(text, x, y); };
    pen.fillStyle = theme.text;
    pen.strokeStyle = theme.panel;
    pen.lineWidth = 4 * ratio;
    pen.lineJoin = "round";
    pen.font = `${11.5 * ratio}px ${theme.font.slice(theme.font.indexOf(" ") + 1)}`;
    if (flops) {
      pen.textAlign = "right";
      pen.textBaseline = "bottom";
      say(`${si(flops.per_s, "flop/s")} measured`, u.bbox.left + u.bbox.width - 6 * ratio, u.valToPos(flops.per_s, "y", true) - 4 * ratio);
    }
    if (bytes) {
      const low = Math.max(x0, y0 / bytes.per_s), knee = Math.min(x1, flops ? flops.per_s / bytes.per_s : x1), from = low * (knee / low) ** 0.45, a = [u.valToPos(from, "x", true), u.valToPos(from * bytes.per_s, "y", true)];
      const b = [u.valToPos(from * 2, "x", true), u.valToPos(from * 2 * bytes.per_s, "y", true)];
      pen.save();
      pen.translate(a[0], a[1]);
      pen.rotate(Math.atan2(b[1] - a[1], b[0] - a[0]));
      pen.textAlign = "left";
      pen.textBaseline = "bottom";
      say(`${si(bytes.per_s, "B/s")} measured`, 8 * ratio, -4 * ratio);
      pen.restore();
    }
  }
}
