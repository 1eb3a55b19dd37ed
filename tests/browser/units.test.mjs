// The page's pure parts, without a browser: numbers, gains, addresses, rows, links, files.

import assert from "node:assert/strict";
import { test } from "node:test";

import { reference } from "./reference.mjs";
import { load } from "./support.mjs";

const { readJson } = await load("json.js");
const { compareDecimals, decimalsOf, priceText, toText, toUnits } = await load("decimal.js");
const { familyOf } = await load("address.js");
const { gains } = await load("pnl.js");
const { Rows, isVenue } = await load("rows.js");
const { fragment, readPlace } = await load("place.js");
const { FORMATS, toBlob } = await load("export.js");
const { transactionLink } = await load("explorer.js");
const { duration, percent, shorten } = await load("format.js");
const { Session } = await load("session.js");
const { coverageText } = await load("coverage.js");

const SOL = 9;
const coin = (text) => toUnits(text, SOL);

/** `side amount native token` a row, oldest first; `?` is unknown. */
function book(lines, method = "fifo") {
  const rows = lines.map((line) => {
    const [side, amount, native, mint = "A"] = line.split(" ");
    const known = (text) => (text === "?" ? null : text);
    return { side, mint, token: mint, amount: known(amount), native: known(native) };
  });
  return gains(rows.length, (at) => rows[at], SOL, method);
}

test("numbers keep every digit", () => {
  const line = '{"trades":[{"amount":123456789012345678901234567890.000000000000000001,"b":1e5,"n":null}],"c":"x\\"\\u00e9\\n","t":true,"e":[],"o":{}}';
  assert.deepEqual(readJson(line), {
    trades: [{ amount: "123456789012345678901234567890.000000000000000001", b: "1e5", n: null }],
    c: 'x"é\n', t: true, e: [], o: {},
  });
});

test("what is no JSON is refused", () => {
  for (const text of ["", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "nul", "01", ".5", "+1", "\"abc", "1 2", "{\"a\":1}}", "\"\\x\"", "[".repeat(99)]) {
    assert.throws(() => readJson(text), SyntaxError, text);
  }
});

test("a string's escapes are read wherever they stand", () => {
  const list = ["plain", 'a"b', "back\\slash", "end\\", "", "\u2028", "😀"];
  assert.deepEqual(readJson(` ${JSON.stringify(list)}\n`), list);
});

test("decimals go to base units and back", () => {
  assert.equal(toUnits("2.0186959", 9), 2018695900n);
  assert.equal(toUnits("0.000000000000000001", 18), 1n);
  assert.equal(toUnits("1.50", 1), 15n);
  for (const wrong of ["-1", "1e5", "1.", ".1", "", "1.55"]) assert.equal(toUnits(wrong, 1), null, wrong);
  assert.equal(toUnits(null, 9), null);
  assert.equal(toText(-2018695900n, 9), "-2.0186959");
  assert.equal(toText(5n, 0), "5");
  assert.equal(toText(1n, 18), "0.000000000000000001");
  assert.equal(decimalsOf("10.250"), 3);
  assert.equal(compareDecimals("10", "9.99"), 1);
  assert.equal(compareDecimals("0.1000000000000000001", "0.1"), 1);
  assert.equal(compareDecimals("1.0", "1"), 0);
});

test("a price is cut, and told to the digits that matter", () => {
  assert.equal(priceText(1n, 9, 3n, 0, 6), "0.000000000333333");
  assert.equal(priceText(5_000_000_000n, 9, 2n, 0, 6), "2.5");
  assert.equal(priceText(0n, 9, 2n, 0, 6), "0");
  assert.equal(priceText(1n, 9, 0n, 0, 6), null);
});

test("shown numbers are grouped, and cut digits are told", () => {
  assert.equal(shorten("1946529.0440318", 4), "1,946,529.0440…");
  assert.equal(shorten("-0.000000123456", 4), "−0.0000001234…");
  assert.equal(shorten("1000", 4), "1,000");
  assert.equal(percent(2, 3), "66.6 %");
  assert.equal(percent(0, 0), "–");
});

