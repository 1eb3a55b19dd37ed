// A client without dependencies, for browsers, Node, Deno and Bun: streams a wallet's history
// through cuts and windows.
//
//     node --experimental-strip-types examples/blotter.ts URL KEY WALLET [CHAIN] [NAME=VALUE ...]
//     deno run --allow-net examples/blotter.ts …      bun examples/blotter.ts …
//
// Node from 22.7 on (from 22.18 on without the flag), Deno from 2.0 on.

export interface Trade {
  signature: string;
  side: "buy" | "sell";
  /** A symbol; symbols collide. */
  token: string;
  tokenMint: string;
  /**
   * Value in the chain's own coin. Numbers of JavaScript keep 15 to 17 digits: for exact sums read
   * the text with a JSON parser that keeps decimals.
   */
  amountSol: number | null;
  amount: number | null;
  dex: string;
  blockTime: string;
}

interface Line {
  trades?: Trade[];
  cursor?: string;
  complete?: boolean;
  error?: { code: string; message: string; type: string; retryable: boolean };
}

export class BlotterError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(`${status} ${code}: ${message}`);
    this.status = status;
    this.code = code;
  }
}

/** Of errors that end a stream for good. */
const STATUS: Record<string, number> = { INVALID_SESSION: 401, QUOTA_EXCEEDED: 402, HISTORY_CUT: 502 };

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export class Blotter {
  private readonly url: string;
  private readonly key: string;

  constructor(url: string, key: string) {
    this.url = url.replace(/\/$/, "");
    this.key = key;
  }

  /** Every trade once, newest first. With follow: "1" it never ends. */
  async *stream(wallet: string, parameters: Record<string, string> = {}): AsyncGenerator<Trade> {
    let cursor: string | undefined = parameters.cursor;
    let silent = 0;
    for (;;) {
      const before = cursor;
      try {
        for await (const line of this.lines(wallet, { ...parameters, ...(cursor ? { cursor } : {}) })) {
          yield* line.trades ?? [];
          cursor = line.cursor ?? cursor;
          if (line.complete) return;
          if (line.error && !line.error.retryable) {
            throw new BlotterError(STATUS[line.error.code] ?? 400, line.error.code, line.error.message);
          }
        }
      } catch (error) {
        if (error instanceof BlotterError) throw error;
        silent = cursor === before ? silent + 1 : 0;
        if (silent === 5) throw error;
      }
      await pause(1000);
    }
  }

  private async *lines(wallet: string, parameters: Record<string, string>): AsyncGenerator<Line> {
    const response = await this.open(wallet, parameters);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return; // a part of a line that is left was cut
        const lines = (rest + value).split("\n");
        rest = lines.pop()!;
        for (const line of lines) {
          if (line.trim() !== "") yield JSON.parse(line) as Line;
        }
      }
    } finally {
      await reader.cancel().catch(() => {});
    }
  }

  private async open(wallet: string, parameters: Record<string, string>): Promise<Response> {
    const query = new URLSearchParams(parameters);
    const url = `${this.url}/v1/wallets/${encodeURIComponent(wallet)}/history?${query}`;
    for (;;) {
      const response = await fetch(url, { headers: { Authorization: `Bearer ${this.key}` } });
      if (response.ok) return response;
      const wait = response.headers.get("retry-after");
      if (wait === null) {
        const { error } = (await response.json()) as { error: { code: string; message: string } };
        throw new BlotterError(response.status, error.code, error.message);
      }
      await pause(Number(wait) * 1000);
    }
  }
}

declare const process: { argv: string[] } | undefined;

const args = typeof process === "undefined" ? [] : process.argv.slice(2);
if (args.length >= 3) {
  const [url, key, wallet, chain = "sol", ...rest] = args;
  const parameters = Object.fromEntries(rest.map((part) => part.split("=", 2)));
  let count = 0;
  for await (const trade of new Blotter(url, key).stream(wallet, { chain, ...parameters })) {
    count += 1;
    const { blockTime, side, amount, token, amountSol, dex } = trade;
    console.log([blockTime, side, amount, token, amountSol, dex].join("\t"));
  }
  console.error(`${count} trades`);
}
