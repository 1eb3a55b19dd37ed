// The table of disposals: one row for each lot of each sale, the newest sale first.

import { toText } from "./decimal.js";
import { day, put, signed, units, whole } from "./format.js";
import { Grid } from "./table.js";

const PLACES = 4;
const DAY_MILLIS = 86_400_000;

/** Whole days between two times of rows. */
export const daysHeld = (bought, sold) => Math.floor((Date.parse(sold) - Date.parse(bought)) / DAY_MILLIS);

/** The lots of all sales with their rows, oldest sale first. */
export function disposalLines(sales, rowAt) {
  return sales.flatMap((sale) => {
    const row = rowAt(sale.at);
    return sale.parts.map((part) => ({ sale, part, row, bought: part.row === null ? null : rowAt(part.row) }));
  });
}

export class Disposals {
  constructor(parent, { chain, onOpen }) {
    this.chain = chain;
    this.list = [];
    this.grid = new Grid(parent, {
      label: "Disposals",
      className: "disposals",
      columns: this.columns(),
      rowAt: (place) => this.list[place],
      count: () => this.list.length,
      on: { sort: () => {}, open: ({ row }) => onOpen(row) },
    });
  }

  columns() {
    const number = (id, title, fill, hint) => ({ id, title, hint, numeric: true, fill });
    const money = (cell, value, show = units) => {
      const { decimals } = this.chain();
      put(cell, value === null ? "unknown" : show(value, decimals, PLACES));
      cell.title = value === null ? "" : toText(value, decimals);
      cell.classList.toggle("unknown", value === null);
    };
    return [
      { id: "sold", title: "Sold (UTC)", fill: (cell, { row }) => {
        cell.textContent = day(row.time);
        cell.title = row.time;
      } },
      { id: "token", title: "Token", fill: (cell, { row }) => {
        cell.textContent = row.token;
        cell.title = row.mint;
      } },
      { id: "acquired", title: "Acquired", fill: (cell, { bought, part }) => {
        cell.textContent = bought ? day(bought.time) : part.matched ? "average" : "not bought here";
        cell.title = bought?.time ?? "";
      } },
      number("days", "Days", (cell, { bought, row }) => {
        cell.textContent = bought ? whole(daysHeld(bought.time, row.time)) : "–";
      }, "Whole days held"),
      number("quantity", "Quantity", (cell, { sale, part }) => {
        put(cell, units(part.quantity, sale.decimals, PLACES));
        cell.title = toText(part.quantity, sale.decimals);
      }),
      number("proceeds", "Proceeds", (cell, { part }) => money(cell, part.proceeds)),
      number("cost", "Cost", (cell, { part }) => money(cell, part.cost)),
      number("realised", "Realised", (cell, { part }) => {
        money(cell, part.gain, signed);
        if (part.gain === null) cell.textContent = "–";
        cell.classList.toggle("gain", part.gain > 0n);
        cell.classList.toggle("loss", part.gain < 0n);
      }),
    ];
  }

  /** `sales` oldest first. */
  show(sales, rowAt) {
    this.list = disposalLines(sales, rowAt).reverse();
    this.grid.refresh("Nothing was sold.");
  }
}
