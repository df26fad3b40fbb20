// Line charts with uPlot: memory over the step, samples over the run.
"use strict";
function axisOf(unit, size) {
  return { stroke: theme.quiet, grid: { stroke: theme.grid, width: 1 }, ticks: { stroke: theme.grid, width: 1, size: 4 }, font: theme.font, size,
    values: (u, found) => tickTexts(found, unit) };
}

// x in ns for times, plain for counts. series: [{name, v, hue, dash, stack}]
function curves(holder, spec) {
  const drawn = el("div", {});
  holder.append(drawn);
  let plot = null;
  chart(() => {
    if (plot) plot.destroy();
    const width = drawn.clientWidth, stepped = uPlot.paths.stepped({ align: 1 });
    const stroke = (s) => theme.colours[s.hue % COLOURS];
    plot = new uPlot({
      width, height: spec.height || 210, cursor: { y: false, points: { size: 6 }, sync: spec.sync ? { key: spec.sync } : undefined, drag: { x: true, y: false } },
      scales: { x: { time: false, range: spec.range ? () => spec.range() : undefined }, y: { range: (u, low, high) => spec.zero === false ? [low - (high - low || 1) * 0.1, high + (high - low || 1) * 0.1] : [0, (high || 1) * 1.06] } },
      axes: [{ ...axisOf(spec.xUnit, 30), space: 76, incrs: spec.xUnit === "" ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] : undefined }, { ...axisOf(spec.unit, 66), space: 34 }],
      legend: { live: true },
      series: [{ label: spec.xLabel, value: (u, v) => v === null ? "–" : show(v, spec.xUnit) },
        ...spec.series.map((s) => ({ label: s.name, stroke: stroke(s), width: 1.6, dash: s.dash, paths: stepped, points: { show: false }, spanGaps: false,
          fill: s.fill ? stroke(s) : undefined, value: (u, v, i, at) => at === null || at === undefined ? "–" : show(s.own ? s.own[at] : v, spec.unit) }))],
      bands: spec.bands, hooks: { draw: [spec.mark || (() => {})] },
    }, [spec.x, ...spec.series.map((s) => s.v)], drawn);
    drawn.dataset.drawn = "true";
  });
}

// All series on the union of their times: what was said last holds until the next.
function joined(list) {
  const x = [...new Set(list.flatMap((s) => [...s.t, s.until]))].sort((a, b) => a - b);
  return [x, list.map((s) => {
    let at = -1;
    return x.map((t) => {
      while (at + 1 < s.t.length && s.t[at + 1] <= t) at += 1;
      return at < 0 || t > s.until ? null : s.v[at];
    });
  })];
}

// The measured steps as a faint background, so that samples and steps can be seen together.
function shadeSteps(u) {
  const pen = u.ctx;
  pen.save();
  pen.globalCompositeOperation = "destination-over";
  pen.fillStyle = theme.faint;
  const kept = P.steps.filter((s) => !s.discarded);
  if (kept.length && kept.length <= 400) for (const s of kept) if (s.number % 2) {
    const a = Math.max(u.bbox.left, u.valToPos(s.start, "x", true)), b = Math.min(u.bbox.left + u.bbox.width, u.valToPos(s.end, "x", true));
    if (b > a) pen.fillRect(a, u.bbox.top, b - a, u.bbox.height);
  }
  pen.restore();
}

function seriesTable(list, unit) {
  return folded("Table: these series", () => table([{ name: "series", cls: "name" }, { name: "of" }, { name: "least", n: true }, { name: "median", n: true }, { name: "most", n: true }, { name: "refresh", n: true }, { name: "basis" }, { name: "source", cls: "name" }],
    list.map((s) => [s.name, s.scope, si(s.least, unit), si(s.median, unit), si(s.most, unit), s.refresh ? duration(s.refresh) : "–", s.basis, s.source])));
}

function sampled(holder, group) {
  holder.append(el("h3", {}, group.title));
  if (!group.series.length) { holder.append(absent(group.absent)); return; }
  const [x, columns] = joined(group.series);
  curves(holder, { x, unit: group.unit, xUnit: "ns", xLabel: "time", zero: group.zero, mark: shadeSteps, sync: "samples",
    series: group.series.map((s, i) => ({ name: s.name, v: columns[i], hue: i, dash: i >= COLOURS ? [6, 4] : undefined })) });
  if (group.note) holder.append(el("p", { class: "note" }, group.note));
  holder.append(seriesTable(group.series, group.unit));
}

function memory() {
  const m = P.memory, made = section("memory", "Memory", [], m.note), pair = el("div", { class: "pair" });
  made.append(pair);
  const left = el("div", {}, el("h3", {}, "In use by kind over one step, from the plan")), right = el("div", {});
  pair.append(left, right);
  if (m.kinds.length) {
    const sums = m.kinds[0].v.map(() => 0), stacked = m.kinds.map((k) => k.v.map((v, i) => (sums[i] += v)));
    const order = m.kinds.map((k, i) => i).reverse();  // the highest sum is painted first
    curves(left, { x: m.x, unit: "B", xUnit: m.xUnit, xLabel: m.xLabel, series: order.map((i) => ({ name: m.kinds[i].name, v: stacked[i], own: m.kinds[i].v, hue: i, fill: true })) });
    left.append(folded("Table: bytes by kind", () => table([{ name: "kind" }, { name: "at the peak", n: true }, { name: "least", n: true }, { name: "most", n: true }], m.table.map((r) => [r[0], ...r.slice(1).map((v) => si(v, "B"))]))));
  } else left.append(absent(m.absent));
  sampled(right, m.process);
}
