// The loaded rows as a file: the same members, names and digits that the server wrote.

import { csvField } from "./csv.js";
import { toText } from "./decimal.js";
import { daysHeld, disposalLines } from "./disposals.js";
import { taxFormat } from "./tax.js";

const FIELDS = ["signature", "side", "token", "tokenMint", "amountSol", "amount", "dex", "blockTime"];
const DISPOSAL_FIELDS = [
  "token", "tokenMint", "soldAt", "signature", "acquiredAt", "acquiredBy", "heldDays", "matched", "quantity",
  "proceeds", "cost", "realised",
];
/** Rows joined at a time, so that no text grows to the size of the file. */
const ROWS_PER_PIECE = 5000;

function members(row) {
  return [row.signature, row.side, row.token, row.mint, row.native, row.amount, row.venue, row.time];
}

function jsonLine(row) {
  const isNumber = (name) => name === "amountSol" || name === "amount";
  const parts = members(row).map((value, at) => {
    const name = FIELDS[at];
    return `"${name}":${isNumber(name) ? (value ?? "null") : JSON.stringify(value)}`;
  });
  return `{${parts.join(",")}}\n`;
}

function csvLine(row) {
  return `${members(row).map(csvField).join(",")}\r\n`;
}

const each = (line) => (rows) => rows.map(line).join("");

/** `pieces(rows, isLast)` writes rows that stand together. */
export const FORMATS = {
  csv: { kind: "text/csv", head: `${FIELDS.join(",")}\r\n`, suffix: "csv", pieces: () => each(csvLine) },
  ndjson: { kind: "application/x-ndjson", head: "", suffix: "ndjson", pieces: () => each(jsonLine) },
  koinly: taxFormat("koinly"),
  cointracking: taxFormat("cointracking"),
};

/** `places` into `rows`, as a file. `native`: symbol of the chain's coin; `extent`: what the places are of. */
export function toBlob(format, rows, places, native, extent = { isWhole: true, isFiltered: false }) {
  const { kind, head, pieces: begin } = FORMATS[format];
  const write = begin(native, extent);
  const pieces = [head];
  for (let start = 0; start < places.length; start += ROWS_PER_PIECE) {
    const some = places.slice(start, start + ROWS_PER_PIECE).map((at) => rows[at]);
    pieces.push(write(some, start + ROWS_PER_PIECE >= places.length));
  }
  return new Blob(pieces, { type: kind });
}

/** As `blotter pnl --disposals --format csv` writes them. */
export function disposalsBlob(sales, rowAt, nativeDecimals) {
  const value = (units) => (units === null ? "" : toText(units, nativeDecimals));
  const lines = disposalLines(sales, rowAt).map(({ sale, part, row, bought }) => [
    csvField(row.token), row.mint, row.time, row.signature, bought?.time ?? "", bought?.signature ?? "",
    bought ? String(daysHeld(bought.time, row.time)) : "", String(part.matched),
    toText(part.quantity, sale.decimals), value(part.proceeds), value(part.cost), value(part.gain),
  ].join(","));
  return new Blob([[DISPOSAL_FIELDS.join(","), ...lines].map((line) => `${line}\n`).join("")], { type: "text/csv" });
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
