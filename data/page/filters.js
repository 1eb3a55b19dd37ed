// The fields above the tables, and what they mean for the rows and the figures.

import { middle, whole } from "./format.js";

const DAY_MILLIS = 86_400_000;
const NONE = { token: "", side: "", dex: "", from: "", to: "" };
const DAY = /^\d{4}-\d\d-\d\d$/;

function option(value, text) {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = text;
  return element;
}

const startOf = (day) => (DAY.test(day) ? `${day}T00:00:00+00:00` : null);

/** The day after, so that the named one is inside. */
function endOf(day) {
  const start = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(start) ? null : startOf(new Date(start + DAY_MILLIS).toISOString().slice(0, 10));
}

export class Filters {
  constructor(form, rows, onChange) {
    this.rows = rows;
    const field = (name) => form.querySelector(`#filter-${name}`);
    this.fields = { token: field("token"), side: field("side"), dex: field("venue"), from: field("from"), to: field("to") };
    this.year = field("year");
    this.clearing = field("clear");
    this.onChange = onChange;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", ({ target }) => (target === this.year ? this.pickYear() : this.take()));
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      this.set({});
    });
    this.values = { ...NONE };
    this.seen = "";
  }

  /** What the fields hold. */
  take() {
    this.set(Object.fromEntries(Object.entries(this.fields).map(([name, field]) => [name, field.value])));
  }

  /** Members that are left out let everything through. */
  set(values) {
    this.values = { ...NONE, ...Object.fromEntries(Object.keys(NONE).map((name) => [name, values[name] ?? ""])) };
    const { token, side, dex, from, to } = this.values;
    this.show();
    this.rows.setFilter({ mint: token, side, venue: dex, from: startOf(from), to: endOf(to) });
    this.clearing.disabled = !this.rows.isFiltered;
    this.onChange();
  }

  pick(mint) {
    this.set({ ...this.values, token: mint });
  }

  pickYear() {
    const year = this.year.value;
    this.set({ ...this.values, from: year && `${year}-01-01`, to: year && `${year}-12-31` });
  }

  /** Another wallet: what it has is not known yet. */
  reset(values = {}) {
    this.seen = "";
    this.offer();
    this.set(values);
  }

  /** A value that no row has stands in its list nevertheless: rows may still come. */
  show() {
    for (const [name, field] of Object.entries(this.fields)) {
      const value = this.values[name];
      field.value = value;
      if (field.value === value || field.tagName !== "SELECT") continue;
      field.append(option(value, middle(value, 6)));
      field.value = value;
    }
    const { from, to } = this.values;
    const year = from.slice(0, 4);
    const isYear = from === `${year}-01-01` && to === `${year}-12-31`;
    this.year.value = isYear ? year : "";
    if (this.year.selectedIndex < 0) this.year.value = "";
  }

  /** Offers the tokens, venues and years that there are. A list that is in use is left alone. */
  offer() {
    const { tokens, venues } = this.rows;
    const now = `${tokens.size} ${venues.size} ${this.rows.length}`;
    const busy = [this.fields.token, this.fields.dex, this.year].includes(document.activeElement);
    if (busy || now === this.seen) return;
    this.seen = now;
    const most = (a, b) => b.count - a.count;
    const listed = [...tokens].map(([mint, token]) => ({ mint, ...token })).sort(most);
    fill(this.fields.token, listed.map(({ mint, symbol, count }) =>
      option(mint, `${symbol} · ${middle(mint, 4)} · ${whole(count)}`)));
    const places = [...venues].map(([name, count]) => ({ name, count })).sort(most);
    fill(this.fields.dex, places.map(({ name, count }) => option(name, `${name} · ${whole(count)}`)));
    fill(this.year, this.rows.years().map((year) => option(year, year)));
    this.show();
  }
}

function fill(select, options) {
  select.replaceChildren(option("", "All"), ...options);
}
