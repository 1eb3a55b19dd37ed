// The figures of the rows that the filter lets through: counted in steps, so that the page stays
// quick; a newer count ends an older one.

import { whole } from "./format.js";
import { gainsInSteps } from "./pnl.js";
import { showSummary, summaryNote } from "./summary.js";

/** While rows arrive: how often figures are counted again, at least and in parts of their cost. */
const MILLIS_MIN = 1000;
const PAUSE_TIMES = 8;

export class Figures {
  /** `parts`: elements by name; `source()`: rows, chain, method, isWhole. */
  constructor({ parts, positions, disposals, chart, source }) {
    Object.assign(this, { parts, positions, disposals, chart, source });
    this.result = { positions: [], sales: [] };
    this.last = -1;
    this.counting = null;
    this.at = 0;
    this.cost = 0;
  }

  /** Counts again where it is time for it. */
  tick() {
    const pause = Math.max(MILLIS_MIN, this.cost * PAUSE_TIMES);
    if (!this.counting && performance.now() - this.at > pause) this.count();
  }

  async count() {
    const started = performance.now();
    const mine = {};
    this.counting = mine;
    const { rows, chain, method } = this.source();
    // New rows make a new list: this one stays as it is, or grows at its end.
    const all = rows.all;
    const last = all.length - 1;
    const rowAt = (at) => all[last - at];
    const { mint, from, to } = rows.filter;
    const filter = { mint, from, to, passes: rows.passing() };
    const steps = gainsInSteps(all.length, rowAt, chain.decimals, method, filter);
    let step = steps.next();
    while (!step.done) {
      await new Promise((next) => setTimeout(next));
      if (this.counting !== mine) return;
      step = steps.next();
    }
    this.result = step.value;
    this.rowAt = rowAt;
    this.show();
    this.at = performance.now();
    this.cost = this.at - started;
    this.counting = null;
  }

  show() {
    const { rows, chain, isWhole } = this.source();
    const { parts, result, rowAt } = this;
    showSummary(parts.summary, result, chain);
    parts.title.textContent = rows.isFiltered ? "Filtered" : "Summary";
    parts.note.textContent = summaryNote(result, { isComplete: isWhole, isFiltered: rows.isFiltered });
    parts.positionsCount.textContent = whole(result.positions.length);
    const none = isWhole ? "No positions." : "No positions yet.";
    this.positions.show(result.positions, rows.isFiltered ? "No position matches the filter." : none);
    this.disposals.show(result.sales, rowAt);
    parts.disposalsCount.textContent = whole(result.sales.length);
    this.picture(rows, chain);
  }

  /** The picture is of what the filter lets through. */
  picture(rows, { symbol, decimals }) {
    const points = [];
    let total = 0n;
    for (const { at, gain } of this.result.sales) {
      if (gain === null) continue;
      total += gain;
      points.push({ at: Date.parse(this.rowAt(at).time), total });
    }
    const trades = [];
    const passes = rows.passing();
    for (let at = rows.all.length - 1; at >= 0; at -= 1) {
      const row = rows.all[at];
      if (passes(row)) trades.push({ at: Date.parse(row.time), side: row.side });
    }
    const { mint } = rows.filter;
    this.parts.chartTitle.textContent = mint ? `Realised gain, ${rows.tokens.get(mint)?.symbol ?? ""}` : "Realised gain";
    this.chart.show({ points, trades, symbol, decimals });
  }
}
