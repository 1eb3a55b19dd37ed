#!/usr/bin/env node
// Prints a wallet's trades, one a line, newest first.
//
//     node dist/stream.js URL KEY WALLET [CHAIN] [NAME=VALUE ...]

import { Blotter, BlotterError } from "./index.js";

declare const process: { argv: string[]; exitCode?: number };

const [url, key, wallet, chain = "sol", ...rest] = process.argv.slice(2);
if (!url || !key || !wallet) {
  console.error("usage: blotter-stream URL KEY WALLET [CHAIN] [NAME=VALUE ...]");
  process.exitCode = 2;
} else {
  const parameters = Object.fromEntries(rest.map((part) => part.split("=", 2) as [string, string]));
  let count = 0;
  try {
    for await (const trade of new Blotter(url, key).stream(wallet, { chain, ...parameters })) {
      count += 1;
      const { blockTime, side, amount, token, tokenMint, amountSol, dex, signature } = trade;
      console.log([blockTime, side, amount ?? "", token, tokenMint, amountSol ?? "", dex, signature].join("\t"));
    }
    console.error(`${count} trades`);
  } catch (error) {
    if (!(error instanceof BlotterError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
