// A wallet of 200,000 trades: all of them there, few of them in the document.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { bigRow, startBig } from "./big.mjs";
import { ask, chromiumPath, count, members, openPage, shot, startDemo, visibleRows, waitFigures, waitState } from "./support.mjs";

const ROWS = 200_000;
const NODES_MAX = 2500;
let demo;
let big;
let browser;

before(async () => {
  demo = await startDemo();
  big = await startBig(demo.url, ROWS);
  browser = await chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox", "--enable-precise-memory-info"] });
});

after(async () => {
  await browser?.close();
  big?.stop();
  await demo?.stop();
});

const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);

/** The time of each frame while the table scrolls by a screen a frame. */
function scrollFrames(page, frames) {
  return page.$eval("#panel-trades .grid", (grid, wanted) => new Promise((done) => {
    const times = [];
    let last = performance.now();
    const step = (now) => {
      times.push(now - last);
      last = now;
      grid.scrollTop += grid.clientHeight;
      if (times.length < wanted) requestAnimationFrame(step);
      else done(times.slice(1).sort((a, b) => a - b));
    };
    requestAnimationFrame(step);
  }), frames);
}

test("200,000 rows are filtered, sorted and scrolled with few nodes", async (context) => {
  const opened = await openPage(browser, big.url);
  const { page, seen } = opened;
  const started = Date.now();
  await ask(page, { address: demo.wallets.sol.wallet, key: demo.key });
  let most = 0;
  while ((await page.textContent("#state")) !== "Complete") {
    most = Math.max(most, await nodes(page));
    if (Date.now() - started > 240_000) assert.fail(`${await count(page)} rows in four minutes`);
    await page.waitForTimeout(100);
  }
  context.diagnostic(`read in ${Date.now() - started} ms`);
  assert.equal(await count(page), ROWS);
  assert.ok(most < NODES_MAX, `${most} nodes while it filled`);
  const grid = page.locator("#panel-trades .grid");
  assert.equal(Number(await grid.getAttribute("aria-rowcount")), ROWS + 1);
  const check = async (place) => {
    const rows = await visibleRows(page);
    assert.ok(rows.length < 80);
    assert.ok(rows.some((row) => row.place === place), `${place} is in sight`);
    for (const { place: at, cells } of rows) {
      const row = members(bigRow(at));
      assert.deepEqual([cells[3].title, cells[4].title, cells[6].title], [row.amount, row.amountSol ?? "", row.signature]);
    }
  };
  await grid.focus();
  await page.keyboard.press("End");
  await check(ROWS - 1);
  await grid.evaluate((element) => (element.scrollTop = element.scrollHeight / 2));
  await page.waitForFunction((end) => !document.querySelector(`#panel-trades [aria-rowindex="${end}"]`), ROWS + 1);
  const middle = (await visibleRows(page))[0].place;
  assert.ok(Math.abs(middle - ROWS / 2) < 100, `${middle}`);
  await check(middle);
  await page.keyboard.press("Home");
  await check(0);
  const frames = await scrollFrames(page, 120);
  context.diagnostic(`frames while scrolling: half within ${frames[60].toFixed(1)} ms, 95 % within ${frames[113].toFixed(1)} ms`);
  const sorting = Date.now();
  await page.locator("#panel-trades .grid-head .c-native button").click();
  await visibleRows(page);
  context.diagnostic(`sorted in ${Date.now() - sorting} ms`);
  await grid.focus();
  await page.keyboard.press("End");
  await page.waitForFunction((end) => document.querySelector(`#panel-trades [aria-rowindex="${end}"]`), ROWS + 1);
  assert.equal((await visibleRows(page)).at(-1).cells[4].text, "unknown", "what is unknown comes last");
  await page.keyboard.press("Home");
  await page.selectOption("#filter-side", "buy");
  assert.equal(await page.textContent("#trades-count"), "100,000 of 200,000");
  assert.ok(await nodes(page) < NODES_MAX, `${await nodes(page)} nodes`);
  await waitFigures(page);
  await shot(page, "big");
  const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  context.diagnostic(`heap: ${Math.round(heap / 1e6)} MB`);
  assert.deepEqual([seen.troubles, seen.outside], [[], []]);
  await opened.context.close();
});
