// What a person does with the page beyond reading once: sharing a link, coming back, touching it,
// keeping it open, taking a year's gains away. On a desk and on a phone.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import {
  BINARY, apiRows, ask, chromiumPath, count, download, members, openPage, shot, startDemo, visibleRows,
  waitFigures, waitState,
} from "./support.mjs";

let demo;
let browser;
let rows;

before(async () => {
  demo = await startDemo();
  rows = (await apiRows(demo, demo.wallets.sol.wallet, "sol")).map(members);
  browser = await chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  await demo?.stop();
});

const wallet = () => ({ address: demo.wallets.sol.wallet, key: demo.key });
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
const SIZES = [["desk", {}], ["phone", PHONE]];

async function complete(options) {
  const opened = await openPage(browser, demo.url, options);
  await ask(opened.page, wallet());
  await waitState(opened.page, "Complete");
  await waitFigures(opened.page);
  return opened;
}

/** Clicks with what the device has. */
const press = (page, selector) => (page.context()._options?.hasTouch ? page.tap(selector) : page.click(selector));

/** Numbers as the text that stands in the answer. */
async function pnl(query, { address = demo.wallets.sol.wallet } = {}) {
  const response = await fetch(`${demo.url}/v1/wallets/${address}/pnl?numbers=string&${query}`, {
    headers: { authorization: `Bearer ${demo.key}` },
  });
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return body;
}

async function summary(page) {
  return page.$$eval("#summary div", (all) =>
    Object.fromEntries(all.map((one) => [one.children[0].textContent, one.children[1].title || one.children[1].textContent])));
}

async function waitRealised(page, text) {
  await page.waitForFunction((wanted) => document.querySelector("#summary dd")?.title === wanted, text);
}

for (const [name, options] of SIZES) {
  test(`figures are of the filter, as the API has them for the year: ${name}`, async () => {
    const { page, context } = await complete(options);
    const years = [...new Set(rows.map(({ blockTime }) => blockTime.slice(0, 4)))];
    assert.ok(years.length > 1, "the wallet traded in several years");
    const all = await pnl("");
    let sum = 0;
    for (const year of years) {
      await page.selectOption("#filter-year", year);
      const wanted = await pnl(`year=${year}`);
      await waitRealised(page, `${wanted.totals.realised} SOL`);
      const seen = await summary(page);
      assert.equal(seen["Cost of what is open"], `${wanted.totals.openCost} SOL`);
      assert.equal(seen["Paid"], `${wanted.totals.spent} SOL`);
      assert.equal(seen["Buys · sells"].replaceAll(",", ""), `${wanted.totals.buys} · ${wanted.totals.sells}`);
      assert.equal(await page.textContent("#positions-count"), wanted.tokens.length.toLocaleString("en-US"));
      sum += Number(wanted.totals.realised);
    }
    assert.ok(Math.abs(sum - Number(all.totals.realised)) < 1e-6, "the years add up");
    assert.match(await page.textContent("#summary-title"), /Filtered|filtered/);
    await shot(page, `year-${name}`, { fullPage: name === "phone" });
    await page.click("#filter-clear");
    await waitRealised(page, `${all.totals.realised} SOL`);
    // By side too: sells alone realise the same.
    await page.selectOption("#filter-side", "buy");
    await waitRealised(page, "0 SOL");
    await context.close();
  });

  test(`a position opens by a click or a touch, and shows as many rows as it says: ${name}`, async () => {
    const { page, context } = await complete(options);
    const year = rows.at(-1).blockTime.slice(0, 4);
    await page.selectOption("#filter-year", year);
    await waitRealised(page, `${(await pnl(`year=${year}`)).totals.realised} SOL`);
    await press(page, "#tab-positions");
    const [first] = await visibleRows(page, "#panel-positions");
    const said = Number(first.cells[1].text.replaceAll(",", ""));
    await press(page, "#panel-positions [aria-rowindex='2']");
    assert.equal(await page.isVisible("#panel-trades"), true);
    assert.equal(await page.inputValue("#filter-token"), first.cells[0].title);
    assert.ok((await page.textContent("#trades-count")).startsWith(`${said} of `), await page.textContent("#trades-count"));
    await context.close();
  });

  test(`a link is read at once where the key is known, and Back goes to the wallet before: ${name}`, async () => {
    const { page, context } = await complete(options);
    await page.selectOption("#filter-side", "sell");
    await page.check("input[name=method][value=hifo]", { force: true });
    await press(page, "#tab-disposals");
    const link = page.url();
    assert.ok(!link.includes(demo.key));
    for (const part of ["side=sell", "method=hifo", "view=disposals", "chain=sol"]) assert.ok(link.includes(part), link);
    const wanted = await pnl("method=hifo");

    // Reloaded, all is as it was.
    await page.reload();
    await waitState(page, "Complete");
    await waitRealised(page, `${wanted.totals.realised} SOL`);
    assert.equal(await page.inputValue("#filter-side"), "sell");
    assert.equal(await page.isVisible("#panel-disposals"), true);
    const sells = rows.filter(({ side }) => side === "sell").length;
    assert.equal((await page.textContent("#trades-count")).replaceAll(",", ""), `${sells} of ${rows.length}`);

    // Another wallet, and Back and Forward.
    await ask(page, { address: demo.wallets.eth.wallet, key: demo.key });
    await waitState(page, "Complete");
    assert.equal(await page.inputValue("#filter-side"), "", "a filter belongs to its wallet");
    await page.goBack();
    await page.waitForFunction((address) => document.getElementById("address").value === address, wallet().address);
    await waitState(page, "Complete");
    assert.equal(await count(page), rows.length);
    assert.equal(await page.inputValue("#filter-side"), "sell");
    await page.goForward();
    await page.waitForFunction((address) => document.getElementById("address").value === address, demo.wallets.eth.wallet);
    await waitState(page, "Complete");
    await context.close();

    // In a browser without the key the link fills the form and waits.
    const other = await openPage(browser, demo.url, { ...options, path: new URL(link).hash });
    assert.equal(await other.page.inputValue("#address"), wallet().address);
    assert.equal(await other.page.textContent("#state"), "Nothing read yet");
    await other.page.fill("#key", demo.key);
    await other.page.click("#ask button[type=submit]");
    await waitState(other.page, "Complete");
    await other.context.close();
  });

  test(`wallets read lately are kept under own names: ${name}`, async () => {
    const { page, context } = await complete(options);
    await ask(page, { address: demo.wallets.eth.wallet, key: demo.key });
    await waitState(page, "Complete");
    assert.equal(await page.locator("#recent li").count(), 2);
    await page.locator("#recent li").nth(1).getByRole("button", { name: /^Name / }).click();
    await page.keyboard.type("My Solana");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Read My Solana sol" }).click();
    await waitState(page, "Complete");
    assert.equal(await count(page), rows.length);
    await shot(page, `recent-${name}`);
    await page.reload();
    await page.getByRole("button", { name: "Read My Solana sol" }).waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem("blotter-recent")), null, "for the tab alone");
    await page.getByRole("button", { name: "Forget My Solana" }).click();
    assert.equal(await page.locator("#recent li").count(), 1);
    await context.close();
  });

  test(`a row's panel has it all, and explains it: ${name}`, async () => {
    const { page, context } = await complete({ ...options, permissions: ["clipboard-read", "clipboard-write"] });
    await press(page, "#panel-trades [aria-rowindex='2'] .c-amount");
    const shown = await page.textContent("#panel");
    for (const text of [rows[0].signature, rows[0].tokenMint, rows[0].amount ?? "unknown", rows[0].dex]) {
      assert.ok(shown.includes(text), text);
    }
    await page.getByRole("button", { name: "Copy Transaction" }).click();
    await page.getByText("Copied").waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), rows[0].signature);
    const href = await page.locator("#panel a").last().getAttribute("href");
    assert.equal(href, `https://solscan.io/tx/${rows[0].signature}`);
    await page.getByRole("button", { name: "Explain this transaction" }).click();
    await page.locator("#panel .verdict").waitFor();
    assert.match(await page.textContent("#panel .verdict"), /^A trade: /);
    await shot(page, `panel-${name}`);
    await page.keyboard.press("Escape");
    assert.equal(await page.getAttribute("#panel", "open"), null);
    await context.close();
  });
}

