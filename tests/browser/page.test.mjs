// The page in a real browser, against the demo: what a person does, and what must then be there.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { reference } from "./reference.mjs";
import {
  BINARY, apiRows, ask, chromiumPath, count, exported, load, members, openPage, shot, startDemo,
  visibleRows, waitFigures, waitPicture, waitState,
} from "./support.mjs";

const { toText } = await load("decimal.js");
/** Trades of a picture with a mark for each (chart.js). */
const MARKERS_MAX = 160;

let demo;
let browser;
/** The Solana sample as the API tells it, texts and members; every demo has the same one. */
let texts;
let rows;

before(async () => {
  demo = await startDemo();
  texts = await apiRows(demo, demo.wallets.sol.wallet, "sol");
  rows = texts.map(members);
  browser = await chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  await demo?.stop();
});

const wallet = () => ({ address: demo.wallets.sol.wallet, key: demo.key });

function assertRows(found, wanted) {
  assert.equal(found.length, wanted.length);
  const at = found.findIndex((row, place) => row !== wanted[place]);
  if (at >= 0) assert.equal(found[at], wanted[at], `row ${at}`);
}

/** The rows of an NDJSON export. */
async function exportedRows(page) {
  return (await exported(page, "ndjson")).text.trimEnd().split("\n");
}

