// The table of trades.

import { tokenLink, transactionLink } from "./explorer.js";
import { middle, put, shorten, time, whole } from "./format.js";
import { Grid } from "./table.js";

/** What a first click on a column's head means. */
const DOWN_FIRST = new Set(["time", "native", "amount"]);
const PLACES = 9;

function number(cell, text) {
  put(cell, text === null ? "unknown" : shorten(text, PLACES));
  cell.classList.toggle("unknown", text === null);
  cell.title = text ?? "";
}

/** One link a cell, made once; rows are re-used. Out of the tab order: Enter opens the row's panel. */
function link(cell, text, href) {
  let anchor = cell.firstElementChild;
  if (!anchor) {
    anchor = document.createElement("a");
    anchor.target = "_blank";
    anchor.rel = "noopener noreferrer";
    anchor.tabIndex = -1;
    cell.append(anchor);
  }
  anchor.textContent = text;
  if (href) anchor.href = href;
  else anchor.removeAttribute("href");
}

export class Trades {
  /** `isWhole()`: the history was read to its end. */
  constructor(parent, rows, { chain, isWhole, onOpen }) {
    this.rows = rows;
    this.isWhole = isWhole;
    this.grid = new Grid(parent, {
      label: "Trades",
      className: "trades",
      columns: this.columns(chain),
      rowAt: (place) => rows.at(place),
      count: () => rows.shown.length,
      on: {
        sort: (id) => this.sort(id),
        open: onOpen,
        mark: (element, row) => element.classList.toggle("is-new", row.isNew),
      },
    });
    this.grid.setOrder("time", true);
  }

  columns(chain) {
    return [
      { id: "time", title: "Time (UTC)", sortable: true, fill: (cell, row) => (cell.textContent = time(row.time)) },
      {
        id: "side", title: "Side", sortable: true,
        fill: (cell, row) => {
          cell.textContent = row.side;
          cell.classList.toggle("buy", row.side === "buy");
          cell.classList.toggle("sell", row.side === "sell");
        },
      },
      {
        id: "token", title: "Token", sortable: true,
        fill: (cell, row) => {
          link(cell, row.token, tokenLink(chain(), row.mint));
          cell.title = row.mint;
        },
      },
      { id: "amount", title: "Amount", numeric: true, sortable: true, fill: (cell, row) => number(cell, row.amount) },
      { id: "native", title: "Value", numeric: true, sortable: true, fill: (cell, row) => number(cell, row.native) },
      { id: "venue", title: "Venue", sortable: true, fill: (cell, row) => (cell.textContent = row.venue) },
      {
        id: "tx", title: "Transaction",
        fill: (cell, row) => {
          link(cell, middle(row.signature, 5), transactionLink(chain(), row.signature));
          cell.title = row.signature;
        },
      },
    ];
  }

  sort(id) {
    const { by, down } = this.rows.order;
    this.rows.setOrder(id, by === id ? !down : DOWN_FIRST.has(id));
    this.changed();
    this.grid.toTop();
  }

  /** Filter, order or wallet changed. */
  changed() {
    const { by, down } = this.rows.order;
    this.grid.setOrder(by, down);
    const none = this.isWhole() ? "This wallet has no trades." : "No trades yet.";
    this.grid.refresh(this.rows.length > 0 ? "No trade matches the filter." : none);
  }

  countText() {
    const [shown, all] = [this.rows.shown.length, this.rows.length];
    return shown === all ? whole(all) : `${whole(shown)} of ${whole(all)}`;
  }
}
