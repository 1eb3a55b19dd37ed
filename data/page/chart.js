// Cumulative realised gain over time, with the trades beneath it. Doubles are used here for pixels
// only; what is read out is exact.

import { signed, time, whole } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 64, right: 16, top: 12, bottom: 22 };
/** Height of the strip of trades, and the width of one of its bars. */
const STRIP = 26;
const BAR = 4;
/** Up to so many trades, each is a triangle on the line. */
const MARKERS_MAX = 160;
const DAY = 86_400_000;

function draw(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
}

/** About `wanted` round steps that span `low..high`. */
export function ticks(low, high, wanted) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const out = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) out.push(at);
  return { step, at: out };
}

function timeTicks(from, to, wanted) {
  const span = to - from;
  const months = [1, 2, 3, 6, 12, 24, 60].find((n) => span / (n * 30.5 * DAY) <= wanted);
  if (span < 75 * DAY || !months) {
    const step = [1 / 24, 1 / 4, 1, 2, 7, 14, 30].map((n) => n * DAY).find((n) => span / n <= wanted) ?? 30 * DAY;
    const out = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) out.push(at);
    return { out, text: (at) => new Date(at).toISOString().slice(step < DAY ? 11 : 5, step < DAY ? 16 : 10) };
  }
  const first = new Date(from);
  const out = [];
  let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth() + 1) / months) * months;
  for (; ; month += months) {
    const at = Date.UTC(Math.floor(month / 12), month % 12);
    if (at > to) break;
    out.push(at);
  }
  return { out, text: (at) => new Date(at).toISOString().slice(0, 7) };
}

function axisText(value, step) {
  const places = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 8);
  const text = value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
  return Number(text.replaceAll(",", "")) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** Pixels of a step line: at most four points a column, however many there are. */
function path(points) {
  const out = [];
  let column = null;
  const flush = () => {
    if (!column) return;
    const { x, first, low, high, last } = column;
    out.push(`H${x}V${first}`);
    if (low !== high) out.push(`V${low}V${high}V${last}`);
  };
  for (const { x, y } of points) {
    if (column?.x === x) {
      Object.assign(column, { low: Math.min(column.low, y), high: Math.max(column.high, y), last: y });
    } else {
      flush();
      column = { x, first: y, low: y, high: y, last: y };
    }
  }
  flush();
  return out.join("");
}

const round = (value) => Math.round(value * 10) / 10;