/** Nothing went wrong, nothing was asked elsewhere, and no address held the key. */
async function assertClean({ page, seen }, key) {
  assert.deepEqual(seen.troubles, []);
  assert.deepEqual(seen.outside, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  for (const { url } of seen.requests) assert.ok(!url.includes(key), url);
  assert.ok(!page.url().includes(key));
}

async function complete(options) {
  const opened = await openPage(browser, demo.url, options);
  await ask(opened.page, wallet());
  await waitState(opened.page, "Complete");
  return opened;
}

test("the table fills while the history is read, and ends with the API's rows", async () => {
  // A server of its own: what is stored would come at once.
  const fresh = await startDemo();
  const opened = await openPage(browser, fresh.url);
  const { page, seen } = opened;
  await shot(page, "idle");
  await ask(page, { address: fresh.wallets.sol.wallet, key: fresh.key });
  const counts = new Set();
  for (;;) {
    const now = await page.evaluate(() => ({
      state: document.getElementById("state").textContent,
      count: document.getElementById("count").textContent,
      inSight: document.querySelectorAll("#panel-trades .grid-body [role=row]").length,
      mayStop: !document.getElementById("stop").hidden,
    }));
    if (now.state === "Complete") break;
    if (now.state !== "Reading" || now.count === "0" || counts.has(now.count)) continue;
    counts.add(now.count);
    assert.ok(now.inSight > 0, "rows are in sight before the end");
    assert.ok(now.mayStop);
    if (counts.size === 3) await shot(page, "filling");
  }
  assert.ok(counts.size >= 3, `the count rose in steps: ${[...counts]}`);
  assert.ok(rows.length >= 2500);
  assert.equal(await count(page), rows.length);
  const { name, text } = await exported(page, "ndjson");
  assert.equal(name, `sol-${wallet().address}.ndjson`);
  assertRows(text.trimEnd().split("\n"), texts);
  const csv = await exported(page, "csv");
  assert.equal(csv.text.trimEnd().split("\r\n").length, rows.length + 1);
  const [request] = seen.requests.filter(({ url }) => url.includes("/history"));
  assert.equal(request.headers.authorization, `Bearer ${fresh.key}`);
  await shot(page, "complete");
  await assertClean(opened, fresh.key);
  await opened.context.close();
  await fresh.stop();
});

test("what is in sight is the API's row at that place, wherever one scrolls", async () => {
  const opened = await complete();
  const { page } = opened;
  const grid = page.locator("#panel-trades .grid");
  assert.equal(Number(await grid.getAttribute("aria-rowcount")), rows.length + 1);
  const check = async () => {
    const seen = await visibleRows(page);
    assert.ok(seen.length > 5 && seen.length < 80, `${seen.length} rows in the document`);
    for (const { place, cells } of seen) {
      const row = rows[place];
      assert.equal(cells[0].text, row.blockTime.replace("T", " ").slice(0, 19));
      assert.equal(cells[1].text, row.side);
      assert.equal(cells[2].text, row.token);
      assert.equal(cells[2].title, row.tokenMint);
      assert.equal(cells[3].title, row.amount ?? "");
      assert.equal(cells[4].title, row.amountSol ?? "");
      assert.equal(cells[4].text === "unknown", row.amountSol === null);
      assert.equal(cells[5].text, row.dex);
      assert.equal(cells[6].title, row.signature);
    }
    return seen.map(({ place }) => place);
  };
  assert.ok((await check()).includes(0));
  await grid.focus();
  await page.keyboard.press("End");
  assert.ok((await check()).includes(rows.length - 1));
  await grid.evaluate((element) => (element.scrollTop = element.scrollHeight / 3));
  await page.waitForFunction((end) => !document.querySelector(`#panel-trades [aria-rowindex="${end}"]`), rows.length + 1);
  await check();
  await opened.context.close();
});

test("a stopped stream goes on from its last line, with nothing twice and nothing lost", async () => {
  // A fresh server: stored rows would come at once.
  const slow = await startDemo();
  const opened = await openPage(browser, slow.url);
  const { page, seen } = opened;
  await ask(page, { address: slow.wallets.sol.wallet, key: slow.key });
  // In the page itself: by the time that a click from outside arrives, all may be read.
  await page.waitForFunction(() => {
    if (Number(document.getElementById("count").textContent.replace(",", "")) <= 100) return false;
    document.getElementById("stop").focus();
    document.getElementById("stop").click();
    return true;
  });
  await waitState(page, "Stopped");
  const stopped = await count(page);
  assert.ok(stopped > 0 && stopped < rows.length, `stopped at ${stopped} of ${rows.length}`);
  assert.equal(await page.evaluate(() => document.activeElement.id), "resume", "the focus is kept");
  await page.waitForTimeout(700);
  assert.equal(await count(page), stopped);
  assert.match(await page.textContent("#summary-note"), /Provisional/);
  await shot(page, "stopped");
  await page.click("#resume");
  await waitState(page, "Complete");
  assertRows(await exportedRows(page), texts);
  const asked = seen.requests.filter(({ url }) => url.includes("/history"));
  assert.equal(asked.length, 2);
  assert.ok(asked[1].url.includes("cursor="));
  assert.deepEqual([seen.troubles, seen.outside], [[], []]);
  await opened.context.close();
  await slow.stop();
});

test("a stream that ends before the history is opened again by itself", async () => {
  const short = await startDemo({ BLOTTER_SERVER_STREAM_WINDOW: "400ms" });
  const opened = await openPage(browser, short.url);
  const { page, seen } = opened;
  await ask(page, { address: short.wallets.eth.wallet, key: short.key });
  assert.equal(await page.inputValue("#chain"), "eth", "guessed from the form");
  await waitState(page, "Complete");
  const asked = seen.requests.filter(({ url }) => url.includes("/history"));
  assert.ok(asked.length > 1, "one window was too short");
  const wanted = await apiRows(short, short.wallets.eth.wallet, "eth");
  assertRows(await exportedRows(page), wanted);
  assert.equal(await page.textContent("#panel-trades .grid-head .c-native"), "ETH");
  await shot(page, "eth");
  assert.deepEqual([seen.troubles, seen.outside], [[], []]);
  await opened.context.close();
  await short.stop();
});

test("a stream that is cut inside a line is opened again at the line before", async () => {
  const opened = await openPage(browser, demo.url);
  const { page, seen } = opened;
  const { key, address } = wallet();
  let cut = 0;
  await page.route("**/history?*", async (route) => {
    cut += 1;
    if (cut > 2) return route.continue();
    const response = await fetch(route.request().url(), { headers: { authorization: `Bearer ${key}` } });
    const text = await response.text();
    const second = text.indexOf("\n", text.indexOf("\n") + 1);
    return route.fulfill({ status: 200, contentType: "application/x-ndjson", body: `\n${text.slice(0, second - 40)}` });
  });
  await ask(page, { address, key });
  await waitState(page, "Complete");
  assert.equal(cut, 3);
  const cursors = seen.requests.filter(({ url }) => url.includes("/history")).map(({ url }) => new URL(url).searchParams.get("cursor"));
  assert.equal(cursors[0], null);
  assert.equal(new Set(cursors).size, 3, "each went on further down");
  assertRows(await exportedRows(page), texts);
  await opened.context.close();
});

test("progress is told where the server knows about how much there is", async () => {
  const opened = await openPage(browser, demo.url);
  const { page, seen } = opened;
  const about = rows.length * 2;
  await page.route("**/v1/billing/estimate", (route) => {
    assert.deepEqual(route.request().postDataJSON(), { addresses: [wallet().address], chain: "sol" });
    const addresses = [{ address: wallet().address, estimateType: "approximate", estimatedTradeCount: about, estimatedSeconds: 9, sampleTrades: [] }];
    return route.fulfill({ json: { addresses } });
  });
  let held;
  await page.route("**/history?*", async (route) => {
    const response = await fetch(route.request().url(), { headers: { authorization: `Bearer ${demo.key}` } });
    const lines = (await response.text()).split("\n").filter((line) => !line.includes("complete"));
    if (held) return route.continue();
    held = lines.length;
    return route.fulfill({ status: 200, contentType: "application/x-ndjson", body: `${lines.slice(0, held - 1).join("\n")}\n{"complete":false,"cursor":"c","error":{"code":"QUOTA_EXCEEDED","message":"used up","type":"/errors/quota_exceeded","retryable":false}}\n` });
  });
  await ask(page, wallet());
  await waitState(page, "Failed");
  assert.match(await page.textContent("#ask-error"), /used up/);
  await page.waitForFunction((text) => document.getElementById("expected").textContent === text, ` of about ${about.toLocaleString("en-US")}`);
  const part = await page.$eval("#progress", (progress) => progress.value);
  assert.ok(part > 0 && part <= 0.5, `${part}`);
  assert.equal(seen.requests.filter(({ url }) => url.includes("estimate"))[0].headers.authorization, undefined);
  await opened.context.close();
});

test("refusals are told where they belong", async () => {
  const opened = await openPage(browser, demo.url);
  const { page, seen } = opened;
  await page.click("#ask button[type=submit]");
  assert.match(await page.textContent("#ask-error"), /Paste a wallet address/);
  await ask(page, { address: "hello", key: "x" });
  assert.match(await page.textContent("#ask-error"), /no address/);
  await ask(page, { ...wallet(), chain: "tron" });
  assert.match(await page.textContent("#ask-error"), /not one of Tron/);
  await ask(page, { ...wallet(), key: "", chain: "sol" });
  assert.match(await page.textContent("#ask-error"), /API key/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "key");
  await ask(page, { ...wallet(), key: "blt_wrong" });
  await waitState(page, "Failed");
  assert.match(await page.textContent("#ask-error"), /does not know this key/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "key");
  assert.equal(await page.getAttribute("#key", "aria-invalid"), "true");
  assert.equal(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]).includes("blt_wrong")), false);
  // The right key then helps.
  await ask(page, wallet());
  await waitState(page, "Complete");
  assert.equal(await page.textContent("#ask-error"), "");
  assert.equal(await page.getAttribute("#key", "aria-invalid"), null);
  assert.deepEqual(seen.troubles, []);
  await opened.context.close();
});

