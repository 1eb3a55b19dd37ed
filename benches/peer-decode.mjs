// Times the npm package solana-dex-parser on recorded `getTransaction` answers: text to trades, on
// one core. Prints answers a second of its faster way. Run by compare-decode.sh.
// usage: node peer-decode.mjs FOLDER PACKAGE_FOLDER
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const ROUNDS = 5;
const PASSES = 4;
const [folder, packages] = process.argv.slice(2);
const { DexParser } = createRequire(path.join(packages, 'package.json'))('solana-dex-parser');

const texts = fs.readdirSync(folder).filter((name) => name.endsWith('.json')).sort().map((name) => {
  const recorded = JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8'));
  return JSON.stringify(recorded.rpc.getTransaction);
});
const parser = new DexParser();
// It writes to the console of what it does not know.
const print = console.log;
console.log = console.warn = console.error = () => {};
const ways = {
  parseTrades: (text) => parser.parseTrades(JSON.parse(text)),
  parseAll: (text) => parser.parseAll(JSON.parse(text)),
};
const readable = texts.filter((text) => Object.values(ways).every((way) => {
  try { way(text); return true; } catch { return false; }
}));

function perSecond(way) {
  const started = process.hrtime.bigint();
  for (let pass = 0; pass < PASSES; pass++) readable.forEach(way);
  return PASSES * readable.length * 1e9 / Number(process.hrtime.bigint() - started);
}

let best = ['', 0];
for (const [name, way] of Object.entries(ways)) {
  perSecond(way);
  const rounds = Array.from({ length: ROUNDS }, () => perSecond(way)).sort((a, b) => a - b);
  const median = rounds[Math.floor(ROUNDS / 2)];
  if (median > best[1]) best = [name, median];
}
print(`${Math.round(best[1])} ${best[0]} ${readable.length} ${texts.length}`);
process.exit(0);