test("new trades come by themselves, marked, above the others", async () => {
  const opened = await openPage(browser, demo.url);
  const { page, context } = opened;
  const text = JSON.stringify;
  const fresh = (number) => ({ ...rows[number], amount: 1, amountSol: 2, signature: `new${number}`, blockTime: "2030-01-01T00:00:00+00:00" });
  let followed = 0;
  await page.route("**/history?*follow=1*", async (route) => {
    followed += 1;
    const at = new URL(route.request().url()).searchParams;
    assert.ok(at.get("cursor"), "it follows from where it is");
    if (followed > 2) return; // stays open
    const lines = followed === 1
      ? [{ trades: [], cursor: "l0", live: true }, { trades: [fresh(1), fresh(2)], cursor: "l1", live: true }]
      : [{ trades: [fresh(3)], cursor: "l2", live: true }];
    const end = { complete: false, cursor: `l${followed}`, tradeCount: 1, wallet: "w" };
    return route.fulfill({ status: 200, contentType: "application/x-ndjson", body: `${[...lines, end].map(text).join("\n")}\n` });
  });
  await ask(page, wallet());
  await waitState(page, "Complete");
  await page.click("#follow");
  await page.waitForFunction(() => document.getElementById("news").textContent === " 3 new");
  await waitState(page, "Following");
  assert.equal(await count(page), rows.length + 3);
  const seen = await visibleRows(page);
  assert.deepEqual(seen.slice(0, 3).map(({ cells }) => cells[6].title), ["new3", "new2", "new1"]);
  assert.equal(seen[3].cells[6].title, rows[0].signature);
  assert.equal(await page.locator("#panel-trades .is-new").count(), 3);
  assert.match(await page.title(), /^\(3\) /);
  await shot(page, "following");
  await page.click("#stop");
  await waitState(page, "Complete");
  assert.equal(await page.isVisible("#follow"), true);
  await context.close();
});

