// Puts the page together, in the order people ask: what, when, where, how near the ceiling, at what cost.
"use strict";
function head() {
  document.getElementById("title").textContent = P.title;
  document.getElementById("subtitle").textContent = P.subtitle;
  document.getElementById("footer").textContent = P.footer;
  const main = document.getElementById("main");
  for (const text of P.warnings) main.append(el("p", { class: "warn", role: "note" }, text));
  main.append(el("div", { class: "tiles" }, ...P.tiles.map((t) =>
    el("div", { class: t.absent ? "tile none" : "tile" }, el("span", {}, t.label), el("b", {}, t.value), el("span", {}, t.note)))));
}

function sensors() {
  const made = section("sensors", "Samples over the run", [], P.sensorsNote), pair = el("div", { class: "pair" });
  made.append(pair);
  for (const group of P.sensors) { const holder = el("div", {}); pair.append(holder); sampled(holder, group); }
}

function energy() {
  const e = P.energy, made = section("energy", "Energy", [], e.note);
  if (!e.rows.length) { made.append(absent(e.absent)); return; }
  made.append(table([{ name: "channel", cls: "name" }, { name: "of" }, { name: "a step", n: true }, { name: "mean power", n: true }, { name: "all measured steps", n: true }, { name: "error", n: true }, { name: "known by" }, { name: "equation 4", n: true }],
    e.rows.map((r) => [el("span", {}, r.channel, r.main ? " (shared out to operations)" : ""), r.scope, si(r.step_j, "J"), si(r.mean_w, "W"), si(r.joules, "J"), r.error_j === null ? "–" : `± ${si(r.error_j, "J")}`, el("span", { title: r.note }, r.known), si(r.paper_j, "J")])));
}

function cost() {
  const made = section("cost", "What profiling cost", [], P.cost.note);
  made.append(table([{ name: "" }, { name: "", cls: "name" }], P.cost.rows));
  if (P.metrics.length) {
    made.append(folded("Table: metrics of the run, those of the papers beside corrected ones", () => table([{ name: "metric", cls: "name" }, { name: "value", n: true }, { name: "defined" }, { name: "how", cls: "name" }],
      P.metrics.map((m) => [m.name, m.value === null ? "not available" : m.unit === "ns" ? duration(m.value) : si(m.value, m.unit), m.paper ? "as in the paper" : "here", m.how]))));
  }
}

function about() {
  const made = section("about", "Device, versions, sources");
  const half = Math.ceil(P.metadata.length / 2), grid = (rows) => el("div", {}, el("table", {}, el("tbody", {}, ...rows.map(([k, v]) => el("tr", {}, el("td", {}, k), el("td", {}, v))))));
  made.append(el("div", { class: "kv" }, grid(P.metadata.slice(0, half)), grid(P.metadata.slice(half))));
  if (P.absent.length) made.append(el("h3", {}, "Not available on this device"), absent(P.absent));
  made.append(folded(`Table: all ${P.channels.length} channels that were sampled`, () => table([{ name: "channel", cls: "name" }, { name: "of" }, { name: "unit" }, { name: "kind" }, { name: "basis" }, { name: "samples", n: true }, { name: "refresh", n: true }, { name: "last", n: true }, { name: "source", cls: "name" }],
    P.channels.map((c) => [c.name, c.scope, c.unit, c.kind, c.basis, String(c.samples), c.refresh ? duration(c.refresh) : "–", si(c.last, c.unit === "ns" ? "" : c.unit), c.source]))));
}

readTheme();
head();
new Timeline();
breakdown();
roofline();
cores();
memory();
sensors();
energy();
cost();
about();
drawAll();
let width = innerWidth, waiting = 0;
addEventListener("resize", () => {
  if (innerWidth === width) return;  // a phone's address bar comes and goes
  width = innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(drawAll, 80);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// uPlot draws after this script: ready is what has been painted.
requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = "true"; }));
