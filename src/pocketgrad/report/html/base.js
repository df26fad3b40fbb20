// Numbers as people read them, elements, the tooltip, and the colours of the theme.
"use strict";
const P = JSON.parse(document.getElementById("profile").textContent);
const PREFIXES = ["", "k", "M", "G", "T", "P"];
const SMALL = ["", "m", "µ", "n", "p"];

function digits(value, count = 3) {
  const text = Math.abs(value) >= 10 ** (count - 1) ? value.toFixed(0) : value.toPrecision(count);
  return text.includes("e") ? String(Number(text)) : text;
}

function si(value, unit = "") {
  if (value === null || value === undefined) return "–";
  if (value === 0) return `0 ${unit}`.trim();
  if (unit === "%") return `${digits(value)} %`;
  if (unit === "°C") return `${value.toFixed(1)} °C`;
  let power = 0, rest = value;
  while (Math.abs(rest) >= 999.5 && power < PREFIXES.length - 1) { rest /= 1000; power += 1; }
  if (power) return `${digits(rest)} ${PREFIXES[power]}${unit}`.trim();
  while (Math.abs(rest) < 0.9995 && power < SMALL.length - 1 && unit && unit !== "B") { rest *= 1000; power += 1; }
  return `${Number.isInteger(rest) ? rest : digits(rest)} ${SMALL[power]}${unit}`.trim();
}

function duration(ns) {
  if (ns === null || ns === undefined) return "–";
  const size = Math.abs(ns);
  if (size < 60e9) return size ? si(ns / 1e9, "s") : "0 s";
  const whole = Math.round(size / 1e9), minutes = Math.floor(whole / 60);
  const two = (n) => String(n).padStart(2, "0");
  const text = minutes < 60 ? `${minutes}:${two(whole % 60)} min`
    : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)} h`;
  return ns < 0 ? `−${text}` : text;
}

// Ticks of one axis: all with the same prefix, and as many decimals as tell neighbours apart.
function tickTexts(found, unit) {
  const known = found.filter((v) => v !== null), most = Math.max(...known.map(Math.abs), 0);
  if (unit === "ns" && most >= 60e9) return found.map((v) => v === null ? "" : duration(v));
  const base = unit === "ns" ? 1e9 : 1, name = unit === "ns" ? "s" : unit;
  let scale = base, prefix = "";
  if (most && unit !== "%" && unit !== "°C" && unit !== "") {
    const power = Math.max(unit === "B" ? 0 : -4, Math.min(5, Math.floor(Math.log10(most / base) / 3 + 1e-9)));
    scale = base * 1000 ** power;
    prefix = power < 0 ? SMALL[-power] : PREFIXES[power];
  }
  const step = known.length > 1 ? Math.abs(known[1] - known[0]) / scale : 1;
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-6)));
  return found.map((v) => v === null ? "" : `${(v / scale).toFixed(places)} ${prefix}${name}`.trim());
}

// A value alone: without the zeros that say nothing.
const brief = (text) => text.replace(/(\.\d*?)0+(?=\s|$)/, "$1").replace(/\.(?=\s|$)/, "");
const percent = (share) => share === null || !isFinite(share) ? "–" : `${digits(100 * share, share < 0.0995 ? 2 : 3)} %`;
const show = (value, unit) => unit === "ns" ? duration(value) : si(value, unit);

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((c) => c !== null && c !== undefined));
  return made;
}

function section(id, title, controls = [], note = "") {
  const made = el("section", { id, "aria-labelledby": `${id}-title` },
    el("div", { class: "head" }, el("h2", { id: `${id}-title` }, title), ...controls),
    note ? el("p", { class: "note" }, note) : null);
  document.getElementById("main").append(made);
  document.getElementById("nav").append(el("a", { href: `#${id}` }, title));
  return made;
}

