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

const part = (row) => ({ amount: row.amount ?? "", currency: row.token });

function againstNative(row, native) {
  const coin = row.native === null ? { amount: "", currency: "" } : { amount: row.native, currency: native };
  let comment = `${row.venue}; ${row.mint}`;
  if (row.native === null) comment += "; a swap whose other side's value is not known";
  if (row.amount === null) comment += "; the token's amount is not known";
  const [sent, received] = row.side === "sell" ? [part(row), coin] : [coin, part(row)];
  return { sent, received, comment, row };
}

/** The swaps of one transaction's rows. */
function swaps(rows, native) {
  const [one, other] = rows;
  const isPair = rows.length === 2 && one.side !== other.side && one.native === other.native
    && one.amount !== null && other.amount !== null;
  if (!isPair) return rows.map((row) => againstNative(row, native));
  const [sold, bought] = one.side === "sell" ? [one, other] : [other, one];
  const comment = `${sold.venue}; ${sold.mint} for ${bought.mint}`;
  return [{ sent: part(sold), received: part(bought), comment, row: sold }];
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
  // A file's rows come in pieces; those of one transaction stand together and may be in two.
  const pieces = (native) => {
    let held = [];
    const write = () => {
      const out = swaps(held, native).map((swap) => line(WRITERS[layout](swap))).join("");
      held = [];
      return out;
    };
    return (rows, isLast) => {
      let out = "";
      for (const row of rows) {
        if (held.length > 0 && held[0].signature !== row.signature) out += write();
        held.push(row);
      }
      return isLast ? out + write() : out;
    };
  };
  return { kind: "text/csv", head: `${HEADS[layout].join(",")}\n`, suffix: `${layout}.csv`, pieces };
}
