// A demo server, a browser, and what both say, for the tests of the page.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
export const BINARY = resolve(process.env.BLOTTER ?? join(HERE, "../../target/debug/blotter"));
export const SHOTS = process.env.SHOTS;

/** The page's modules, which node takes as such only beside a package file that says so. */
const modules = mkdtempSync(join(tmpdir(), "blotter-page-"));
cpSync(join(HERE, "../../data/page"), modules, { recursive: true });
writeFileSync(join(modules, "package.json"), '{"type":"module"}');
process.on("exit", () => rmSync(modules, { recursive: true, force: true }));
export const load = (name) => import(join(modules, name));

const running = new Set();
// A test that fails leaves its own behind, for which the file would wait.
after(() => Promise.all([...running].map(stop)));

/** Runs the demo until `stop` is called. */
export async function startDemo(settings = {}) {
  const child = spawn(BINARY, ["demo", "--listen", "127.0.0.1:0"], {
    env: { ...process.env, ...settings },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  const demo = { wallets: {}, said: [], stop: () => stop(child) };
  const take = (line) => {
    demo.said.push(line);
    const [, url] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(line) ?? [];
    const [, key] = /^key +(\S+)/.exec(line) ?? [];
    const [, name, address, chain] = /^(wallet|large) +(\S+) \((\w+),/.exec(line) ?? [];
    if (url) demo.url ??= url;
    if (key) demo.key = key;
    if (name) (demo.wallets[chain] ??= {})[name] = address;
  };
  const ended = new Set();
  await new Promise((done, fail) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        take(line);
        // What it says comes by two pipes, in any order: the curl line ends one, the address the other.
        for (const last of ["curl", "listening"]) if (line.startsWith(last)) ended.add(last);
        if (ended.size === 2) done();
      });
    }
    child.on("exit", () => fail(new Error(`the demo ended: ${demo.said.join("\n")}`)));
  });
  return demo;
}

function stop(child) {
  running.delete(child);
  if (child.exitCode !== null) return undefined;
  return new Promise((done) => {
    child.on("exit", done);
    child.kill("SIGTERM");
  });
}

/** Every row's text as the server wrote it, newest first, read without the page's own reader. */
export async function apiRows(demo, address, chain) {
  const rows = [];
  let cursor = "";
  for (;;) {
    const query = `chain=${chain}${cursor && `&cursor=${cursor}`}`;
    const response = await fetch(`${demo.url}/v1/wallets/${address}/history?${query}`, {
      headers: { authorization: `Bearer ${demo.key}` },
    });
    for (const line of (await response.text()).split("\n").filter((text) => text.trim())) {
      const { trades, cursor: next, complete } = JSON.parse(line);
      if (complete === true) return rows;
      cursor = next;
      if (!trades?.length) continue;
      const list = line.slice(line.indexOf("[") + 1, line.lastIndexOf("]"));
      const parts = list.split('},{"signature":');
      rows.push(...parts.map((part, at) =>
        (at > 0 ? '{"signature":' : "") + part + (at < parts.length - 1 ? "}" : "")));
    }
  }
}

/** A row's members, numbers as the text that stands there. */
export function members(text) {
  const row = JSON.parse(text);
  const number = (name) => {
    const [, found] = new RegExp(`"${name}":([0-9.]+|null)[,}]`).exec(text);
    return found === "null" ? null : found;
  };
  return { ...row, amountSol: number("amountSol"), amount: number("amount") };
}

export function chromiumPath() {
  const names = [process.env.CHROMIUM, "chromium", "chromium-browser", "google-chrome"];
  for (const name of names.filter(Boolean)) {
    try {
      return execFileSync("sh", ["-c", `command -v "${name}"`], { encoding: "utf8" }).trim();
    } catch {
      // The next one.
    }
  }
  throw new Error("no Chromium was found; CHROMIUM may name one");
}

/** A page that notes all it asks for and all that goes wrong in it. */
export async function openPage(browser, base, { path = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const seen = { requests: [], troubles: [], outside: [] };
  await context.route((url) => url.origin !== new URL(base).origin, (route) => route.abort());
  page.on("request", (request) => {
    const url = request.url();
    seen.requests.push({ url, headers: request.headers() });
    if (!url.startsWith(base) && !url.startsWith("blob:") && !url.startsWith("data:")) seen.outside.push(url);
  });
  page.on("pageerror", (error) => seen.troubles.push(String(error)));
  page.on("console", (message) => {
    // What a refused request writes there is the browser's own line.
    const isRefusal = message.text().startsWith("Failed to load resource");
    if (["error", "warning"].includes(message.type()) && !isRefusal) seen.troubles.push(message.text());
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  const answer = await page.goto(base + (path && `/${path}`));
  await page.waitForFunction(() => document.querySelectorAll("#chain option").length > 1);
  return { context, page, seen, answer };
}

export async function ask(page, { address, key, chain }) {
  await page.fill("#address", address);
  if (chain) await page.selectOption("#chain", chain);
  await page.fill("#key", key);
  await page.click("#ask button[type=submit]");
}

export async function waitState(page, state, timeout = 120_000) {
  await page.waitForFunction((wanted) => document.getElementById("state").textContent === wanted, state, { timeout });
}

/** What is counted from all rows is shown: it is counted in steps, after the last row came. */
export async function waitFigures(page) {
  await page.waitForFunction(() =>
    document.querySelector("#summary dd") && !document.getElementById("summary-note").textContent.includes("Provisional"));
}

/** The picture is of one token's trades. */
export async function waitPicture(page, symbol) {
  await page.waitForFunction((title) => document.getElementById("chart-title").textContent === title, `Realised gain, ${symbol}`);
}

export async function count(page) {
  return Number((await page.textContent("#count")).replaceAll(",", ""));
}

/** What an export holds. */
export const exported = (page, format) => download(page, `#export-${format}`);

/** The file that a button gives. */
export async function download(page, button) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  const chunks = [];
  for await (const chunk of await file.createReadStream()) chunks.push(chunk);
  return { name: file.suggestedFilename(), text: Buffer.concat(chunks).toString() };
}

/** The rows in the document, by their place. */
export async function visibleRows(page, panel = "#panel-trades") {
  const row = `${panel} .grid-body [role=row]`;
  await page.locator(row).first().waitFor();
  return page.$$eval(row, (rows) =>
    rows.map((row) => ({
      place: Number(row.getAttribute("aria-rowindex")) - 2,
      cells: [...row.children].map((cell) => ({ text: cell.textContent, title: cell.title })),
    })).sort((a, b) => a.place - b.place));
}

export async function shot(page, name, options = {}) {
  if (!SHOTS) return;
  if (!existsSync(SHOTS)) mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), ...options });
}
