// The loaded rows as a file: the same members, names and digits that the server wrote.

const FIELDS = ["signature", "side", "token", "tokenMint", "amountSol", "amount", "dex", "blockTime"];
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

/** RFC 4180, and a quote before what a spreadsheet would run as a formula. */
function csvField(value) {
  if (value === null) return "";
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvLine(row) {
  return `${members(row).map(csvField).join(",")}\r\n`;
}

export const FORMATS = {
  csv: { kind: "text/csv", head: `${FIELDS.join(",")}\r\n`, line: csvLine },
  ndjson: { kind: "application/x-ndjson", head: "", line: jsonLine },
};

/** `places` into `rows`, as a file. */
export function toBlob(format, rows, places) {
  const { kind, head, line } = FORMATS[format];
  const pieces = [head];
  for (let start = 0; start < places.length; start += ROWS_PER_PIECE) {
    const some = places.slice(start, start + ROWS_PER_PIECE);
    pieces.push(some.map((at) => line(rows[at])).join(""));
  }
  return new Blob(pieces, { type: kind });
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