test("an address's form tells its family", () => {
  assert.equal(familyOf("9xP3V8Yt9Dt8Hcad7LkZiiSvNAYciuBbLrGChYy7SJo4"), "solana");
  assert.equal(familyOf("11111111111111111111111111111111"), "solana");
  assert.equal(familyOf("0x8E1BE08624231cc1daF2E73394467CdF977a2C7d"), "evm");
  assert.equal(familyOf("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"), "tron");
  for (const wrong of ["", "abc", "0x12", "0OIl11111111111111111111111111111", "vitalik.eth"]) {
    assert.equal(familyOf(wrong), null, wrong);
  }
});

test("first in, first out: the oldest lot is sold first", () => {
  // 10 for 1 and 10 for 3; 15 sold for 6: cost 1 + 1.5, gain 3.5; 5 left, cost 1.5.
  const { positions: [a], totals } = book(["buy 10 1", "buy 10 3", "sell 15 6"]);
  assert.deepEqual([a.realised, a.openCost, a.open, a.wins], [coin("3.5"), coin("1.5"), 5n, 1]);
  assert.deepEqual([totals.realised, totals.spent, totals.received, a.realisedCost], [coin("3.5"), coin("4"), coin("6"), coin("2.5")]);
});

test("average cost: every unit costs the same", () => {
  // 20 for 4; 15 cost 3; gain 3; 5 left, cost 1.
  const { positions: [a] } = book(["buy 10 1", "buy 10 3", "sell 15 6"], "average");
  assert.deepEqual([a.realised, a.openCost, a.open], [coin("3"), coin("1"), 5n]);
});

test("cut shares stay in the lot until it is used up", () => {
  // 3 for 0.000000010: a third is 3 units, then half of 7 is 3, then the rest, 4.
  const { sales, positions: [a] } = book(["buy 3 0.00000001", "sell 1 0.000000005", "sell 1 0.000000003", "sell 1 0.000000001"]);
  assert.deepEqual(sales.map(({ gain }) => gain), [2n, 0n, -3n]);
  assert.deepEqual([a.realised, a.openCost, a.wins, a.judgedSells], [-1n, 0n, 1, 3]);
});

test("what was never bought is unmatched", () => {
  // 4 held of 10 sold for 5: proceeds 2 of it, cost 1; the rest is 6 for 3.
  const { positions: [a], totals } = book(["buy 4 1", "sell 10 5"]);
  assert.deepEqual([a.realised, a.unmatched, a.unmatchedProceeds, a.open], [coin("1"), 6n, coin("3"), 0n]);
  assert.equal(totals.unmatchedTokens, 1);
  const { positions: [b] } = book(["sell 10 5"]);
  assert.deepEqual([b.realised, b.judgedSells, b.unmatched, b.unmatchedProceeds], [0n, 0, 10n, coin("5")]);
});

test("a buy without a value has no cost, and its proceeds are no gain", () => {
  // 2 for 1, 2 for unknown; 3 sold for 3: 2 of them gain 1, 1 brings 1 without a cost.
  const { positions: [a] } = book(["buy 2 1", "buy 2 ?", "sell 3 3"]);
  assert.deepEqual([a.realised, a.unvaluedProceeds, a.openUnvalued, a.openCost], [coin("1"), coin("1"), 1n, 0n]);
  // First in, first out takes the unknown one first where it is the older.
  const older = ["buy 2 ?", "buy 2 1", "sell 3 3"];
  const { positions: [b] } = book(older);
  assert.deepEqual([b.realised, b.unvaluedProceeds, b.openCost], [coin("0.5"), coin("2"), coin("0.5")]);
  // The average takes what has a cost first.
  const { positions: [c] } = book(older, "average");
  assert.deepEqual([c.realised, c.unvaluedProceeds, c.openUnvalued], [coin("1"), coin("1"), 1n]);
});

test("a sell without a value takes lots and realises nothing", () => {
  const { positions: [a], sales } = book(["buy 4 2", "sell 1 ?", "sell 3 3"]);
  assert.deepEqual([a.unvaluedCost, a.realised, a.withoutValue, sales.map(({ gain }) => gain)], [coin("0.5"), coin("1.5"), 1, [null, coin("1.5")]]);
});

test("rows without an amount are counted and nothing else", () => {
  const { positions: [a] } = book(["buy ? 1", "buy 1 1", "sell 0 1", "sell ? ?"]);
  assert.deepEqual([a.buys, a.sells, a.withoutAmount, a.withoutValue], [2, 2, 3, 0]);
  assert.deepEqual([a.open, a.spent, a.received], [1n, coin("1"), 0n]);
});

