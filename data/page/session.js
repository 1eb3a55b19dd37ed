// One wallet being read: its rows, where reading stands, and how fast it goes.

import { Refused, estimate } from "./api.js";
import { Rows } from "./rows.js";
import { readHistory } from "./stream.js";

/** Time over which the rate is taken. */
const RATE_MILLIS = 3000;

export class Session {
  constructor({ onRows, onState }) {
    this.rows = new Rows();
    this.on = { rows: onRows, state: onState };
    this.wallet = null;
    this.state = "idle";
    this.note = "";
    this.error = null;
    this.cursor = null;
    this.final = null;
    /** About how many rows there will be, where the server says. */
    this.expected = null;
    this.stopper = null;
    this.marks = [];
  }

  get isReading() {
    return this.state === "reading" || this.state === "waiting";
  }

  /** Begins a wallet anew. */
  start(wallet) {
    this.stopper?.abort();
    this.rows.clear();
    this.wallet = wallet;
    this.cursor = null;
    this.expected = null;
    this.on.rows(0);
    const run = this.run();
    this.expect();
    return run;
  }

  stop() {
    this.stopper?.abort();
  }

  /** Goes on below the last row that arrived. */
  resume(key) {
    if (key) this.wallet = { ...this.wallet, key };
    return this.run();
  }

  async expect() {
    const { stopper, wallet } = this;
    const expected = await estimate(wallet.address, wallet.chain.slug, stopper.signal);
    if (this.wallet === wallet) this.expected = expected;
  }

  /** The part that is read; `null` where it is not known. */
  progress() {
    if (this.state === "complete") return 1;
    if (this.expected === null || this.rows.length >= this.expected) return null;
    return this.rows.length / this.expected;
  }

  async run() {
    const stopper = new AbortController();
    this.stopper = stopper;
    this.final = null;
    this.error = null;
    this.marks = [];
    this.set("reading");
    const { address, chain, key } = this.wallet;
    const mine = () => this.stopper === stopper;
    const on = {
      trades: (trades, cursor) => mine() && this.take(trades, cursor),
      waiting: (seconds, why) => mine() && this.wait(seconds, why),
    };
    const { signal } = stopper;
    try {
      const { cursor } = this;
      const final = await readHistory({ address, chain: chain.slug, key, cursor, signal, on });
      if (!mine()) return;
      this.final = final;
      this.set("complete");
    } catch (error) {
      if (!mine()) return;
      if (signal.aborted) return this.set("stopped");
      this.error = error;
      this.set("failed", error instanceof Refused ? error.message : String(error));
    }
  }

  take(trades, cursor) {
    this.cursor = cursor;
    if (this.state !== "reading") this.set("reading");
    this.rows.add(trades);
    this.marks.push({ at: performance.now(), count: this.rows.length });
    this.on.rows(trades.length);
  }

  wait(seconds, why) {
    if (seconds === 0) return;
    this.set("waiting", `${why || "nothing new yet"}; asking again in ${seconds} s`);
  }

  set(state, note = "") {
    this.state = state;
    this.note = note;
    this.on.state();
  }

  /** Trades a second lately. */
  rate() {
    const now = performance.now();
    while (this.marks.length > 1 && this.marks[0].at < now - RATE_MILLIS) this.marks.shift();
    if (this.marks.length < 2) return null;
    const [first, last] = [this.marks[0], this.marks.at(-1)];
    return Math.round(((last.count - first.count) * 1000) / Math.max(now - first.at, 1));
  }
}
