// The table of positions: one row a token.

import { toText, priceText } from "./decimal.js";
import { put, shorten, signed, units, whole } from "./format.js";
import { Grid } from "./table.js";

const PLACES = 4;
const PRICE_DIGITS = 8;

/** Exact order of two quantities in different units. */
function compareUnits(a, aDecimals, b, bDecimals) {
  const [x, y] = [a * 10n ** BigInt(bDecimals), b * 10n ** BigInt(aDecimals)];
  return x < y ? -1 : x > y ? 1 : 0;
}

const quantity = (field) => (a, b) => compareUnits(a[field], a.decimals, b[field], b.decimals);
const value = (field) => (a, b) => compareUnits(a[field], 0, b[field], 0);
const count = (of) => (a, b) => of(a) - of(b);

/** Cost of a whole token, as a quotient: compared crosswise. */
function comparePrice(a, b) {
  const [x, y] = [a, b].map((p) => ({ up: p.openCost * 10n ** BigInt(p.decimals), below: p.open - p.openUnvalued }));
  if (x.below === 0n || y.below === 0n) return compareUnits(x.below, 0, y.below, 0);
  return compareUnits(x.up * y.below, 0, y.up * x.below, 0);
}

const ORDERS = {
  token: (a, b) => b.token.localeCompare(a.token, "en", { sensitivity: "base", numeric: true }),
  trades: count((p) => p.buys + p.sells),
  bought: quantity("bought"),
  sold: quantity("sold"),
  open: quantity("open"),
  price: comparePrice,
  cost: value("openCost"),
  realised: value("realised"),
  unmatched: quantity("unmatched"),
  wins: count((p) => (p.judgedSells === 0 ? -1 : p.wins / p.judgedSells)),
  missing: count((p) => p.withoutValue + p.withoutAmount),
};

export class Positions {
  constructor(parent, { chain, onPick }) {
    this.chain = chain;
    this.list = [];
    this.order = null;
    this.grid = new Grid(parent, {
      label: "Positions",
      className: "positions",
      columns: this.columns(),
      rowAt: (place) => this.list[place],
      count: () => this.list.length,
      on: { sort: (id) => this.sort(id), open: onPick },
    });
  }

  columns() {
    const amount = (field) => (cell, row) => {
      put(cell, row[field] === 0n ? "–" : units(row[field], row.decimals, PLACES));
      cell.title = toText(row[field], row.decimals);
    };
    const number = (id, title, fill, hint) => ({ id, title, hint, numeric: true, sortable: true, fill });
    return [
      {
        id: "token", title: "Token", sortable: true,
        fill: (cell, row) => {
          cell.textContent = row.token;
          cell.title = row.mint;
        },
      },
      number("trades", "Trades", (cell, row) => {
        cell.textContent = whole(row.buys + row.sells);
        cell.title = `${row.buys} buys, ${row.sells} sells`;
      }),
      number("bought", "Bought", amount("bought")),
      number("sold", "Sold", amount("sold")),
      number("open", "Open", amount("open"), "What was bought and not sold"),
      number("price", "Average cost", (cell, row) => {
        const { decimals } = this.chain();
        const text = priceText(row.openCost, decimals, row.open - row.openUnvalued, row.decimals, PRICE_DIGITS);
        put(cell, text === null ? "–" : shorten(text, PRICE_DIGITS));
      }, "Of one open token"),
      number("cost", "Open cost", (cell, row) => {
        const { decimals } = this.chain();
        put(cell, row.openCost === 0n ? "–" : units(row.openCost, decimals, PLACES));
        cell.title = toText(row.openCost, decimals);
      }),
      number("realised", "Realised", (cell, row) => {
        const { decimals } = this.chain();
        put(cell, row.judgedSells === 0 ? "–" : signed(row.realised, decimals, PLACES));
        cell.title = toText(row.realised, decimals);
        cell.classList.toggle("gain", row.realised > 0n);
        cell.classList.toggle("loss", row.realised < 0n);
      }),
      number("unmatched", "Unmatched", amount("unmatched"), "Sold without a buy: it came as a transfer"),
      number("wins", "Wins", (cell, row) => {
        cell.textContent = row.judgedSells === 0 ? "–" : `${whole(row.wins)}/${whole(row.judgedSells)}`;
      }, "Sells with a gain, of those with a cost"),
      number("missing", "No value", (cell, row) => {
        const missing = row.withoutValue + row.withoutAmount;
        cell.textContent = missing === 0 ? "–" : whole(missing);
        cell.title = `${row.withoutValue} without a value, ${row.withoutAmount} without an amount`;
      }, "Trades whose value or amount is unknown"),
    ];
  }

  show(positions, emptyText) {
    this.given = positions;
    this.emptyText = emptyText;
    this.arrange();
  }

  sort(id) {
    const down = this.order?.by === id ? !this.order.down : true;
    this.order = { by: id, down };
    this.grid.setOrder(id, id === "token" ? !down : down);
    this.arrange();
    this.grid.toTop();
  }

  arrange() {
    this.list = [...(this.given ?? [])];
    if (this.order) {
      const sign = this.order.down ? -1 : 1;
      this.list.sort((a, b) => sign * ORDERS[this.order.by](a, b));
    }
    this.grid.refresh(this.emptyText ?? "");
  }
}
