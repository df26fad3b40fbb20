// Where the time, bytes, arithmetic and joules go, by operation, layer, phase or kind of work: a table whose bars are the chart.
"use strict";
function breakdown() {
  const state = { group: "op", measure: "ns", all: false }, SHORT = 14;
  const body = el("div", {});
  const measures = P.measures.map((m) => ({ key: m.key, text: m.label, off: m.absent }));
  const made = section("breakdown", "Breakdown", [
    choice("by", P.groups.map((g) => ({ key: g.key, text: g.label })), state.group, (k) => { state.group = k; state.all = false; draw(); }),
    choice("of", measures, state.measure, (k) => { state.measure = k; draw(); })], P.breakdownNote);
  made.append(body);

  function draw() {
    const group = P.groups.find((g) => g.key === state.group), measure = P.measures.find((m) => m.key === state.measure);
    const value = (row) => row[measure.key] ?? 0;
    const rows = [...group.rows].sort((a, b) => value(b) - value(a));
    const total = rows.reduce((s, r) => s + value(r), 0), most = Math.max(...rows.map(value), 1e-300);
    const fits = rows.length <= SHORT + 3, shown = state.all || fits ? rows : rows.slice(0, SHORT);
    const joules = measure.key === "joules";
    const columns = [{ name: group.label, cls: "name" }, { name: "", cls: "bar" }, { name: measure.column, n: true }, { name: "share", n: true }];
    if (measure.key === "ns") columns.push({ name: "quarter to quarter", n: true, cls: "wide" });
    if (joules) columns.push({ name: "error", n: true }, { name: "known by" });
    else columns.push({ name: "flop/s", n: true, cls: "wide" }, { name: "B/s", n: true, cls: "wide" });
    columns.push({ name: "launches", n: true, cls: "wide" });
    const cells = shown.map((r, i) => {
      const hue = group.key === "phase" ? P.phases.indexOf(r.name) : r.work === "gap" ? 6 : 0;
      const bar = el("i", { style: `width:${Math.max(0.4, 100 * value(r) / most)}%;background:${theme.colours[(hue < 0 ? 6 : hue) % COLOURS]}` });
      const line = [el("span", {}, breakable(r.name), r.shared ? el("span", { class: "none", title: "a part of it is a share, by cost, of launches with other operations" }, " *") : null),
        bar, r[measure.key] === null ? "–" : show(r[measure.key], measure.unit), total ? percent(value(r) / total) : "–"];
      if (measure.key === "ns") line.push(r.low === null ? "–" : `${duration(r.low)} – ${duration(r.high)}`);
      if (joules) line.push(r.error_j === null ? "–" : `± ${si(r.error_j, "J")}`, r.known);
      else line.push(r.ns && r.work !== "gap" ? si(r.flops / r.ns * 1e9) : "–", r.ns && r.work !== "gap" ? si(r.nbytes / r.ns * 1e9) : "–");
      line.push(String(r.launches));
      return line;
    });
    const grid = table(columns, cells);
    columns.forEach((c, i) => { if (c.cls === "wide") for (const row of grid.querySelectorAll("tr")) row.children[i].classList.add("wide"); });
    const more = !fits ? el("button", { type: "button", onclick: () => { state.all = !state.all; draw(); } },
      state.all ? "show fewer" : `show all ${rows.length} (the other ${rows.length - SHORT}: ${show(rows.slice(SHORT).reduce((s, r) => s + value(r), 0), measure.unit)})`) : null;
    const shared = shown.some((r) => r.shared);
    body.replaceChildren(grid, ...(more ? [el("p", {}, more)] : []),
      ...(shared ? [el("p", { class: "note" }, "* A part of this time is a share, by cost, of launches that do several operations at once; it was not measured apart.")] : []),
      ...(P.measures.some((m) => m.absent) ? [absent(P.measures.filter((m) => m.absent).map((m) => [m.label, m.absent]))] : []));
    made.dataset.drawn = "true";
  }
  chart(draw);
}
