// The figures of all tokens together.

import { toText } from "./decimal.js";
import { percent, put, signed, units, whole } from "./format.js";

const PLACES = 4;

function entry(term, text, { title, className, unit } = {}) {
  const box = document.createElement("div");
  const [name, value] = [document.createElement("dt"), document.createElement("dd")];
  name.textContent = term;
  put(value, text, unit);
  if (title) value.title = title;
  if (className) value.className = className;
  box.append(name, value);
  return box;
}

function sign(value) {
  return value > 0n ? "gain" : value < 0n ? "loss" : "";
}

export function showSummary(list, { totals, positions }, { symbol, decimals }) {
  const money = (term, value, className) => {
    const text = (className ? signed : units)(value, decimals, PLACES);
    return entry(term, text, { title: `${toText(value, decimals)} ${symbol}`, className, unit: symbol });
  };
  const ofSells = `${whole(totals.wins)} of ${whole(totals.judgedSells)} sells`;
  list.replaceChildren(
    money("Realised", totals.realised, `lead ${sign(totals.realised)}`),
    entry("Win rate", percent(totals.wins, totals.judgedSells), { title: ofSells, className: "lead" }),
    entry("Buys · sells", `${whole(totals.buys)} · ${whole(totals.sells)}`),
    entry("Tokens", whole(positions.length)),
    ...(totals.openingCost > 0n ? [money("Cost of what was carried over", totals.openingCost)] : []),
    money("Paid", totals.spent),
    money("Received", totals.received),
    money("Cost of what is open", totals.openCost),
    money("Unmatched proceeds", totals.unmatchedProceeds),
    money("Proceeds without a cost", totals.unvaluedProceeds),
    entry("Trades without a value", whole(totals.withoutValue)),
  );
}

/** What the figures leave out, in a sentence. */
export function summaryNote({ totals }, { isComplete, isFiltered }) {
  const notes = [];
  if (isFiltered) notes.push("Of the trades that match the filter; lots bought before count with their cost.");
  if (!isComplete) notes.push("Provisional until the history is complete: older buys are still missing.");
  if (totals.unmatchedTokens > 0) {
    notes.push(`${whole(totals.unmatchedTokens)} tokens were sold beyond what was bought here.`);
  }
  if (totals.withoutAmount > 0) notes.push(`${whole(totals.withoutAmount)} rows have no amount.`);
  return notes.join(" ");
}