test("amounts of a token are brought to one scale", () => {
  const { positions: [a] } = book(["buy 1 1", "buy 0.25 1", "sell 1.25 4"]);
  assert.deepEqual([a.decimals, a.bought, a.open, a.realised], [2, 125n, 0n, coin("2")]);
});

test("tokens are apart, the one that traded last comes first", () => {
  const { positions, totals } = book(["buy 1 1 A", "buy 1 2 B", "sell 1 5 A"]);
  assert.deepEqual(positions.map(({ mint }) => mint), ["A", "B"]);
  assert.deepEqual([totals.realised, totals.openCost], [coin("4"), coin("2")]);
});

test("a second way of counting agrees on made-up histories", () => {
  let state = 7;
  const dice = (sides) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % sides;
  };
  for (let round = 0; round < 60; round += 1) {
    const rows = Array.from({ length: 120 }, () => ({
      side: dice(2) ? "buy" : "sell",
      tokenMint: `M${dice(3)}`,
      token: "T",
      amount: dice(12) === 0 ? null : `${dice(50)}.${dice(100)}`,
      amountSol: dice(5) === 0 ? null : `${dice(9)}.${String(dice(1e9)).padStart(9, "0")}`,
    }));
    const last = rows.length - 1;
    const rowAt = (at) => {
      const row = rows[last - at];
      return { side: row.side, mint: row.tokenMint, token: row.token, amount: row.amount, native: row.amountSol };
    };
    for (const method of ["fifo", "lifo", "hifo", "average"]) {
      const { positions } = gains(rows.length, rowAt, SOL, method);
      for (const [mint, wanted] of reference(rows, SOL, method)) {
        const found = positions.find((position) => position.mint === mint);
        for (const name of Object.keys(wanted).filter((key) => key !== "rows")) {
          assert.equal(found[name], wanted[name], `${method} ${mint} ${name}, round ${round}`);
        }
        assert.equal(found.bought + found.unmatched, found.sold + found.open, "units are kept");
        const left = found.openCost + found.realisedCost + found.unvaluedCost;
        assert.equal(found.spent, left, "cost is kept");
        const got = found.realised + found.realisedCost + found.unvaluedProceeds + found.unmatchedProceeds;
        assert.equal(found.received, got, "proceeds are kept");
      }
    }
  }
});

const trade = (at, side, mint, amount, amountSol, dex) => ({
  signature: `s${at}`, side, token: `T${mint}`, tokenMint: mint, amountSol, amount, dex,
  blockTime: `2026-01-${String(28 - at).padStart(2, "0")}T00:00:00+00:00`,
});
const TRADES = [
  trade(1, "sell", "A", "10", "1.5", "X"),
  trade(2, "buy", "B", "9.99", null, "Y"),
  trade(3, "buy", "A", "10.000000000000000000001", "0.5", "Y"),
  trade(4, "buy", "B", null, "2", "X"),
];
const shown = (rows) => rows.shown.map((at) => rows.all[at].signature).join(" ");

test("rows are filtered, and new ones too", () => {
  const rows = new Rows();
  rows.add(TRADES.slice(0, 2));
  rows.setFilter({ side: "buy" });
  rows.add(TRADES.slice(2));
  assert.equal(shown(rows), "s2 s3 s4");
  rows.setFilter({ venue: "Y", mint: "A" });
  assert.equal(shown(rows), "s3");
  rows.clearFilter();
  rows.setFilter({ from: "2026-01-25T00:00:00+00:00", to: "2026-01-27T00:00:00+00:00" });
  assert.equal(shown(rows), "s2 s3");
});

test("rows are sorted by exact value, the unknown last", () => {
  const rows = new Rows();
  rows.add(TRADES);
  rows.setOrder("amount", true);
  assert.equal(shown(rows), "s3 s1 s2 s4");
  rows.setOrder("amount", false);
  assert.equal(shown(rows), "s2 s1 s3 s4");
  rows.setOrder("native", true);
  assert.equal(shown(rows), "s4 s1 s3 s2");
  rows.setOrder("time", false);
  assert.equal(shown(rows), "s4 s3 s2 s1");
  rows.setOrder("venue", false);
  assert.equal(shown(rows), "s1 s4 s2 s3");
});

