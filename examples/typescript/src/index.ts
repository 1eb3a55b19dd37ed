// A client of a blotter server: streams, pages, gains. No dependencies.

import { BlotterError, type LineError, Passing, refusal } from "./errors.js";
import type { Batch, Chain, PageOptions, Pnl, PnlOptions, StreamOptions, Trade, Usage } from "./types.js";

export { BlotterError } from "./errors.js";
export type * from "./types.js";

export interface Settings {
  /** Silence after which a connection counts as dead; a stream sends a blank line every 10 s. */
  silenceMillis?: number;
  /** Failures in a row, without a line between, that are borne; the next one is thrown. */
  failuresMax?: number;
  fetch?: typeof fetch;
}

type Parameters = Record<string, string | number | undefined>;
type Line =
  | { trades: Trade[]; cursor: string; live?: boolean }
  | { complete: true }
  | { complete: false; cursor: string; error?: LineError };

/** The server takes an empty cursor for none: the whole history would come again. */
function refuseEmpty(cursor: string | undefined): void {
  if (cursor === "") throw new RangeError("cursor is empty: leave it out to begin anew");
}

export class Blotter {
  private readonly url: string;
  private readonly silenceMillis: number;
  private readonly failuresMax: number;
  private readonly fetch: typeof fetch;

  constructor(url: string, private readonly key: string, settings: Settings = {}) {
    this.url = url.replace(/\/$/, "");
    this.silenceMillis = settings.silenceMillis ?? 45_000;
    this.failuresMax = settings.failuresMax ?? 8;
    this.fetch = settings.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Every trade once, newest first. With `follow` it goes on with new ones, and never ends. */
  async *stream(wallet: string, options: StreamOptions = {}): AsyncGenerator<Trade, void, undefined> {
    for await (const { trades } of this.batches(wallet, options)) yield* trades;
  }

  /** Trades as they arrive, each with the cursor behind them, until the history is complete. */
  async *batches(wallet: string, options: StreamOptions = {}): AsyncGenerator<Batch, void, undefined> {
    const { signal, follow, cursor: first, ...filter } = options;
    refuseEmpty(first);
    let [cursor, failures] = [first, 0];
    for (;;) {
      let pause = 0;
      try {
        const parameters = { ...filter, follow: follow ? "1" : undefined, cursor, numbers: "string" };
        let ended = false;
        for await (const line of this.lines(wallet, parameters, signal)) {
          if ("trades" in line) {
            cursor = line.cursor;
            failures = 0;
            yield { trades: line.trades, cursor, live: line.live ?? false };
            continue;
          }
          if (line.complete) return;
          cursor = line.cursor;
          if (line.error) throw BlotterError.ofLine(line.error);
          // The stream's window is over: the next one goes on at once.
          ended = true;
          break;
        }
        if (!ended) throw new Error("the connection was cut");
      } catch (error) {
        failures += 1;
        pause = this.pauseAfter(error, failures, signal);
      }
      if (pause > 0) await sleep(pause, signal);
    }
  }

  /** Pages until the last one of a complete history; waits where one is not loaded yet. */
  async *pages(wallet: string, options: PageOptions = {}): AsyncGenerator<Batch, void, undefined> {
    const { signal, cursor: first, limit = 1000, ...filter } = options;
    refuseEmpty(first);
    let cursor: string | undefined = first;
    for (;;) {
      const path = `/v1/wallets/${encodeURIComponent(wallet)}/history`;
      const page = await this.get<{ trades: Trade[]; cursor?: string }>(
        path, { ...filter, limit, cursor, numbers: "string" }, signal,
      );
      cursor = page.cursor;
      if (page.trades.length > 0) yield { trades: page.trades, cursor: cursor ?? null, live: false };
      if (cursor === undefined) return;
      if (page.trades.length === 0) await sleep(1000, signal);
    }
  }

  /** Gains of a complete history: waits until it is complete. */
  async pnl(wallet: string, options: PnlOptions = {}): Promise<Pnl> {
    const { signal, disposals, ...rest } = options;
    const path = `/v1/wallets/${encodeURIComponent(wallet)}/pnl`;
    const parameters = { ...rest, disposals: disposals ? "1" : undefined, numbers: "string" };
    for (;;) {
      const answer = await this.get<Pnl | { complete: false }>(path, parameters, signal);
      if (answer.complete) return answer;
      await sleep(1000, signal);
    }
  }

  async explain(wallet: string, signature: string, chain = "sol", signal?: AbortSignal): Promise<unknown> {
    const path = `/v1/wallets/${encodeURIComponent(wallet)}/explain/${encodeURIComponent(signature)}`;
    return this.get(path, { chain }, signal);
  }

  async coverage(wallet: string, chain = "sol", signal?: AbortSignal): Promise<unknown> {
    return this.get(`/v1/wallets/${encodeURIComponent(wallet)}/coverage`, { chain }, signal);
  }

  async usage(signal?: AbortSignal): Promise<Usage> {
    return this.get<Usage>("/v1/usage", {}, signal);
  }

  async chains(signal?: AbortSignal): Promise<Chain[]> {
    return (await this.get<{ chains: Chain[] }>("/v1/chains", {}, signal)).chains;
  }

  /** One stream's lines; ends without a line with `complete` where the connection was cut. */
  private async *lines(wallet: string, parameters: Parameters, signal?: AbortSignal): AsyncGenerator<Line, void, undefined> {
    signal?.throwIfAborted();
    const silent = new AbortController();
    const stop = () => silent.abort(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listen = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(new Error("the connection fell silent")), this.silenceMillis);
    };
    try {
      listen();
      const response = await this.open(`/v1/wallets/${encodeURIComponent(wallet)}/history`, parameters, silent.signal);
      const reader = response.body!.getReader();
      const decoder = new TextDecoder();
      let rest = "";
      try {
        for (;;) {
          listen();
          const { done, value } = await reader.read();
          if (done) return; // what is left was cut inside a line
          const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
          rest = lines.pop() ?? "";
          // Time that the caller takes is no silence of the server.
          clearTimeout(timer);
          for (const line of lines) {
            if (line.trim() !== "") yield JSON.parse(line) as Line;
          }
        }
      } finally {
        await reader.cancel().catch(() => undefined);
      }
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  private async get<T>(path: string, parameters: Parameters, signal?: AbortSignal): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      try {
        const response = await this.open(path, parameters, signal);
        return (await response.json()) as T;
      } catch (error) {
        await sleep(this.pauseAfter(error, failures, signal), signal);
      }
    }
  }

  private async open(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined) query.set(name, String(value));
    }
    const init: RequestInit = { headers: { authorization: `Bearer ${this.key}` } };
    if (signal) init.signal = signal;
    const response = await this.fetch(`${this.url}${path}?${query}`, init);
    if (!response.ok) throw await refusal(response);
    return response;
  }

  /** Milliseconds to wait; throws what does not pass, and what has failed too often. */
  private pauseAfter(error: unknown, failures: number, signal?: AbortSignal): number {
    const lasts = error instanceof BlotterError && !(error instanceof Passing);
    if (signal?.aborted || lasts || failures > this.failuresMax) throw error;
    if (error instanceof Passing && error.wait !== null) return error.wait * 1000;
    return Math.min(2 ** (failures - 1) * 250, 30_000);
  }
}

function sleep(millis: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, millis);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
