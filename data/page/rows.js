// The rows that are loaded, newest first as they came, and which of them are shown.

import { compareDecimals } from "./decimal.js";

const EMPTY = { mint: "", side: "", venue: "", from: null, to: null };

export class Rows {
  constructor() {
    this.clear();
  }

  clear() {
    this.all = [];
    /** Mint to its newest symbol, and venue to how often it stands, in the order of first sight. */
    this.tokens = new Map();
    this.venues = new Map();
    this.shown = [];
    this.filter = { ...EMPTY };
    this.order = { by: "time", down: true };
    this.texts = new Map();
  }

  get length() {
    return this.all.length;
  }

  /** Takes trades as the server wrote them, numbers as text. */
  add(trades) {
    const start = this.all.length;
    for (const trade of trades) this.all.push(this.row(trade));
    for (let at = start; at < this.all.length; at += 1) {
      if (this.passes(this.all[at])) this.shown.push(at);
    }
  }

  /** Takes new trades, oldest first: they stand above all others. */
  addNew(trades) {
    const rows = trades.map((trade) => ({ ...this.row(trade), isNew: true })).reverse();
    this.all = rows.concat(this.all);
    this.select();
  }

  row(trade) {
    const row = {
      signature: trade.signature,
      side: trade.side === "buy" ? "buy" : "sell",
      token: this.one(trade.token),
      mint: this.one(trade.tokenMint),
      native: trade.amountSol,
      amount: trade.amount,
      venue: this.one(trade.dex),
      time: trade.blockTime,
      isNew: false,
    };
    count(this.venues, row.venue);
    const token = this.tokens.get(row.mint);
    if (token) token.count += 1;
    else this.tokens.set(row.mint, { symbol: row.token, count: 1 });
    return row;
  }

  /** The newest first. */
  years() {
    if (this.all.length === 0) return [];
    const [newest, oldest] = [this.all[0], this.all.at(-1)].map(({ time }) => Number(time.slice(0, 4)));
    return Array.from({ length: newest - oldest + 1 }, (_, at) => String(newest - at));
  }

  /** One text for all rows that share it. */
  one(text) {
    const known = this.texts.get(text);
    if (known !== undefined) return known;
    this.texts.set(text, text);
    return text;
  }

  /** The rows stay in the order of arrival, so new ones need no sorting. */
  get inOrder() {
    return this.order.by === "time" && this.order.down;
  }

  setFilter(change) {
    this.filter = { ...this.filter, ...change };
    this.select();
  }

  clearFilter() {
    this.setFilter(EMPTY);
  }

  get isFiltered() {
    return Object.entries(EMPTY).some(([name, value]) => this.filter[name] !== value);
  }

  setOrder(by, down) {
    this.order = { by, down };
    this.select();
  }

  passes(row) {
    return passes(this.filter, row);
  }

  /** The filter as it is now. */
  passing() {
    const { filter } = this;
    return (row) => passes(filter, row);
  }

  select() {
    this.shown = [];
    for (let at = 0; at < this.all.length; at += 1) {
      if (this.passes(this.all[at])) this.shown.push(at);
    }
    this.sort();
  }

  sort() {
    const { by, down } = this.order;
    if (by === "time") {
      this.shown.sort((a, b) => (down ? a - b : b - a));
      return;
    }
    const compare = ORDERS[by](this.all, this.shown);
    const sign = down ? -1 : 1;
    this.shown.sort((a, b) => compare(a, b, sign) || a - b);
  }

  at(place) {
    return this.all[this.shown[place]];
  }
}

function passes({ mint, side, venue, from, to }, row) {
  if (mint && row.mint !== mint) return false;
  if (side && row.side !== side) return false;
  if (venue && !isVenue(row.venue, venue)) return false;
  // All times have one form, so that their texts order as they do.
  if (from && row.time < from) return false;
  return !to || row.time < to;
}

/** The venue of that name, or of the family whose name it is, as the server's `dex` has it. */
export function isVenue(name, wanted) {
  const [own, asked] = [name.toLowerCase(), wanted.toLowerCase()];
  return own === asked || own.startsWith(`${asked} `);
}

function count(map, name) {
  map.set(name, (map.get(name) ?? 0) + 1);
}

function byText(field) {
  return (all, shown) => {
    const collator = new Intl.Collator("en", { sensitivity: "base", numeric: true });
    // Few texts are different: each gets its place once.
    const texts = [...new Set(shown.map((at) => all[at][field]))].sort(collator.compare);
    const places = new Map(texts.map((text, place) => [text, place]));
    return (a, b, sign) => sign * (places.get(all[a][field]) - places.get(all[b][field]));
  };
}

/**
 * By doubles first, which is quick and never wrong where they differ, and exactly where they are
 * the same. What is unknown comes last in both directions.
 */
function byNumber(field) {
  return (all, shown) => {
    const near = new Float64Array(all.length);
    for (const at of shown) near[at] = all[at][field] === null ? NaN : Number(all[at][field]);
    return (a, b, sign) => {
      const x = near[a];
      const y = near[b];
      if (x < y) return -sign;
      if (x > y) return sign;
      if (x === y) return sign * compareDecimals(all[a][field], all[b][field]);
      return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    };
  };
}

const ORDERS = {
  side: byText("side"),
  token: byText("token"),
  venue: byText("venue"),
  native: byNumber("native"),
  amount: byNumber("amount"),
};
