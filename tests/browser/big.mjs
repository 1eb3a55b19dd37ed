// A wallet of any size, in front of a real server: its page and all else pass through.

import http from "node:http";

const ROWS_A_LINE = 1000;
const START = Date.UTC(2026, 10, 20);
const BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

function text(seed, chars) {
  let state = (seed + 1) * 2654435761;
  let out = "";
  while (out.length < chars) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    out += BASE58[state % 58];
  }
  return out;
}

/** The row at a place, newest first. */
export function bigRow(place) {
  const token = place % 37;
  const time = new Date(START - place * 61_000).toISOString().slice(0, 19);
  const native = place % 19 === 0 ? "null" : `${place % 7}.${String((place * 7919) % 1_000_000_000).padStart(9, "0")}`;
  return `{"signature":"${text(place, 88)}","side":"${place % 2 ? "buy" : "sell"}","token":"T${token}",` +
    `"tokenMint":"${text(token + 1_000_000, 44)}","amountSol":${native},"amount":${1 + (place % 5000)}.${place % 10}1,` +
    `"dex":"Venue ${place % 6}","blockTime":"${time}+00:00"}`;
}

async function write(response, total) {
  for (let start = 0; start < total; start += ROWS_A_LINE) {
    const rows = [];
    for (let at = start; at < Math.min(start + ROWS_A_LINE, total); at += 1) rows.push(bigRow(at));
    const line = `{"trades":[${rows.join(",")}],"cursor":"c${start}"}\n`;
    if (!response.write(line)) await new Promise((next) => response.once("drain", next));
    if (response.destroyed) return;
    await new Promise((next) => setImmediate(next));
  }
  response.end(`{"complete":true,"tradeCount":${total},"wallet":"big","firstTrade":null}\n`);
}

export async function startBig(target, total) {
  const { hostname, port } = new URL(target);
  const server = http.createServer((request, response) => {
    if (request.url.includes("/history")) {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      write(response, total);
      return;
    }
    const passed = http.request({ hostname, port, path: request.url, method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
    passed.on("error", () => response.destroy());
    request.pipe(passed);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const stop = () => {
    server.closeAllConnections?.();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, stop };
}