export class Chart {
  constructor(box, readout) {
    this.box = box;
    this.readout = readout;
    box.tabIndex = 0;
    box.setAttribute("role", "slider");
    box.setAttribute("aria-label", "Realised gain over time");
    box.addEventListener("pointermove", (event) => this.point(event));
    // A finger has no place to hover: what it touched last stays shown.
    box.addEventListener("pointerdown", (event) => this.point(event));
    box.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType === "mouse") this.select(this.data.points.length - 1);
    });
    box.addEventListener("keydown", (event) => this.key(event));
    this.data = { points: [], trades: [], symbol: "", decimals: 0 };
    new ResizeObserver(() => this.draw()).observe(box);
  }

  /**
   * `points`: `{at, total, gain, token}` with times in milliseconds and exact totals, oldest first;
   * `trades`: `{at, side}`, oldest first.
   */
  show(data) {
    this.data = data;
    this.draw();
    this.select(data.points.length - 1);
  }

  draw() {
    const [width, height] = [this.box.clientWidth, this.box.clientHeight];
    if (width === 0 || height === 0) return;
    const { points, trades, decimals } = this.data;
    const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    this.box.replaceChildren(svg);
    if (trades.length === 0) return;
    const scale = 10 ** decimals;
    const values = points.map(({ total }) => Number(total) / scale);
    const [from, to] = [trades[0].at, Math.max(trades.at(-1).at, trades[0].at + 1)];
    let [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [0, 0]);
    if (low === high) high = low + 1;
    const bottom = height - MARGIN.bottom - STRIP;
    const x = (at) => round(MARGIN.left + ((at - from) / (to - from)) * (width - MARGIN.left - MARGIN.right));
    const y = (value) => round(MARGIN.top + ((high - value) / (high - low)) * (bottom - MARGIN.top));
    this.place = { x, y, values, bottom };
    this.axes(svg, { x, y, low, high, from, to, width, height, bottom });
    this.line(svg, { x, y, values, from, to });
    if (trades.length <= MARKERS_MAX) this.markers(svg, { x, y, values });
    this.strip(svg, { x, top: bottom + 4, width });
    this.cursor = draw("g", { class: "cursor" }, svg);
    this.mark();
  }

  axes(svg, { x, y, low, high, from, to, width, height, bottom }) {
    const grid = draw("g", { class: "axis" }, svg);
    const { step, at } = ticks(low, high, Math.max(Math.floor(bottom / 36), 2));
    for (const value of at) {
      const line = Math.round(y(value)) + 0.5;
      draw("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: line, y2: line, class: Math.abs(value) < step / 1e6 ? "zero" : "" }, grid);
      draw("text", { x: MARGIN.left - 8, y: line + 4, "text-anchor": "end" }, grid).textContent = axisText(value, step);
    }
    const { out, text } = timeTicks(from, to, Math.max(Math.floor(width / 110), 2));
    for (const value of out) {
      if (x(value) > width - MARGIN.right - 20) continue;
      draw("text", { x: x(value), y: height - 6, "text-anchor": "middle" }, grid).textContent = text(value);
    }
  }

  line(svg, { x, y, values, from, to }) {
    const steps = this.data.points.map(({ at }, index) => ({ x: x(at), y: y(values[index]) }));
    const body = `M${x(from)} ${y(0)}${path(steps)}H${x(to)}`;
    draw("path", { d: `${body}V${y(0)}Z`, class: "area" }, svg);
    draw("path", { d: body, class: "line" }, svg);
  }

  /** A triangle for each trade, up for a buy and down for a sell, where the line is at its time. */
  markers(svg, { x, y, values }) {
    const { points, trades } = this.data;
    const group = draw("g", { class: "markers" }, svg);
    let next = 0;
    for (const { at, side } of trades) {
      while (next < points.length && points[next].at <= at) next += 1;
      const [cx, cy] = [x(at), y(next === 0 ? 0 : values[next - 1])];
      const tip = side === "buy" ? -1 : 1;
      const from = cy - tip * 3;
      draw("path", { d: `M${cx} ${from + tip * 7}l-4 ${-tip * 7}h8Z`, class: side }, group);
    }
  }

  /** Buys above the middle, sells below it, taller where there are more. */
  strip(svg, { x, top, width }) {
    const bars = new Map();
    for (const { at, side } of this.data.trades) {
      const place = Math.floor(x(at) / BAR);
      const bar = bars.get(place) ?? { buy: 0, sell: 0 };
      bar[side] += 1;
      bars.set(place, bar);
    }
    const group = draw("g", { class: "strip" }, svg);
    const middle = top + STRIP / 2 - 2;
    const most = Math.max(...[...bars.values()].map(({ buy, sell }) => Math.max(buy, sell)), 1);
    const tall = (count) => (count === 0 ? 0 : 1.5 + (count / most) * (STRIP / 2 - 4));
    let [buys, sells] = ["", ""];
    for (const [place, { buy, sell }] of bars) {
      const left = Math.min(place * BAR, width - BAR);
      if (buy > 0) buys += `M${left} ${middle}v${-round(tall(buy))}h${BAR - 1}V${middle}Z`;
      if (sell > 0) sells += `M${left} ${middle + 1}v${round(tall(sell))}h${BAR - 1}V${middle + 1}Z`;
    }
    draw("path", { d: buys, class: "buy" }, group);
    draw("path", { d: sells, class: "sell" }, group);
  }

  /** The point at or before the pointer. */
  point({ clientX }) {
    const { points } = this.data;
    if (points.length === 0 || !this.place) return;
    const left = clientX - this.box.getBoundingClientRect().left;
    let [low, high] = [0, points.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.place.x(points[middle].at) <= left) low = middle;
      else high = middle - 1;
    }
    this.select(low);
  }

  key(event) {
    const last = this.data.points.length - 1;
    const page = Math.max(Math.round(last / 20), 1);
    const to = {
      ArrowLeft: this.selected - 1,
      ArrowRight: this.selected + 1,
      ArrowDown: this.selected - 1,
      ArrowUp: this.selected + 1,
      PageDown: this.selected - page,
      PageUp: this.selected + page,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.select(Math.min(Math.max(to, 0), last));
  }

  select(index) {
    this.selected = index;
    const { points, symbol, decimals } = this.data;
    const point = points[index];
    const text = point
      ? `${time(new Date(point.at).toISOString())} · ${signed(point.total, decimals, 6)} ${symbol} after ${whole(index + 1)} sells`
      : "Nothing realised yet";
    this.readout.textContent = text;
    const range = { valuemin: points.length ? 1 : 0, valuemax: points.length, valuenow: index + 1, valuetext: text };
    for (const [name, value] of Object.entries(range)) this.box.setAttribute(`aria-${name}`, value);
    this.mark();
  }

  mark() {
    if (!this.cursor || !this.place) return;
    const point = this.data.points[this.selected];
    this.cursor.replaceChildren();
    if (!point || this.place.values.length !== this.data.points.length) return;
    const [cx, cy] = [this.place.x(point.at), this.place.y(this.place.values[this.selected])];
    draw("line", { x1: cx, x2: cx, y1: MARGIN.top, y2: this.place.bottom }, this.cursor);
    draw("circle", { cx, cy, r: 3.5 }, this.cursor);
  }
}