test("the chain follows the address's form and stays where it fits", async () => {
  const opened = await openPage(browser, demo.url);
  const { page } = opened;
  const chainAfter = async (address) => {
    await page.fill("#address", address);
    return page.inputValue("#chain");
  };
  assert.equal(await chainAfter(demo.wallets.eth.wallet), "eth");
  await page.selectOption("#chain", "base");
  assert.equal(await chainAfter(demo.wallets.base.wallet), "base");
  assert.equal(await chainAfter("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"), "tron");
  assert.equal(await chainAfter(demo.wallets.sol.wallet), "sol");
  assert.equal(await chainAfter("nonsense!"), "sol");
  await opened.context.close();
});

test("the key stays in the browser: for the tab, or for longer where asked", async () => {
  const opened = await complete();
  const { page } = opened;
  const stored = () => page.evaluate(() => [localStorage.getItem("blotter-key"), sessionStorage.getItem("blotter-key")]);
  assert.deepEqual(await stored(), [null, demo.key]);
  await page.check("#remember");
  await ask(page, wallet());
  await waitState(page, "Complete");
  assert.deepEqual(await stored(), [demo.key, null]);
  // The address is in the fragment, which browsers keep to themselves; the key is in none.
  await page.reload();
  await page.waitForFunction(() => document.getElementById("address").value !== "");
  assert.equal(await page.inputValue("#address"), wallet().address);
  assert.equal(await page.inputValue("#key"), demo.key);
  assert.ok(!page.url().includes(demo.key));
  // Unticked, it is forgotten at once, not with the next wallet.
  await page.uncheck("#remember");
  assert.equal((await stored())[0], null, "nothing outlives the tab");
  await opened.context.close();
});

