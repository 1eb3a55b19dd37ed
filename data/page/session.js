// One wallet being read: its rows, where reading stands, and how fast it goes; then what is new.

import { Refused, estimate } from "./api.js";
import { Rows } from "./rows.js";
import { readHistory } from "./stream.js";

/** Time over which the rate is taken. */
const RATE_MILLIS = 3000;

export class Session {
  constructor({ onRows, onNew, onState }) {
    this.rows = new Rows();
    this.on = { rows: onRows, fresh: onNew, state: onState };
    this.wallet = null;
    this.state = "idle";
    this.note = "";
    this.error = null;
    this.cursor = null;
    this.final = null;
    /** The whole history was read. */
    this.isWhole = false;
    /** Trades that came while it followed the chain. */
    this.news = 0;
    /** About how many rows there will be, where the server says. */
    this.expected = null;
    this.stopper = null;
    this.marks = [];
  }

  get isReading() {
    return this.state === "reading" || this.state === "waiting";
  }

  get isFollowing() {
    return this.state === "following";
  }

  /** Whether asking again as it is can bring more. Not where the history changed above the cursor. */
  get canResume() {
    return this.state === "stopped" || (this.state === "failed" && ![400, 409].includes(this.error?.status));
  }

  /** Begins a wallet anew. */
  start(wallet) {
    this.stopper?.abort();
    this.rows.clear();
    this.wallet = wallet;
    this.cursor = null;
    this.isWhole = false;
    this.news = 0;
    this.expected = null;
    this.on.rows(0);
    const run = this.run(false);
    this.expect();
    return run;
  }

  stop() {
    this.stopper?.abort();
  }

  /** Goes on below the last row that arrived, or after the newest. */
  resume(key) {
    if (key) this.wallet = { ...this.wallet, key };
    return this.run(this.isWhole);
  }

  /** New trades as they become final. */
  follow() {
    return this.run(true);
  }

  async expect() {
    const { stopper, wallet } = this;
    const expected = await estimate(wallet.address, wallet.chain.slug, stopper.signal);
    if (this.wallet !== wallet) return;
    this.expected = expected;
    this.on.rows(0);
  }

  /** The part that is read; `null` where it is not known. */
  progress() {
    if (this.isWhole) return 1;
    if (this.expected === null || this.rows.length >= this.expected) return null;
    return this.rows.length / this.expected;
  }

  async run(follow) {
    const stopper = new AbortController();
    this.stopper = stopper;
    this.final = null;
    this.error = null;
    this.marks = [];
    this.set(follow ? "following" : "reading");
    const { address, chain, key } = this.wallet;
    const mine = () => this.stopper === stopper;
    const on = {
      trades: (trades, cursor, isLive) => mine() && this.take(trades, cursor, isLive),
      waiting: (seconds, why) => mine() && this.wait(seconds, why),
    };
    const { signal } = stopper;
    try {
      const { cursor } = this;
      const final = await readHistory({ address, chain: chain.slug, key, cursor, follow, signal, on });
      if (!mine()) return;
      this.final = final;
      this.isWhole = true;
      this.set("complete");
    } catch (error) {
      if (!mine()) return;
      if (signal.aborted) return this.set(this.isWhole ? "complete" : "stopped");
      this.error = error;
      // What is shown lacks a row, or has one too many.
      if (error.status === 409) this.isWhole = false;
      this.set("failed", error instanceof Refused ? error.message : String(error));
    }
  }

  take(trades, cursor, isLive) {
    this.cursor = cursor;
    if (this.isWhole) return this.takeNew(trades, isLive);
    if (this.state !== "reading") this.set("reading");
    this.rows.add(trades);
    this.marks.push({ at: performance.now(), count: this.rows.length });
    this.on.rows(trades.length);
  }

  /** A stream that follows begins with what it finds below its cursor, newest first. */
  takeNew(trades, isLive) {
    if (this.note) this.set("following");
    if (trades.length === 0) return;
    if (!isLive) {
      this.rows.add(trades);
      return this.on.fresh(trades.length);
    }
    this.rows.addNew(trades);
    this.news += trades.length;
    this.on.fresh(trades.length);
  }

  wait(seconds, why) {
    if (seconds === 0) return;
    const note = `${why || "nothing new yet"}; asking again in ${seconds} s`;
    this.set(this.isWhole ? "following" : "waiting", note);
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

  /** About how many seconds the rest takes at the rate of late; `null` where that is not known. */
  secondsLeft() {
    const rate = this.rate();
    if (this.isWhole || !rate || this.expected === null || this.rows.length >= this.expected) return null;
    return Math.ceil((this.expected - this.rows.length) / rate);
  }
}