test("files hold the rows as they came", async () => {
  const rows = new Rows();
  rows.add([{ ...TRADES[0], token: '=A1,"x"', dex: "-1" }, TRADES[3]]);
  const csv = await toBlob("csv", rows.all, [0, 1]).text();
  assert.equal(csv, "signature,side,token,tokenMint,amountSol,amount,dex,blockTime\r\n" +
    `s1,sell,"'=A1,""x""",A,1.5,10,'-1,2026-01-27T00:00:00+00:00\r\n` +
    "s4,buy,TB,B,2,,X,2026-01-24T00:00:00+00:00\r\n");
  const lines = await toBlob("ndjson", rows.all, [1]).text();
  assert.equal(lines, `${JSON.stringify(TRADES[3]).replace('"2"', "2")}\n`);
  assert.deepEqual(Object.keys(FORMATS), ["csv", "ndjson", "koinly", "cointracking"]);
});

// The cases of src/cli/export/tax.rs.
test("a tax file says what its lines lack, and takes no token for the coin", async () => {
  const trade = (signature, side, token, amountSol, amount) =>
    ({ ...TRADES[0], signature, side, token, tokenMint: `${token}Mint`, amountSol, amount, dex: "Orca" });
  const koinly = async (trades, extent) => {
    const rows = new Rows();
    rows.add(trades);
    const text = await toBlob("koinly", rows.all, [...rows.all.keys()], "SOL", extent).text();
    return text.trimEnd().split("\n").slice(1).map((line) => line.replace("2026-01-27 00:00:00 UTC,", ""));
  };
  assert.deepEqual(await koinly([trade("a", "buy", "sol", "2", "6")]), ["2,SOL,6,solMint,,,,,,Orca; solMint,a"]);
  const pair = [trade("b", "sell", "BONK", null, "50"), trade("b", "buy", "WIF", null, "7")];
  const unknown = "its value and coin that was paid in addition are not known";
  assert.deepEqual(await koinly(pair), [`50,BONK,7,WIF,,,,,,Orca; BONKMint for WIFMint; ${unknown},b`]);
  const lacks = "a swap whose other side's value is not known; cut here: another row of the same swap may follow";
  const cut = [`50,BONK,,,,,,,,Orca; BONKMint; ${lacks},b`, `,,7,WIF,,,,,,Orca; WIFMint; ${lacks},b`];
  assert.deepEqual(await koinly(pair, { isWhole: false, isFiltered: false }), cut);
  assert.deepEqual(await koinly([...pair, trade("a", "buy", "X", "1", "1")], { isWhole: false, isFiltered: false }), [
    `50,BONK,7,WIF,,,,,,Orca; BONKMint for WIFMint; ${unknown},b`,
    "1,SOL,1,X,,,,,,Orca; XMint; cut here: another row of the same swap may follow,a",
  ]);
  assert.deepEqual(await koinly(pair, { isWhole: true, isFiltered: true }), cut);
});

test("new rows stand above the others, and keep the order", () => {
  const rows = new Rows();
  rows.add(TRADES.slice(2));
  rows.addNew([TRADES[1], TRADES[0]]);
  assert.equal(shown(rows), "s1 s2 s3 s4");
  assert.deepEqual(rows.all.map(({ isNew }) => isNew), [true, true, false, false]);
  assert.deepEqual(rows.years(), ["2026"]);
  rows.setFilter({ side: "buy" });
  rows.addNew([{ ...TRADES[1], signature: "s0" }]);
  assert.equal(shown(rows), "s0 s2 s3 s4");
});

test("a venue's family is its first words", () => {
  assert.ok(isVenue("Raydium CLMM", "raydium") && isVenue("Orca", "Orca"));
  assert.ok(!isVenue("Raydiumx", "Raydium") && !isVenue("Orca", "Orca v2") && !isVenue("Raydium CLMM", "Raydium C"));
});