test("filters leave what the API's rows say", async () => {
  const opened = await complete();
  const { page } = opened;
  const badge = async () => (await page.textContent("#trades-count")).replaceAll(",", "");
  const expect = async (keep) => {
    const wanted = texts.filter((_, at) => keep(rows[at]));
    assert.ok(wanted.length > 0, "the filter leaves something");
    assert.equal(await badge(), `${wanted.length} of ${rows.length}`);
    assertRows(await exportedRows(page), wanted);
  };
  const mint = rows[3].tokenMint;
  await page.selectOption("#filter-token", mint);
  await expect((row) => row.tokenMint === mint);
  await waitPicture(page, rows[3].token);
  await page.selectOption("#filter-side", "sell");
  await expect((row) => row.tokenMint === mint && row.side === "sell");
  await shot(page, "token");
  await page.click("#filter-clear");
  await page.waitForFunction((all) => document.getElementById("trades-count").textContent.replaceAll(",", "") === all, String(rows.length));
  await page.selectOption("#filter-venue", rows[0].dex);
  await expect((row) => row.dex === rows[0].dex);
  await page.selectOption("#filter-venue", "");
  const [from, to] = [rows[400].blockTime.slice(0, 10), rows[100].blockTime.slice(0, 10)];
  await page.fill("#filter-from", from);
  await page.fill("#filter-to", to);
  await expect((row) => row.blockTime.slice(0, 10) >= from && row.blockTime.slice(0, 10) <= to);
  await page.fill("#filter-from", "2001-01-01");
  await page.fill("#filter-to", "2001-01-02");
  await page.getByText("No trade matches the filter.").waitFor();
  await opened.context.close();
});

test("columns sort by exact value", async () => {
  const opened = await complete();
  const { page } = opened;
  const scaled = (text) => {
    const [whole, fraction = ""] = text.split(".");
    return BigInt(whole + fraction.padEnd(30, "0"));
  };
  const known = rows.filter(({ amountSol }) => amountSol !== null).map(({ amountSol }) => amountSol);
  known.sort((a, b) => (scaled(a) < scaled(b) ? 1 : scaled(a) > scaled(b) ? -1 : 0));
  const header = page.locator("#panel-trades .grid-head .c-native");
  await header.getByRole("button").click();
  assert.equal(await header.getAttribute("aria-sort"), "descending");
  let seen = await visibleRows(page);
  for (const { place, cells } of seen) assert.equal(cells[4].title, known[place]);
  await header.getByRole("button").click();
  assert.equal(await header.getAttribute("aria-sort"), "ascending");
  seen = await visibleRows(page);
  for (const { place, cells } of seen) assert.equal(cells[4].title, known[known.length - 1 - place]);
  await page.getByRole("columnheader", { name: "Time (UTC)" }).getByRole("button").click();
  seen = await visibleRows(page);
  assert.equal(seen[0].cells[6].title, rows[0].signature, "newest first again");
  await opened.context.close();
});