test("a stream that follows the demo stays open, and loses nothing", async () => {
  const { page, context, seen } = await complete();
  await page.click("#follow");
  await waitState(page, "Following");
  await page.waitForTimeout(1500);
  await waitState(page, "Following");
  const asked = seen.requests.filter(({ url }) => url.includes("follow=1"));
  assert.equal(asked.length, 1);
  assert.equal(await count(page), rows.length);
  await page.click("#stop");
  await waitState(page, "Complete");
  await context.close();
});

test("tax files are the program's", async () => {
  const { page, context } = await complete();
  const where = ["--url", demo.url, "--key", demo.key];
  const run = (...args) => execFileSync(BINARY, [...args, ...where], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 26 });
  for (const format of ["koinly", "cointracking"]) {
    const { name, text } = await download(page, `#export-${format}`);
    assert.equal(name, `sol-${wallet().address}.${format}.csv`);
    assert.equal(text, run("history", wallet().address, "--format", format), format);
  }
  const year = rows[0].blockTime.slice(0, 4);
  await page.check("input[name=method][value=lifo]", { force: true });
  await page.selectOption("#filter-year", year);
  await waitRealised(page, `${(await pnl(`method=lifo&year=${year}`)).totals.realised} SOL`);
  const { text } = await download(page, "#export-disposals");
  assert.equal(text, run("pnl", wallet().address, "--method", "lifo", "--year", year, "--disposals", "--format", "csv"));
  await page.click("#tab-disposals");
  await visibleRows(page, "#panel-disposals");
  await shot(page, "disposals");
  await context.close();
});

test("a wallet without trades says so", async () => {
  const { page, context } = await openPage(browser, demo.url, PHONE);
  const line = JSON.stringify({ complete: true, tradeCount: 0, wallet: wallet().address, firstTrade: null });
  await page.route("**/history?*", (route) => route.fulfill({ status: 200, contentType: "application/x-ndjson", body: `${line}\n` }));
  await ask(page, wallet());
  await waitState(page, "Complete");
  await page.getByText("This wallet has no trades.").waitFor();
  const { y } = await page.getByText("This wallet has no trades.").boundingBox();
  await page.getByText("This wallet has no trades.").scrollIntoViewIfNeeded();
  await shot(page, "no-trades", { fullPage: true });
  assert.ok(y > 0);
  await page.click("#tab-positions");
  await page.getByText("No positions.").waitFor();
  await context.close();
});

test("an error that asking again does not mend is shown once, where the eyes are", async () => {
  const { page, context, seen } = await openPage(browser, demo.url, PHONE);
  const error = { code: "VALIDATION_ERROR", message: "the address is a program and no wallet", type: "/errors/not_a_wallet", retryable: false };
  const line = JSON.stringify({ complete: false, cursor: "c", tradeCount: 0, wallet: wallet().address, error });
  await page.route("**/history?*", (route) => route.fulfill({ status: 200, contentType: "application/x-ndjson", body: `${line}\n` }));
  await ask(page, wallet());
  await waitState(page, "Failed");
  await page.waitForTimeout(1500);
  assert.equal(seen.requests.filter(({ url }) => url.includes("/history")).length, 1, "it does not ask again");
  assert.match(await page.textContent("#ask-error"), /no wallet/);
  const inSight = await page.$eval("#ask-error", (element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
  assert.ok(inSight);
  assert.equal(await page.isVisible("#resume"), false, "nothing to resume");
  await shot(page, "not-a-wallet-phone");
  await context.close();
});

test("a phone reads the picture by touch and reaches each transaction", async () => {
  const { page, context } = await complete(PHONE);
  const box = await page.locator("#chart svg").boundingBox();
  const before = await page.textContent("#chart-readout");
  await page.touchscreen.tap(box.x + box.width / 2, box.y + 40);
  const middle = await page.textContent("#chart-readout");
  assert.notEqual(middle, before);
  await page.waitForTimeout(300);
  assert.equal(await page.textContent("#chart-readout"), middle, "it stays when the finger is gone");
  await page.touchscreen.tap(box.x + box.width - 20, box.y + 40);
  assert.notEqual(await page.textContent("#chart-readout"), middle);
  const link = page.locator("#panel-trades [aria-rowindex='2'] .c-tx a");
  assert.equal(await link.getAttribute("href"), `https://solscan.io/tx/${rows[0].signature}`);
  const place = await link.boundingBox();
  assert.ok(place.width >= 24 && place.height >= 24, "large enough for a finger");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
  await shot(page, "phone", { fullPage: true });
  await page.tap("#tab-disposals");
  await visibleRows(page, "#panel-disposals");
  const wide = await page.$eval("#panel-disposals .grid", (grid) => grid.scrollWidth - grid.clientWidth);
  assert.equal(wide, 0, "disposals need no scrolling sideways");
  await shot(page, "phone-disposals", { fullPage: true });
  await context.close();
});