test("figures are of the filter's rows, lots of all before its end", () => {
  const at = (year, side, amount, native, venue = "X") =>
    ({ side, mint: "A", token: "A", amount, native, venue, time: `${year}-06-01T00:00:00+00:00`, signature: `${year}${side}` });
  const list = [at(2023, "buy", "10", "10"), at(2024, "buy", "10", "30"), at(2024, "sell", "5", "20", "Y"), at(2025, "sell", "10", "50"), at(2026, "buy", "1", "9")];
  const rows = new Rows();
  rows.all = [...list].reverse();
  const count = (filter) => {
    rows.setFilter({ mint: "", side: "", venue: "", from: null, to: null, ...filter });
    return gains(list.length, (place) => list[place], SOL, "fifo", { ...rows.filter, passes: rows.passing() });
  };
  const year = (of) => count({ from: `${of}-01-01T00:00:00+00:00`, to: `${of + 1}-01-01T00:00:00+00:00` });
  const { totals: { realised, openingCost, openCost, spent }, sales } = year(2025);
  assert.deepEqual([realised, openingCost, openCost, spent], [coin("30"), coin("35"), coin("15"), 0n]);
  assert.deepEqual(sales[0].parts.map(({ row, quantity }) => [row, quantity]), [[0, 5n], [1, 5n]]);
  const all = count({});
  assert.equal(all.totals.realised, [2023, 2024, 2025, 2026].reduce((sum, of) => sum + year(of).totals.realised, 0n));
  const { totals } = count({ venue: "Y" });
  assert.deepEqual([totals.realised, totals.buys, totals.sells], [coin("15"), 0, 1]);
  assert.equal(year(2030).totals.openingCost, all.totals.openCost);
});

test("what the address bar says is read back, and never the key", () => {
  const place = { chain: "eth", address: "0xab", token: "0xc d", from: "2025-01-01", method: "hifo", key: "blt_x" };
  const hash = fragment(place);
  assert.ok(!hash.includes("blt_x"));
  const { key, ...rest } = place;
  assert.deepEqual(readPlace(hash), rest);
  assert.deepEqual(readPlace("#key=blt_x&nonsense"), {});
});

test("links lead to the chain's explorer only", () => {
  const eth = { family: "evm", explorer: "https://etherscan.io" };
  assert.equal(transactionLink(eth, "0xab"), "https://etherscan.io/tx/0xab");
  assert.equal(transactionLink({ family: "tron", explorer: "https://tronscan.org" }, "ab"), "https://tronscan.org/#/transaction/ab");
  assert.equal(transactionLink({ family: "evm", explorer: "javascript:alert(1)" }, "x"), null);
  assert.equal(transactionLink({ family: "evm", explorer: null }, "x"), null);
});

test("coverage names what is open, and opens by itself only then", () => {
  const span = { low: "9", high: "1000", way: "logs", doubts: ["depth"], accepted: false, missing: ["0xa"] };
  const coverage = {
    complete: false, height: "1200", historyCut: "1001", blindSpots: ["inner_calls"],
    meanings: { depth: "too old" }, spans: [{ ...span, low: "1001", accepted: true }, span], gaps: [{ low: "0", high: "8" }],
  };
  assert.deepEqual(coverageText(coverage), {
    title: "Coverage: heights 0 to 1,200, not all read and proved",
    lines: [
      "The nodes keep the history only from height 1,001.",
      "Heights 9 to 1,000, read by logs: depth: too old (0xa).",
      "Heights 0 to 8: not read.",
      "Not seen by any configured way: inner_calls.",
    ],
  });
  assert.deepEqual(coverageText({ ...coverage, height: null }).lines, []);
  const many = coverageText({ ...coverage, gaps: Array(20).fill({ low: "1", high: "2" }) }).lines;
  assert.ok(many.includes("… and 13 more ranges."));
});

test("the time left is that of the rate of late, as long as fewer rows came than are expected", () => {
  const session = new Session({ onRows() {}, onNew() {}, onState() {} });
  const now = performance.now();
  assert.equal(session.secondsLeft(), null);
  session.rows = { length: 1000 };
  session.marks = [{ at: now - 2000, count: 800 }, { at: now, count: 1000 }];
  assert.equal(session.secondsLeft(), null, "nothing is expected");
  session.expected = 7000;
  assert.ok(Math.abs(session.secondsLeft() - 60) <= 2, `${session.secondsLeft()}`);
  session.expected = 900;
  assert.equal(session.secondsLeft(), null, "more came than was expected");
  assert.deepEqual([5, 89, 90, 5399, 5400, 36000].map(duration), ["5 s", "89 s", "2 min", "90 min", "2 h", "10 h"]);
});