/** The program's own figures, where this build has them. */
function programGains(chain, method) {
  try {
    execFileSync(BINARY, ["pnl", "--help"], { stdio: "ignore" });
  } catch {
    return null;
  }
  const where = ["--chain", chain, "--url", demo.url, "--key", demo.key];
  const args = ["pnl", demo.wallets[chain].wallet, ...where, "--format", "json", "--method", method];
  return execFileSync(BINARY, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

const FIGURES = ["bought", "sold", "open", "openCost", "realised", "unmatched"];
/** The columns of the positions that show them. */
const COLUMNS = [2, 3, 4, 6, 7, 8];

/** All positions that the page shows, by mint. */
async function shownPositions(page, wanted) {
  const found = new Map();
  await page.locator("#panel-positions .grid").focus();
  await page.keyboard.press("Home");
  for (let step = 0; found.size < wanted && step < 200; step += 1) {
    for (const { cells } of await visibleRows(page, "#panel-positions")) found.set(cells[0].title, cells);
    await page.keyboard.press("PageDown");
  }
  assert.equal(found.size, wanted);
  return found;
}

/** The program's JSON against what the page shows. */
function assertAsProgram(told, total, found) {
  const exact = (name, from) => new RegExp(`"${name}":\\s*([-0-9.]+)`).exec(from)[1];
  const [totals, tokens] = [told.indexOf('"totals"'), told.indexOf('"tokens"')];
  for (const name of ["realised", "openCost", "unmatchedProceeds", "unvaluedProceeds", "unvaluedCost"]) {
    assert.equal(exact(name, told.slice(totals, tokens)), total(name), name);
  }
  const list = JSON.parse(told).tokens;
  assert.equal(list.length, found.size);
  const parts = told.slice(tokens).split('"tokenMint"').slice(1);
  list.forEach(({ tokenMint, wins, judgedSells }, at) => {
    const cells = found.get(tokenMint);
    assert.deepEqual(COLUMNS.map((column) => cells[column].title), FIGURES.map((name) => exact(name, parts[at])), tokenMint);
    assert.equal(cells[9].text, judgedSells === 0 ? "–" : `${wins}/${judgedSells}`);
  });
}

for (const [chain, symbol, decimals] of [["sol", "SOL", 9], ["eth", "ETH", 18], ["tron", "TRX", 6]]) {
  test(`gains are a second count's, and the program's, to the last digit: ${chain}`, async (context) => {
    const own = chain === "sol" ? rows : (await apiRows(demo, demo.wallets[chain].wallet, chain)).map(members);
    const { page, context: window } = await openPage(browser, demo.url);
    await ask(page, { address: demo.wallets[chain].wallet, key: demo.key, chain });
    await waitState(page, "Complete");
    for (const method of ["fifo", "lifo", "hifo", "average"]) {
      await page.check(`input[name=method][value=${method}]`, { force: true });
      const wanted = reference(own, decimals, method);
      const total = (name) => toText([...wanted.values()].reduce((sum, one) => sum + one[name], 0n), decimals);
      await page.waitForFunction((text) => document.querySelector("#summary dd")?.title === text, `${total("realised")} ${symbol}`);
      const seen = await page.$$eval("#summary div", (all) =>
        Object.fromEntries(all.map((one) => [one.children[0].textContent, one.children[1].title || one.children[1].textContent])));
      assert.equal(seen["Cost of what is open"], `${total("openCost")} ${symbol}`);
      assert.equal(seen["Unmatched proceeds"], `${total("unmatchedProceeds")} ${symbol}`);
      assert.equal(seen["Proceeds without a cost"], `${total("unvaluedProceeds")} ${symbol}`);
      await page.click("#tab-positions");
      const found = await shownPositions(page, wanted.size);
      for (const [mint, cells] of found) {
        const one = wanted.get(mint);
        const places = { openCost: decimals, realised: decimals };
        assert.deepEqual(COLUMNS.map((column) => cells[column].title), FIGURES.map((name) => toText(one[name], places[name] ?? one.decimals)), mint);
        assert.equal(cells[9].text, one.judgedSells === 0 ? "–" : `${one.wins}/${one.judgedSells}`);
      }
      if (method === "fifo" && chain === "sol") await shot(page, "positions");
      const told = programGains(chain, method);
      if (told === null) context.diagnostic("this build has no `blotter pnl` to compare with");
      else assertAsProgram(told, total, found);
      await page.click("#tab-trades");
    }
    await window.close();
  });
}

test("a position leads to its trades and its picture", async () => {
  const opened = await complete();
  const { page } = opened;
  await waitFigures(page);
  await page.click("#tab-positions");
  const mints = (await visibleRows(page, "#panel-positions")).map(({ cells }) => cells[0].title);
  const trades = (mint) => rows.filter(({ tokenMint }) => tokenMint === mint).length;
  // A picture of very many trades has no marks.
  const place = mints.findIndex((mint) => trades(mint) <= MARKERS_MAX);
  const first = mints[place];
  await page.locator("#panel-positions .grid").focus();
  for (let step = 0; step < place; step += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await page.inputValue("#filter-token"), first);
  assert.equal(await page.isVisible("#panel-trades"), true);
  assert.ok((await visibleRows(page)).every(({ cells }) => cells[2].title === first));
  // The picture is counted in steps too, after the rows are shown.
  await waitPicture(page, rows.find(({ tokenMint }) => tokenMint === first).token);
  assert.equal(await page.locator("#chart .markers path").count(), trades(first), "a mark for each trade");
  // The picture is read by keys too.
  await page.locator("#chart").focus();
  await page.keyboard.press("Home");
  const before = await page.getAttribute("#chart", "aria-valuetext");
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await page.getAttribute("#chart", "aria-valuetext"), before);
  await opened.context.close();
});

test("without a mouse: from the first key to a transaction on its explorer", async () => {
  const opened = await openPage(browser, demo.url);
  const { page, context } = opened;
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.textContent);
  const tabTo = async (wanted) => {
    for (let step = 0; step < 40; step += 1) {
      await page.keyboard.press("Tab");
      if ((await focused()).startsWith(wanted)) return;
    }
    assert.fail(`${wanted} is not reached by Tab`);
  };
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "skip", "the first stop skips ahead");
  await tabTo("address");
  await page.keyboard.type(wallet().address);
  await tabTo("key");
  await page.keyboard.type(demo.key);
  await page.keyboard.press("Enter");
  await waitState(page, "Complete");
  await tabTo("tab-trades");
  await page.keyboard.press("ArrowRight");
  assert.equal(await focused(), "tab-positions");
  await page.keyboard.press("ArrowLeft");
  await tabTo("grid trades");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const active = await page.evaluate(() => document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))?.getAttribute("aria-rowindex"));
  assert.equal(active, "4");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute("#panel", "open"), "", "the row's panel");
  const explorer = page.locator("#panel a").last();
  for (let step = 0; step < 12 && !(await explorer.evaluate((link) => link === document.activeElement)); step += 1) {
    await page.keyboard.press("Tab");
  }
  const [popup] = await Promise.all([context.waitForEvent("page"), page.keyboard.press("Enter")]);
  const request = await popup.waitForEvent("requestfailed").catch(() => null);
  const url = request?.url() ?? popup.url();
  assert.ok(url === "chrome-error://chromewebdata/" || url === `https://solscan.io/tx/${rows[2].signature}`, url);
  const link = page.locator("#panel-trades [aria-rowindex='4'] .c-tx a");
  assert.equal(await link.getAttribute("href"), `https://solscan.io/tx/${rows[2].signature}`);
  assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
  await context.close();
});

