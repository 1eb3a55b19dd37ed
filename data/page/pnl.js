// Positions, realised gains and disposals out of a wallet's rows: exact integers, oldest row first.
//
// Quantities are in units of the most decimals that a token's rows show, values in base units of
// the chain's coin.
//
// - A buy without a value makes a lot without a cost. What is sold from it is no gain and no loss:
//   its proceeds are `unvaluedProceeds`.
// - A sell without a value takes from the lots as any other; the cost that leaves with it is
//   `unvaluedCost`.
// - A sell of more than is held is `unmatched` in the part beyond: tokens that came as a transfer.
// - All rows up to the end of a period enter the lots; figures are of the rows that a filter lets
//   through, so that the gains of years add up to the gain of all time.

import { decimalsOf, toUnits } from "./decimal.js";
import { METHODS, openOf } from "./lots.js";

/** A few milliseconds of work. */
const ROWS_PER_STEP = 2000;

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
    /** Held when the period began, and its known cost. */
    opening: 0n,
    openingCost: 0n,
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

/** Splits a sale's value among its parts, cut down; the last matched one takes what is left. */
function sale(lots, quantity, value) {
  const parts = lots.take(quantity).map((part) => ({ ...part, matched: true, proceeds: null }));
  const matched = parts.reduce((sum, part) => sum + part.quantity, 0n);
  const ofMatched = value === null ? null : (value * matched) / quantity;
  if (value !== null) {
    let rest = ofMatched;
    parts.forEach((part, at) => {
      part.proceeds = at === parts.length - 1 ? rest : (value * part.quantity) / quantity;
      rest -= part.proceeds;
    });
  }
  if (matched < quantity) {
    const proceeds = value === null ? null : value - ofMatched;
    parts.push({ quantity: quantity - matched, cost: null, row: null, matched: false, proceeds });
  }
  let gain = null;
  for (const part of parts) {
    part.gain = part.proceeds === null || part.cost === null ? null : part.proceeds - part.cost;
    if (part.gain !== null) gain = (gain ?? 0n) + part.gain;
  }
  return { quantity, value, parts, gain };
}

/** Adds a sale to a position's figures. */
function sell(position, { quantity, value, parts, gain }) {
  position.sold += quantity;
  if (value === null) position.withoutValue += 1;
  else position.received += value;
  for (const { matched, quantity: part, cost, proceeds, gain: own } of parts) {
    if (!matched) {
      position.unmatched += part;
      position.unmatchedProceeds += proceeds ?? 0n;
    } else if (own !== null) {
      position.realisedCost += cost;
    } else if (proceeds !== null) {
      position.unvaluedProceeds += proceeds;
    } else {
      position.unvaluedCost += cost ?? 0n;
    }
  }
  if (gain === null) return;
  position.realised += gain;
  position.judgedSells += 1;
  if (gain > 0n) position.wins += 1;
}

function buy(position, quantity, value) {
  position.bought += quantity;
  if (value === null) position.withoutValue += 1;
  else position.spent += value;
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
export function gains(count, rowAt, nativeDecimals, method, filter) {
  const steps = gainsInSteps(count, rowAt, nativeDecimals, method, filter);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** What lets every row through. */
const ALL = { mint: "", from: null, to: null, passes: () => true };

/**
 * `rowAt(0)` is the oldest row: `{mint, token, side, amount, native, time}`, amounts as text or
 * `null`. `filter`: figures are of the rows that it `passes`, lots of all rows before its `to`.
 *
 * Returns positions in the order of their last trade, newest first, totals, and `sales`: one
 * `{at, mint, decimals, quantity, value, parts, gain}` for each sell that passes, `gain` `null` where nothing is
 * realised, a part's `row` the place of its purchase or `null`. Yields now and then, so that a page can do other
 * things between.
 */
export function* gainsInSteps(count, rowAt, nativeDecimals, method, filter = ALL) {
  const decimals = scales(count, rowAt);
  yield;
  const books = new Map();
  const sales = [];
  let hasBegun = !filter.from;
  for (let at = 0; at < count; at += 1) {
    if (at % ROWS_PER_STEP === ROWS_PER_STEP - 1) yield;
    const row = rowAt(at);
    if (filter.to && row.time >= filter.to) break;
    if (!hasBegun && row.time >= filter.from) {
      hasBegun = true;
      begin(books);
    }
    if (filter.mint && row.mint !== filter.mint) continue;
    const book = books.get(row.mint) ?? newBook(row, decimals, method);
    // Last in a map is what was set last.
    books.delete(row.mint);
    books.set(row.mint, book);
    enter(book, row, at, { nativeDecimals, counts: filter.passes(row), sales });
  }
  if (!hasBegun) begin(books);
  const positions = [...books.values()].reverse().map(close).filter(isTouched);
  return { positions, sales, totals: totals(positions) };
}

function newBook(row, decimals, method) {
  const position = emptyPosition(row.mint, row.token);
  position.decimals = decimals.get(row.mint);
  return { position, lots: new METHODS[method]() };
}

/** A period begins: what is held is carried over. */
function begin(books) {
  for (const { position, lots } of books.values()) {
    position.opening = lots.held;
    position.openingCost = openOf(lots).cost;
  }
}

function enter({ position, lots }, row, at, { nativeDecimals, counts, sales }) {
  const own = counts ? position : emptyPosition(null, null);
  position.token = row.token;
  own[row.side === "buy" ? "buys" : "sells"] += 1;
  const quantity = toUnits(row.amount, position.decimals);
  const value = toUnits(row.native, nativeDecimals);
  if (quantity === null || quantity === 0n) {
    own.withoutAmount += 1;
  } else if (row.side === "buy") {
    buy(own, quantity, value);
    lots.buy(quantity, value, at);
  } else {
    const sold = sale(lots, quantity, value);
    sell(own, sold);
    if (counts) sales.push({ at, mint: row.mint, decimals: position.decimals, ...sold });
  }
}

function close({ position, lots }) {
  const { cost, unvalued } = openOf(lots);
  position.open = lots.held;
  position.openCost = cost;
  position.openUnvalued = unvalued;
  return position;
}

const isTouched = ({ buys, sells, opening }) => buys + sells > 0 || opening > 0n;

const SUMMED = [
  "buys", "sells", "spent", "received", "openingCost", "openCost", "realised", "realisedCost", "unmatchedProceeds",
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
