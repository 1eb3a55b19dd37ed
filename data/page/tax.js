// The layouts that tax programs import, as `blotter history --format` writes them: one line a swap.
// A sell and a buy of one transaction at the same value, or both without one, are one swap; every
// other row is a swap against the chain's coin. Fee columns stay empty: amounts hold the venue's
// fees, and the network's fee is no part of a trade.

import { csvField } from "./csv.js";

const HEADS = {
  koinly: [
    "Date", "Sent Amount", "Sent Currency", "Received Amount", "Received Currency", "Fee Amount", "Fee Currency",
    "Net Worth Amount", "Net Worth Currency", "Label", "Description", "TxHash",
  ],
  cointracking: [
    "Type", "Buy Amount", "Buy Currency", "Sell Amount", "Sell Currency", "Fee", "Fee Currency", "Exchange",
    "Trade-Group", "Comment", "Date", "Liquidity pool (optional)", "Tx-ID (optional)",
  ],
};

const CUT = "; cut here: another row of the same swap may follow";

/** A token that has the name of the coin is named by its address: it would be imported as the coin. */
function part(row, native) {
  const isCoin = row.token.toLowerCase() === native.toLowerCase();
  return { amount: row.amount ?? "", currency: isCoin ? row.mint : row.token };
}

function againstNative(row, native, isCut) {
  const coin = row.native === null ? { amount: "", currency: "" } : { amount: row.native, currency: native };
  let comment = `${row.venue}; ${row.mint}`;
  if (row.native === null) comment += "; a swap whose other side's value is not known";
  if (row.amount === null) comment += "; the token's amount is not known";
  if (isCut) comment += CUT;
  const [sent, received] = row.side === "sell" ? [part(row, native), coin] : [coin, part(row, native)];
  return { sent, received, comment, row };
}

/**
 * The swaps of one transaction's rows. `isCut`: some of its rows may not be among them, and one of these
 * may be the other side of two without a value.
 */
function swaps(rows, native, isCut) {
  const [one, other] = rows;
  const isPair = rows.length === 2 && one.side !== other.side && one.native === other.native
    && one.amount !== null && other.amount !== null && !(isCut && one.native === null);
  if (!isPair) return rows.map((row) => againstNative(row, native, isCut));
  const [sold, bought] = one.side === "sell" ? [one, other] : [other, one];
  let comment = `${sold.venue}; ${sold.mint} for ${bought.mint}`;
  if (sold.native === null) comment += "; its value and coin that was paid in addition are not known";
  return [{ sent: part(sold, native), received: part(bought, native), comment, row: sold }];
}

const WRITERS = {
  koinly({ sent, received, comment, row }) {
    const date = `${row.time.slice(0, 10)} ${row.time.slice(11, 19)} UTC`;
    return [date, sent.amount, sent.currency, received.amount, received.currency, "", "", "", "", "", comment, row.signature];
  },
  cointracking({ sent, received, comment, row }) {
    const [year, month, day] = row.time.slice(0, 10).split("-");
    const kind = sent.amount === "" && received.amount !== "" ? "Deposit"
      : sent.amount !== "" && received.amount === "" ? "Withdrawal" : "Trade";
    const date = `${day}.${month}.${year} ${row.time.slice(11, 19)}`;
    return [
      kind, received.amount, received.currency, sent.amount, sent.currency, "", "", row.venue, "", comment, date, "",
      row.signature,
    ];
  },
};

export function taxFormat(layout) {
  const line = (cells) => `${cells.map((cell) => csvField(cell)).join(",")}\n`;
  // A file's rows come in pieces; those of one transaction stand together and may be in two. What is
  // read ends where `isWhole` is false; a filter takes rows out of any transaction.
  const pieces = (native, { isWhole, isFiltered }) => {
    let held = [];
    const write = (isLast) => {
      const out = swaps(held, native, isFiltered || (isLast && !isWhole)).map((swap) => line(WRITERS[layout](swap))).join("");
      held = [];
      return out;
    };
    return (rows, isLast) => {
      let out = "";
      for (const row of rows) {
        if (held.length > 0 && held[0].signature !== row.signature) out += write(false);
        held.push(row);
      }
      return isLast ? out + write(true) : out;
    };
  };
  return { kind: "text/csv", head: `${HEADS[layout].join(",")}\n`, suffix: `${layout}.csv`, pieces };
}
