// Positions and realised gains out of a wallet's rows: exact integers, oldest row first.
//
// Quantities are in units of the most decimals that a token's rows show, values in base units of
// the chain's coin. Where a share does not divide, it is cut down and the rest stays in the lot, so
// that all shares together are always the whole.
//
// - A buy without a value makes a lot without a cost. What is sold from it is no gain and no loss:
//   its proceeds are `unvaluedProceeds`.
// - A sell without a value takes from the lots as any other; the cost that leaves with it is
//   `unvaluedCost`.
// - A sell of more than is held is `unmatched` in the part beyond: tokens that came as a transfer.

import { decimalsOf, toUnits } from "./decimal.js";

/** A few milliseconds of work. */
const ROWS_PER_STEP = 2000;

const least = (a, b) => (a < b ? a : b);

/** Lots in the order of buying. */
class Fifo {
  lots = [];
  first = 0;
  held = 0n;

  buy(quantity, cost) {
    this.lots.push({ quantity, cost });
    this.held += quantity;
  }

  /** Takes as much of `wanted` as is there; a part's `cost` is `null` where none is known. */
  take(wanted) {
    const parts = [];
    let missing = least(wanted, this.held);
    this.held -= missing;
    while (missing > 0n) {
      const lot = this.lots[this.first];
      const part = takeFrom(lot, missing);
      missing -= part.quantity;
      parts.push(part);
      if (lot.quantity === 0n) this.drop();
    }
    return parts;
  }

  /** Lots that are used up go in bulk, so that none is moved twice. */
  drop() {
    this.lots[this.first] = null;
    this.first += 1;
    if (this.first > 1024 && this.first * 2 > this.lots.length) {
      this.lots = this.lots.slice(this.first);
      this.first = 0;
    }
  }

  open() {
    return this.lots.slice(this.first);
  }
}

/** One pool with a cost and one without; the first is sold first. */
class Average {
  valued = { quantity: 0n, cost: 0n };
  unvalued = { quantity: 0n, cost: null };

  get held() {
    return this.valued.quantity + this.unvalued.quantity;
  }

  buy(quantity, cost) {
    const pool = cost === null ? this.unvalued : this.valued;
    pool.quantity += quantity;
    if (cost !== null) pool.cost += cost;
  }

  take(wanted) {
    const parts = [];
    let missing = least(wanted, this.held);
    for (const pool of [this.valued, this.unvalued]) {
      if (missing === 0n || pool.quantity === 0n) continue;
      const part = takeFrom(pool, missing);
      missing -= part.quantity;
      parts.push(part);
    }
    return parts;
  }

  open() {
    return [this.valued, this.unvalued];
  }
}

/** As much of `wanted` as a lot has, with its share of the cost. */
function takeFrom(lot, wanted) {
  const quantity = least(wanted, lot.quantity);
  let cost = null;
  if (lot.cost !== null) {
    cost = quantity === lot.quantity ? lot.cost : (lot.cost * quantity) / lot.quantity;
    lot.cost -= cost;
  }
  lot.quantity -= quantity;
  return { quantity, cost };
}

const METHODS = { fifo: Fifo, average: Average };

function emptyPosition(mint, token) {
  return {
    mint,
    token,
    decimals: 0,
    buys: 0,
    sells: 0,
    bought: 0n,
    sold: 0n,
    /** What was paid and got, where it is known. */
    spent: 0n,
    received: 0n,
    open: 0n,
    /** The part of `open` without a cost, and the cost of the rest. */
    openUnvalued: 0n,
    openCost: 0n,
    realised: 0n,
    /** The cost in it. */
    realisedCost: 0n,
    unmatched: 0n,
    unmatchedProceeds: 0n,
    unvaluedProceeds: 0n,
    unvaluedCost: 0n,
    /** Trades without a value, and rows without an amount. */
    withoutValue: 0,
    withoutAmount: 0,
    wins: 0,
    /** Sells of which some part has a cost. */
    judgedSells: 0,
  };
}

