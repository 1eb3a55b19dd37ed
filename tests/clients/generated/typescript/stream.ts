// Reads every trade of a wallet with types that a generator made from /openapi.json.
//
//     node dist/stream.js URL KEY WALLET CHAIN
//
// `schema.d.ts` is generated. Lines of a stream come one by one: each is read as the generated type of
// its kind.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Trade = components["schemas"]["Trade"];
type Line = components["schemas"]["StreamLine"];

const [url, key, wallet, chain] = process.argv.slice(2);
if (!url || !key || !wallet || !chain) throw new Error("stream.js URL KEY WALLET CHAIN");
const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${key}` } });

/** One line of tab-separated members; amounts are text with `numbers=string`. */
function text(trade: Trade): string {
  const amounts = [trade.amount, trade.amountSol].map((amount) => {
    if (typeof amount === "number") throw new Error("a number where text was asked for");
    return amount ?? "";
  });
  const members = [trade.blockTime, trade.side, amounts[0], trade.token, trade.tokenMint, amounts[1], trade.dex];
  return [...members, trade.signature].join("\t");
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts.filter((part) => part !== "")) yield JSON.parse(line) as Line;
  }
}

/** All trades, over as many streams as it takes. */
async function streamed(address: string): Promise<string[]> {
  const rows: string[] = [];
  let cursor: string | undefined;
  for (;;) {
    const query = { chain: chain!, numbers: "string" as const, ...(cursor ? { cursor } : {}) };
    const options = { params: { path: { address }, query }, parseAs: "stream" as const };
    const { data, error } = await client.GET("/v1/wallets/{address}/history", options);
    if (error) throw new Error(error.error.code);
    for await (const line of lines(data as ReadableStream<Uint8Array>)) {
      if ("trades" in line) {
        rows.push(...line.trades.map(text));
        cursor = line.cursor;
      } else if (line.complete) {
        return rows;
      } else {
        if (line.error && !line.error.retryable) throw new Error(line.error.code);
        cursor = line.cursor;
      }
    }
  }
}

/** The same by pages. */
async function paged(address: string): Promise<string[]> {
  const rows: string[] = [];
  let cursor: string | undefined;
  do {
    const query = { chain: chain!, numbers: "string" as const, limit: 5000, ...(cursor ? { cursor } : {}) };
    const { data, error } = await client.GET("/v1/wallets/{address}/history", { params: { path: { address }, query } });
    if (error) throw new Error(error.error.code);
    if (!("pageSize" in data)) throw new Error("no page");
    rows.push(...data.trades.map(text));
    cursor = data.cursor;
  } while (cursor);
  return rows;
}

const rows = await streamed(wallet);
if (rows.join("\n") !== (await paged(wallet)).join("\n")) throw new Error("pages differ from the stream");
console.log(rows.join("\n"));