// Buttons of which one is pressed; `picked(key)` is called with the new one.
function choice(label, options, current, picked) {
  const buttons = options.map(({ key, text, off }) => el("button", {
    type: "button", "aria-pressed": String(key === current), disabled: Boolean(off), title: off || null,
    onclick: () => {
      for (const b of buttons) b.setAttribute("aria-pressed", String(b === buttons[options.findIndex((o) => o.key === key)]));
      picked(key);
    },
  }, text));
  return el("span", { class: "choice", role: "group", "aria-label": label }, label, el("div", {}, ...buttons));
}

// columns: [{name, n: true for numbers}]; rows: text or elements. The table behind a chart is folded away.
function table(columns, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table" }, el("table", {},
    el("thead", {}, el("tr", {}, ...columns.map((c) => el("th", { class: c.n ? "n" : c.cls || null, scope: "col" }, c.name)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, i) =>
      el("td", { class: columns[i].n ? "n" : columns[i].cls || null }, columns[i].cls === "name" && typeof cell === "string" ? breakable(cell) : cell)))))));
}

function folded(title, make) {
  const made = el("details", {}, el("summary", {}, title));
  made.addEventListener("toggle", () => {
    while (made.children.length > 1) made.lastChild.remove();
    if (made.open) made.append(make());
  });
  return made;
}

// Long names may break after their separators.
function breakable(text) {
  const made = el("span", {});
  for (const part of text.split(/(?<=[_./+·])/)) made.append(part, el("wbr"));
  return made;
}

// A reason made of those of several samplers ('rapl: …; ina3221: …') is a list that opens.
function absent(reasons) {
  return el("ul", { class: "none" }, ...reasons.map(([name, reason]) => {
    const each = reason.split(/; (?=[a-z0-9_]+: )/);
    if (each.length === 1) return el("li", {}, `${name}: not available: ${reason}`);
    return el("li", {}, `${name}: not available: nothing of ${each.length} kinds was found`,
      folded("where it was looked for", () => el("ul", {}, ...each.map((line) => el("li", {}, line)))));
  }));
}

const tip = document.getElementById("tip");
function showTip(x, y, lines) {
  tip.replaceChildren(el("b", {}, lines[0]), ...lines.slice(1).flatMap((line) => [el("br"), line]));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
}
const hideTip = () => { tip.hidden = true; };
addEventListener("scroll", hideTip, { passive: true });
addEventListener("keydown", (e) => { if (e.key === "Escape") hideTip(); });

const COLOURS = 8;
let theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  theme = Object.fromEntries(["bg", "panel", "text", "quiet", "line", "grid", "faint", "focus", "mark"].map((n) => [n, get(n)]));
  theme.colours = Array.from({ length: COLOURS }, (_, i) => get(`c${i}`));
  theme.font = `11.5px ${get("font")}`;
}

// Black or white, whichever reads better on the colour (WCAG relative luminance).
function ink(colour) {
  const part = (i) => { const v = parseInt(colour.slice(i, i + 2), 16) / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) > 0.179 ? "#000000" : "#ffffff";
}

// Every chart registers how to draw itself; a new width or theme draws all again.
const charts = [];
function chart(draw) { charts.push(draw); }
function drawAll() { readTheme(); for (const draw of charts) draw(); }
function prepare(canvas, height) {
  const width = canvas.parentElement.clientWidth, ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = theme.font;
  pen.textBaseline = "middle";
  return [pen, width];
}

// Round numbers between a and b, about one every `space` of the given count.
function ticks(a, b, count) {
  const raw = (b - a) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || raw;
  const found = [];
  for (let i = Math.ceil(a / step); i * step <= b; i += 1) found.push(i * step);
  return found;
}

function clip(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle; else high = middle - 1;
  }
  return low > 1 ? `${text.slice(0, low)}…` : "";
}

// The first index in a rising array whose value is not below `wanted`.
function lower(sorted, wanted) {
  let low = 0, high = sorted.length;
  while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] < wanted) low = middle + 1; else high = middle; }
  return low;
}
