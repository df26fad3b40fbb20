// The timeline: steps, phases, layers, launches by queue, host work, and samples under them, on one axis.
"use strict";
const NOTHING_CHOSEN = "Click a slice, or press ] with the timeline in focus, for its bytes, arithmetic and shares.";
const ROW = 20, GAP = 3, STRIP = 34, AXIS = 22;

// Columns {start, end, ...} of runs of neighbours that `key` calls equal, such as all launches of a layer.
function runs(events, mine, key) {
  const made = { start: [], end: [], of: [], count: [] };
  let last = null;
  for (const i of mine) {
    const now = key(i);
    if (now === last && now !== null) {
      made.end[made.end.length - 1] = Math.max(made.end.at(-1), events.ends[i]);
      made.count[made.count.length - 1] += 1;
    } else if (now !== null) {
      made.start.push(events.starts[i]); made.end.push(events.ends[i]); made.of.push(i); made.count.push(1);
    }
    last = now;
  }
  return made;
}

function readEvents() {
  const e = P.events, launch = e.launch, step = e.step, starts = [], ends = [];
  let t = 0;
  for (let i = 0; i < launch.length; i += 1) { t += e.start[i]; starts.push(t); ends.push(t + e.dur[i]); }
  return { launch, step, lane: e.lane, starts, ends };
}

function timelineRows(events) {
  const at = (i) => P.launches[events.launch[i]], rows = [];
  const steps = P.steps;
  rows.push({ name: "step", start: steps.map((s) => s.start), end: steps.map((s) => s.end),
    text: (i) => `step ${steps[i].number}${steps[i].discarded ? " (warm-up)" : ""}`,
    colour: (i) => steps[i].number % 2 ? 6 : 5,
    tell: (i) => [`Step ${steps[i].number}${steps[i].discarded ? ", a warm-up: not in the statistics" : ""}`,
      `${duration(steps[i].end - steps[i].start)}, of which launches ran ${duration(steps[i].busy)}`] });
  const phases = P.phases, hue = (l) => phases.indexOf(l.phase);
  const grouped = (mine, name, key, text) => {
    const made = runs(events, mine, (i) => at(i)[text] ? `${events.step[i]}/${key(at(i))}` : null);
    rows.push({ name, ...made, text: (i) => at(made.of[i])[text], colour: (i) => hue(at(made.of[i])),
      tell: (i) => [`${name} ${at(made.of[i])[text]}`, `${at(made.of[i]).phase}, ${made.count[i]} launch${made.count[i] > 1 ? "es" : ""}, ${duration(made.end[i] - made.start[i])}`] });
  };
  for (const [lane, queue] of P.queues.entries()) {
    const mine = [];
    for (let i = 0; i < events.launch.length; i += 1) if (events.lane[i] === lane) mine.push(i);
    grouped(mine, "phase", (l) => l.phase, "phase");
    grouped(mine, "layer", (l) => `${l.phase}/${l.scope}`, "scope");
    rows.push({ name: queue, launches: true, start: mine.map((i) => events.starts[i]), end: mine.map((i) => events.ends[i]),
      text: (i) => at(mine[i]).name, row: (i) => at(mine[i]), step: (i) => events.step[mine[i]],
      colour: (i) => P.colourOf(at(mine[i])), tell: (i) => tellLaunch(at(mine[i]), events.ends[mine[i]] - events.starts[mine[i]]) });
  }
  for (const track of P.host) {
    rows.push({ ...track, text: (i) => P.hostNames[track.of[i]], colour: () => 6,
      tell: (i) => [P.hostNames[track.of[i]], `${track.name}, ${duration(track.end[i] - track.start[i])}`] });
  }
  return rows;
}

function tellLaunch(l, ns) {
  const lines = [l.name, `${l.phase}${l.scope ? ` · ${l.scope}` : ""} · ${l.work} · kernel ${l.kernel}`,
    `${duration(ns)} · ${si(l.nbytes, "B")} · ${si(l.flops, "flop")}`];
  if (ns) lines.push(`${si(l.nbytes / ns * 1e9, "B/s")} · ${si(l.flops / ns * 1e9, "flop/s")}`);
  if (l.ops.length > 1) lines.push(`one launch; its time is divided by cost, not measured apart: ${
    l.ops.map((o) => `${o.op} ${percent(o.share)}`).join(", ")}`);
  return lines;
}

class Timeline {
  constructor(host) {
    this.events = readEvents();
    P.kinds = [...new Set(P.launches.map((l) => l.main))];
    this.by = "phase";
    P.colourOf = (l) => this.hueOf(l);
    this.rows = timelineRows(this.events);
    this.span = [Math.min(...this.rows.map((r) => r.start[0] ?? 0)), Math.max(1, ...this.rows.flatMap((r) => r.end.slice(-1)))];
    this.view = this.span;
    this.chosen = null;
    this.build(host);
    this.show("1");
  }