/** Sells of one token: what is realised, and what could not be. */
function sell(position, lots, quantity, value) {
  position.sold += quantity;
  const parts = lots.take(quantity);
  const matched = parts.reduce((sum, part) => sum + part.quantity, 0n);
  position.unmatched += quantity - matched;
  if (value === null) {
    position.withoutValue += 1;
    for (const { cost } of parts) position.unvaluedCost += cost ?? 0n;
    return null;
  }
  position.received += value;
  const proceeds = (value * matched) / quantity;
  position.unmatchedProceeds += value - proceeds;
  let [rest, gain, hasCost] = [proceeds, 0n, false];
  parts.forEach((part, at) => {
    const share = at === parts.length - 1 ? rest : (value * part.quantity) / quantity;
    rest -= share;
    if (part.cost === null) {
      position.unvaluedProceeds += share;
    } else {
      gain += share - part.cost;
      position.realisedCost += part.cost;
      hasCost = true;
    }
  });
  if (!hasCost) return null;
  position.realised += gain;
  position.judgedSells += 1;
  if (gain > 0n) position.wins += 1;
  return gain;
}

function buy(position, lots, quantity, value) {
  position.bought += quantity;
  if (value === null) position.withoutValue += 1;
  else position.spent += value;
  lots.buy(quantity, value);
}

/** The most decimals that each token's amounts show. */
function scales(count, rowAt) {
  const found = new Map();
  for (let at = 0; at < count; at += 1) {
    const { mint, amount } = rowAt(at);
    const decimals = amount === null ? 0 : (decimalsOf(amount) ?? 0);
    if (decimals >= (found.get(mint) ?? 0)) found.set(mint, decimals);
  }
  return found;
}

/** All steps of `gainsInSteps` at once. */
export function gains(count, rowAt, nativeDecimals, method) {
  const steps = gainsInSteps(count, rowAt, nativeDecimals, method);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/**
 * `rowAt(0)` is the oldest row: `{mint, token, side, amount, native}`, amounts as text or `null`.
 * Returns positions in the order of their last trade, newest first, totals, and `events`: one
 * `{at, mint, gain}` for each sell that realised something. Yields now and then, so that a page
 * can do other things between.
 */
export function* gainsInSteps(count, rowAt, nativeDecimals, method) {
  const Lots = METHODS[method];
  const decimals = scales(count, rowAt);
  yield;
  const books = new Map();
  const events = [];
  for (let at = 0; at < count; at += 1) {
    if (at % ROWS_PER_STEP === ROWS_PER_STEP - 1) yield;
    const row = rowAt(at);
    const book = books.get(row.mint) ?? {
      position: emptyPosition(row.mint, row.token),
      lots: new Lots(),
    };
    // Last in a map is what was set last.
    books.delete(row.mint);
    books.set(row.mint, book);
    const { position, lots } = book;
    position.decimals = decimals.get(row.mint);
    position.token = row.token;
    position[row.side === "buy" ? "buys" : "sells"] += 1;
    const quantity = toUnits(row.amount, position.decimals);
    const value = toUnits(row.native, nativeDecimals);
    if (quantity === null || quantity === 0n) {
      position.withoutAmount += 1;
    } else if (row.side === "buy") {
      buy(position, lots, quantity, value);
    } else {
      const gain = sell(position, lots, quantity, value);
      if (gain !== null) events.push({ at, mint: row.mint, gain });
    }
  }
  const positions = [...books.values()].reverse().map(({ position, lots }) => {
    for (const { quantity, cost } of lots.open()) {
      position.open += quantity;
      if (cost === null) position.openUnvalued += quantity;
      else position.openCost += cost;
    }
    return position;
  });
  return { positions, events, totals: totals(positions) };
}

const SUMMED = [
  "buys", "sells", "spent", "received", "openCost", "realised", "realisedCost", "unmatchedProceeds",
  "unvaluedProceeds", "unvaluedCost", "withoutValue", "withoutAmount", "wins", "judgedSells",
];

function totals(positions) {
  const zero = emptyPosition(null, null);
  const out = Object.fromEntries(SUMMED.map((name) => [name, zero[name]]));
  for (const position of positions) {
    for (const name of SUMMED) out[name] += position[name];
  }
  out.unmatchedTokens = positions.filter((position) => position.unmatched > 0n).length;
  return out;
}