test("what changes is said to those who do not see it", async () => {
  const opened = await openPage(browser, demo.url);
  const { page } = opened;
  await page.evaluate(() => {
    window.said = [];
    new MutationObserver(() => window.said.push(document.getElementById("live").textContent))
      .observe(document.getElementById("live"), { childList: true, characterData: true, subtree: true });
  });
  await ask(page, wallet());
  await waitState(page, "Complete");
  const said = await page.evaluate(() => window.said);
  assert.ok(said.some((text) => text.startsWith("Reading")), String(said));
  assert.ok(said.some((text) => text.startsWith("Complete") && text.includes(rows.length.toLocaleString("en-US"))), String(said));
  assert.ok(said.length < 8, "and no more than is bearable");
  await opened.context.close();
});

test("dark where the system is, and where the switch says so", async () => {
  const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)[0]);
  const dark = await complete({ colorScheme: "dark" });
  assert.ok(await ground(dark.page) < 40);
  await shot(dark.page, "dark");
  await dark.page.click("#theme");
  assert.ok(await ground(dark.page) > 200);
  await dark.page.reload();
  assert.ok(await ground(dark.page) > 200, "the choice is kept");
  await dark.context.close();
  const light = await openPage(browser, demo.url, { colorScheme: "light" });
  assert.ok(await ground(light.page) > 200);
  assert.equal(await light.page.getAttribute("#theme", "aria-pressed"), "false");
  await light.page.click("#theme");
  assert.equal(await light.page.getAttribute("#theme", "aria-pressed"), "true");
  assert.ok(await ground(light.page) < 40);
  await light.context.close();
});

test("a phone's width is enough", async () => {
  for (const width of [320, 390]) {
    const opened = await complete({ viewport: { width, height: 800 }, hasTouch: true });
    const { page } = opened;
    const wide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.equal(await wide(), 0, `${width}`);
    assert.ok((await visibleRows(page)).length > 3);
    await shot(page, `narrow-${width}`, { fullPage: true });
    await page.click("#tab-positions");
    assert.equal(await wide(), 0, `${width}, positions`);
    const inside = await page.$eval("#panel-positions .grid", (grid) => grid.scrollWidth - grid.clientWidth);
    assert.equal(inside, 0, "positions need no scrolling sideways");
    await shot(page, `narrow-${width}-positions`);
    await opened.context.close();
  }
});

test("the server's policy forbids what the page never does", async () => {
  const opened = await openPage(browser, demo.url);
  const { page, answer } = opened;
  assert.match(answer.headers()["content-security-policy"], /^default-src 'none'; script-src 'self'/);
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.ran), undefined, "no inline script runs");
  assert.equal((await page.evaluate(() => window.violations)).length, 1, "and the page would know");
  await opened.context.close();
});