  hueOf(l) {
    const names = this.names();
    const name = this.by === "phase" ? l.phase : this.by === "work" ? l.work : l.main;
    const found = names.indexOf(name);
    return found < 0 ? COLOURS - 2 : found;
  }

  // What has a colour of its own: at most seven; more operations share the grey.
  names() {
    if (this.by === "phase") return P.phases;
    if (this.by === "work") return ["compute", "copy", "layout"];
    return P.topOps.slice(0, 6);
  }

  build(host) {
    const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label, onclick: () => { act(); this.draw(); } }, text);
    const few = P.steps.length < 3 ? "fewer than three steps were recorded" : "";
    this.buttons = el("span", { class: "choice", role: "group", "aria-label": "zoom" }, el("div", {},
      button("−", "zoom out", () => this.zoom(1.6)), button("+", "zoom in", () => this.zoom(1 / 1.6)),
      button("◀", "earlier", () => this.pan(-0.5)), button("▶", "later", () => this.pan(0.5))));
    const made = section("timeline", "Timeline", [
      choice("show", [{ key: "1", text: "1 step" }, { key: "3", text: "3 steps", off: few }, { key: "all", text: "all" }], "1", (k) => { this.show(k); this.draw(); }),
      choice("colour", [{ key: "phase", text: "phase" }, { key: "op", text: "operation" }, { key: "work", text: "work" }], "phase", (k) => { this.by = k; this.draw(); }),
      this.buttons], P.timelineNote);
    this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-label": "timeline of launches; arrow keys move, plus and minus zoom, [ and ] choose a launch", "aria-describedby": "timeline-keys" });
    this.legend = el("ul", { class: "legend" });
    this.detail = el("div", { class: "detail", "aria-live": "polite" });
    made.append(el("div", { class: "canvas" }, this.canvas), this.legend, this.detail,
      el("p", { class: "note", id: "timeline-keys" }, "Drag to move, Ctrl + wheel or pinch to zoom, double click to fill the view with one slice. Keys, with the timeline in focus: ",
        "← → move, + − zoom, 0 all, [ ] previous and next launch, Enter zoom to it, Esc choose none."),
      folded("Table: the launches in view", () => this.table()));
    this.choose(null);
    this.listen();
    chart(() => this.draw());
  }

  show(what) {
    if (what === "all" || !P.steps.length) { this.view = this.span; return; }
    const counted = P.steps.filter((s) => !s.discarded && s.kept), all = counted.length ? counted : P.steps;
    const sorted = [...all].sort((a, b) => (a.end - a.start) - (b.end - b.start));
    const first = what === "1" ? sorted[sorted.length >> 1] : all[Math.min(all.length - 1, Math.max(0, Math.floor(all.length / 2) - 1))];
    const index = P.steps.indexOf(first), last = P.steps[Math.min(P.steps.length - 1, index + (what === "3" ? 2 : 0))];
    const rim = (last.end - first.start) * 0.01;
    this.view = [first.start - rim, last.end + rim];
  }

  zoom(factor, share = 0.5) {
    const [a, b] = this.view, whole = this.span[1] - this.span[0];
    const width = Math.min(Math.max((b - a) * factor, 200), whole * 1.05), centre = a + (b - a) * share;
    this.place(centre - width * share, width);
  }

  pan(share) { const [a, b] = this.view; this.place(a + (b - a) * share, b - a); }

  place(start, width) {
    const rim = width * 0.02, least = this.span[0] - rim, most = this.span[1] + rim - width;
    const a = most < least ? (least + most) / 2 : Math.min(Math.max(start, least), most);
    this.view = [a, a + width];
  }

  draw() {
    const strips = P.strips, height = AXIS + this.rows.reduce((s, r) => s + (r.depth || 1) * (ROW + GAP), 0) + strips.length * (STRIP + GAP) + 4;
    const [pen, width] = prepare(this.canvas, height);
    this.left = width < 560 ? 62 : 104;
    this.width = width - this.left - 2;
    this.hits = [];
    const [a, b] = this.view, scale = this.width / (b - a);
    const x = (t) => this.left + (t - a) * scale;
    this.axis(pen, x, height);
    let y = AXIS;
    for (const row of this.rows) {
      this.label(pen, row.name, y, ROW * (row.depth || 1));
      this.drawRow(pen, row, y, x, a, b);
      y += (row.depth || 1) * (ROW + GAP);
    }
    for (const strip of strips) { this.label(pen, strip.short, y, STRIP / 2 + 4); this.label(pen, brief(si(strip.top, strip.unit)), y + STRIP / 2 - 4, STRIP / 2 + 4); this.drawStrip(pen, strip, y, x, a, b); y += STRIP + GAP; }
    this.drawLegend();
    this.canvas.dataset.drawn = "true";
  }

  label(pen, text, y, height) {
    pen.fillStyle = theme.quiet;
    pen.textAlign = "left";
    pen.fillText(clip(pen, text, this.left - 8), 0, y + height / 2);
  }

  axis(pen, x, height) {
    const [a, b] = this.view, origin = P.steps.length ? P.steps[0].start : 0;
    pen.textAlign = "center";
    const found = ticks(a - origin, b - origin, this.width / 90), texts = tickTexts(found, "ns");
    for (const [i, t] of found.entries()) {
      const at = x(t + origin);
      pen.fillStyle = theme.grid;
      pen.fillRect(Math.round(at), AXIS - 4, 1, height);
      pen.fillStyle = theme.quiet;
      if (at > this.left + 18 && at < this.left + this.width - 22) pen.fillText(texts[i], at, AXIS / 2 - 2);
    }
  }

  drawRow(pen, row, y, x, a, b) {
    const { start, end } = row, right = this.left + this.width;
    const depth = row.depth || 1, reached = new Array(depth).fill(-1);
    for (let i = lower(row.reach || end, a); i < start.length && start[i] < b; i += 1) {
      if (end[i] < a) continue;
      const level = row.level ? row.level[i] : 0, x0 = Math.max(x(start[i]), this.left), x1 = Math.min(x(end[i]), right);
      if (x1 <= reached[level]) continue;  // within a pixel that is painted already
      const top = y + level * (ROW + GAP), wide = Math.max(x1 - x0, 1), colour = theme.colours[row.colour(i) % COLOURS];
      pen.fillStyle = colour;
      pen.fillRect(x0, top, wide > 3 ? wide - 0.7 : wide, ROW);
      reached[level] = x0 + Math.max(1, wide) - 0.5;
      if (wide > 26) {
        pen.fillStyle = ink(colour);
        pen.textAlign = "left";
        const text = clip(pen, row.text(i), wide - 7);
        if (text) pen.fillText(text, x0 + 4, top + ROW / 2 + 0.5);
      }
      if (this.chosen && this.chosen.row === row && this.chosen.i === i) {
        pen.strokeStyle = theme.text;
        pen.lineWidth = 2;
        pen.strokeRect(x0 + 1, top + 1, Math.max(wide - 2, 2), ROW - 2);
      }
      this.hits.push([x0, Math.max(x1, x0 + 2), top, row, i]);
    }
  }

  drawStrip(pen, strip, y, x, a, b) {
    const most = strip.top, bottom = y + STRIP, colour = theme.colours[strip.hue];
    const high = (v) => bottom - Math.max(0, Math.min(1, v / most)) * (STRIP - 4);
    pen.fillStyle = theme.faint;
    pen.fillRect(this.left, y, this.width, STRIP);
    pen.fillStyle = colour;
    let from = Math.max(0, lower(strip.t, a) - 1);
    for (; from < strip.t.length && strip.t[from] < b; from += 1) {
      if (strip.v[from] === null) continue;
      const x0 = Math.max(x(strip.t[from]), this.left), until = from + 1 < strip.t.length ? strip.t[from + 1] : strip.until;
      const x1 = Math.min(x(until), this.left + this.width);
      if (x1 > x0) pen.fillRect(x0, high(strip.v[from]), x1 - x0 + 0.3, bottom - high(strip.v[from]));
    }
    this.hits.push([this.left, this.left + this.width, y, { strip, height: STRIP }, -1]);
  }

  drawLegend() {
    const names = this.names(), other = this.by === "op" && P.kinds.length > names.length ? ["other operations"] : [];
    this.legend.replaceChildren(...[...names, ...other].map((name, i) => {
      const hue = i < names.length ? i : COLOURS - 2;
      return el("li", {}, el("i", { style: `background:${theme.colours[hue]}` }), name);
    }));
  }

  hit(event) {
    const box = this.canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    return [px, this.hits.findLast(([x0, x1, top, row]) => px >= x0 && px <= x1 && py >= top && py <= top + (row.height || ROW))];
  }

  tell(row, i, px) {
    if (!row.strip) return row.tell(i);
    const [a, b] = this.view, s = row.strip, t = a + (px - this.left) / this.width * (b - a), at = lower(s.t, t + 1) - 1;
    return [s.name, at < 0 || s.v[at] === null || t > s.until ? "no sample here" : si(s.v[at], s.unit)];
  }

  listen() {
    const c = this.canvas, down = new Map();
    let moved = 0, pinch = 0;
    c.addEventListener("pointerdown", (e) => { c.setPointerCapture(e.pointerId); down.set(e.pointerId, e.clientX); moved = 0; c.classList.add("pan"); });
    const up = (e) => {
      if (down.delete(e.pointerId) && e.type === "pointerup" && moved < 4) { const [, found] = this.hit(e); this.choose(found && !found[3].strip ? { row: found[3], i: found[4] } : null); this.draw(); }
      pinch = 0;
      c.classList.remove("pan");
    };
    c.addEventListener("pointerup", up);
    c.addEventListener("pointercancel", up);
    c.addEventListener("pointermove", (e) => {
      if (!down.size) {
        const [px, found] = this.hit(e);
        if (found) showTip(e.clientX, e.clientY, this.tell(found[3], found[4], px)); else hideTip();
        return;
      }
      if (!down.has(e.pointerId)) return;
      hideTip();
      const before = down.get(e.pointerId);
      down.set(e.pointerId, e.clientX);
      if (down.size === 2) {
        const [p, q] = [...down.values()], apart = Math.abs(p - q) + 1, left = c.getBoundingClientRect().left;
        if (pinch) this.zoom(pinch / apart, ((p + q) / 2 - left - this.left) / this.width);
        pinch = apart;
      } else this.pan((before - e.clientX) / this.width);
      moved += Math.abs(e.clientX - before);
      this.draw();
    });
    c.addEventListener("pointerleave", hideTip);
    c.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.shiftKey) return;  // the page scrolls
      e.preventDefault();
      const share = (e.clientX - c.getBoundingClientRect().left - this.left) / this.width, by = e.deltaY || e.deltaX;
      if (e.shiftKey) this.pan(by / 600); else this.zoom(Math.exp(by / 250), Math.min(1, Math.max(0, share)));
      this.draw();
    }, { passive: false });
    c.addEventListener("dblclick", (e) => { const [, found] = this.hit(e); if (found && !found[3].strip) { this.fill(found[3], found[4]); this.draw(); } });
    c.addEventListener("keydown", (e) => {
      const act = { ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), "+": () => this.zoom(1 / 1.6), "=": () => this.zoom(1 / 1.6), "-": () => this.zoom(1.6),
        0: () => { this.view = this.span; }, "[": () => this.next(-1), "]": () => this.next(1), Escape: () => this.choose(null),
        Enter: () => { if (this.chosen) this.fill(this.chosen.row, this.chosen.i); } }[e.key];
      if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      act();
      this.draw();
    });
  }

  fill(row, i) { const width = Math.max(200, (row.end[i] - row.start[i]) * 1.1); this.place((row.start[i] + row.end[i] - width) / 2, width); }

  next(by) {
    const row = this.chosen && this.chosen.row.launches ? this.chosen.row : this.rows.find((r) => r.launches);
    if (!row || !row.start.length) return;
    const from = this.chosen && this.chosen.row === row ? this.chosen.i + by : lower(row.start, this.view[0]);
    const i = Math.min(row.start.length - 1, Math.max(0, from));
    this.choose({ row, i });
    if (row.start[i] < this.view[0] || row.end[i] > this.view[1]) this.place(row.start[i] - (this.view[1] - this.view[0]) / 2, this.view[1] - this.view[0]);
  }

  choose(found) {
    this.chosen = found;
    const lines = found ? found.row.tell(found.i) : [NOTHING_CHOSEN];
    this.detail.replaceChildren(...lines.map((line, i) => el("div", {}, i || !found ? line : el("b", {}, line))));
  }

  table() {
    const MOST = 500, [a, b] = this.view, found = [];
    for (const row of this.rows.filter((r) => r.launches)) {
      for (let i = lower(row.end, a); i < row.start.length && row.start[i] < b; i += 1) found.push([row, i]);
    }
    found.sort((p, q) => p[0].start[p[1]] - q[0].start[q[1]]);
    const origin = P.steps.length ? P.steps[0].start : 0;
    const made = table([{ name: "step", n: true }, { name: "start", n: true }, { name: "time", n: true }, { name: "operations", cls: "name" }, { name: "layer", cls: "name" }, { name: "phase" },
      { name: "bytes", n: true }, { name: "flops", n: true }],
    found.slice(0, MOST).map(([row, i]) => { const l = row.row(i); return [String(row.step(i)), duration(row.start[i] - origin), duration(row.end[i] - row.start[i]), l.name, l.scope, l.phase, si(l.nbytes, "B"), si(l.flops)]; }));
    return found.length > MOST ? el("div", {}, el("p", { class: "note" }, `The first ${MOST} of ${found.length} launches in view; zoom in for the others, or read launches.csv.`), made) : made;
  }
}
