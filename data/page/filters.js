// The fields above the trades, and what they mean for the rows.

import { middle, whole } from "./format.js";

const DAY_MILLIS = 86_400_000;

function option(value, text) {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = text;
  return element;
}

const startOf = (day) => (day ? `${day}T00:00:00+00:00` : null);

/** The day after, so that the named one is inside. */
function endOf(day) {
  const start = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(start) ? null : startOf(new Date(start + DAY_MILLIS).toISOString().slice(0, 10));
}

export class Filters {
  constructor(form, rows, onChange) {
    this.rows = rows;
    const field = (name) => form.querySelector(`#filter-${name}`);
    this.fields = { token: field("token"), side: field("side"), venue: field("venue"), from: field("from"), to: field("to") };
    this.clearing = field("clear");
    this.onChange = onChange;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => this.apply());
    form.addEventListener("reset", () => setTimeout(() => this.apply()));
    this.seen = "";
  }

  apply() {
    const { token, side, venue, from, to } = this.fields;
    this.rows.setFilter({
      mint: token.value,
      side: side.value,
      venue: venue.value,
      from: startOf(from.value),
      to: endOf(to.value),
    });
    this.clearing.disabled = !this.rows.isFiltered;
    this.onChange();
  }

  pick(mint) {
    this.fields.token.value = mint;
    this.apply();
  }

  reset() {
    for (const field of Object.values(this.fields)) field.value = "";
    this.seen = "";
    this.offer();
    this.apply();
  }

  /** Offers the tokens and venues that there are. A list that is in use is left alone. */
  offer() {
    const { tokens, venues } = this.rows;
    const now = `${tokens.size} ${venues.size} ${this.rows.length}`;
    const busy = [this.fields.token, this.fields.venue].includes(document.activeElement);
    if (busy || now === this.seen) return;
    this.seen = now;
    const most = (a, b) => b.count - a.count;
    const listed = [...tokens].map(([mint, token]) => ({ mint, ...token })).sort(most);
    fill(this.fields.token, listed.map(({ mint, symbol, count }) =>
      option(mint, `${symbol} · ${middle(mint, 4)} · ${whole(count)}`)));
    const places = [...venues].map(([name, count]) => ({ name, count })).sort(most);
    fill(this.fields.venue, places.map(({ name, count }) => option(name, `${name} · ${whole(count)}`)));
  }
}

function fill(select, options) {
  const { value } = select;
  select.replaceChildren(option("", "All"), ...options);
  select.value = value;
}
