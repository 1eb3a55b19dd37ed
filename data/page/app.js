// Joins the parts: the form asks, the session reads, the tables and the picture show.

import { familyOf } from "./address.js";
import { readChains } from "./api.js";
import { Chart } from "./chart.js";
import { readCoverage, showCoverage } from "./coverage.js";
import { FORMATS, save, toBlob } from "./export.js";
import { Filters } from "./filters.js";
import { day, whole } from "./format.js";
import { forgetKey, saveKey, savedKey, saveTheme } from "./keys.js";
import { gainsInSteps } from "./pnl.js";
import { Positions } from "./positions.js";
import { Session } from "./session.js";
import { showSummary, summaryNote } from "./summary.js";
import { Trades } from "./trades.js";

/** While rows arrive: how often figures are counted again, at least and in parts of their cost. */
const GAINS_MILLIS_MIN = 1000;
const GAINS_PAUSE_TIMES = 8;
const SORT_MILLIS = 1000;
const ANNOUNCE_MILLIS = 15_000;
const TICK_MILLIS = 250;

const by = (id) => document.getElementById(id);
const STATES = {
  idle: "Nothing read yet",
  reading: "Reading",
  waiting: "Waiting",
  stopped: "Stopped",
  complete: "Complete",
  failed: "Failed",
};

const NO_CHAIN = { slug: "sol", family: "solana", symbol: "SOL", decimals: 9, explorer: null };
let chains = [];
const chainOf = (slug) => chains.find((chain) => chain.slug === slug);
const chain = () => session.wallet?.chain ?? NO_CHAIN;

const session = new Session({ onRows: rowsCame, onState: stateChanged });
const { rows } = session;
const trades = new Trades(by("panel-trades"), rows, chain);
const positions = new Positions(by("panel-positions"), { chain, onPick: ({ mint }) => pick(mint) });
const filters = new Filters(by("filters"), rows, filterChanged);
const chart = new Chart(by("chart"), by("chart-readout"));

// --- the form ---

function showError(text, field) {
  by("ask-error").textContent = text;
  for (const id of ["address", "chain", "key"]) by(id).toggleAttribute("aria-invalid", id === field);
  if (field) {
    by(field).setAttribute("aria-invalid", "true");
    by(field).focus();
  }
}

/** The chain follows the address's form, unless the chosen one already fits. */
function guessChain() {
  const family = familyOf(by("address").value.trim());
  if (!family || chainOf(by("chain").value)?.family === family) return;
  const fits = chains.filter((one) => one.family === family);
  const guess = fits.find((one) => one.isLive) ?? fits[0];
  if (guess) by("chain").value = guess.slug;
}

function ask(event) {
  event.preventDefault();
  const [address, key] = [by("address").value.trim(), by("key").value.trim()];
  const chosen = chainOf(by("chain").value);
  const family = familyOf(address);
  if (!address) return showError("Paste a wallet address.", "address");
  if (!family) return showError("This is no address of a known form: base58, 0x… or T….", "address");
  if (!chosen) return showError("The list of chains could not be read; reload the page.", "chain");
  if (chosen.family !== family) return showError(`This address is not one of ${chosen.name}.`, "chain");
  if (!key) return showError("Paste an API key: the server printed one when it began, and `blotter keys create` makes more.", "key");
  showError("");
  saveKey(key, by("remember").checked);
  history.replaceState(null, "", `#${new URLSearchParams({ chain: chosen.slug, address })}`);
  trades.grid.setTitle("native", chosen.symbol);
  session.start({ address, key, chain: chosen });
  filters.reset();
  rows.setOrder("time", true);
  trades.changed();
  countGains();
}

// --- while it reads ---

let sortedAt = 0;
let gainsAt = 0;
let counting = null;
let counted = { result: { events: [] }, last: -1 };
let pictured = "";
let gainsCost = 0;
let announcedAt = 0;
let dirty = false;
let ticking = 0;

function rowsCame() {
  if (!dirty) requestAnimationFrame(showRows);
  dirty = true;
}

function showRows() {
  dirty = false;
  const now = performance.now();
  if (rows.inOrder) {
    trades.grid.grow();
  } else if (now - sortedAt > SORT_MILLIS || !session.isReading) {
    rows.sort();
    trades.grid.refresh();
    sortedAt = now;
  }
  showCounts();
}

function showCounts() {
  const rate = session.state === "reading" ? session.rate() : null;
  by("count").textContent = whole(rows.length);
  by("rate").textContent = rate === null ? "–" : `${whole(rate)}/s`;
  by("reach").textContent = rows.length > 0 ? day(rows.all.at(-1).time) : "–";
  by("trades-count").textContent = trades.countText();
  showProgress();
  document.title = rows.length > 0 ? `${whole(rows.length)} trades · blotter` : "blotter";
}

function showProgress() {
  const part = session.progress();
  if (part === null && session.isReading) by("progress").removeAttribute("value");
  else by("progress").value = part ?? 0;
  by("expected").textContent = part !== null && part < 1 ? ` of about ${whole(session.expected)}` : "";
}

/** What need not follow every row. */
function tick() {
  const now = performance.now();
  showCounts();
  filters.offer();
  if (!counting && now - gainsAt > Math.max(GAINS_MILLIS_MIN, gainsCost * GAINS_PAUSE_TIMES)) countGains();
  if (now - announcedAt > ANNOUNCE_MILLIS) announce(`${whole(rows.length)} trades so far`);
}

function announce(text) {
  announcedAt = performance.now();
  by("live").textContent = text;
}

function stateChanged() {
  const { state, note, isReading, error } = session;
  document.body.dataset.state = state;
  by("state").textContent = STATES[state];
  by("state-note").textContent = note;
  const focused = document.activeElement;
  by("stop").hidden = !isReading;
  by("resume").hidden = !(state === "stopped" || state === "failed");
  // A hidden button loses the focus, which belongs to the one that takes its place.
  if (focused === by("stop") && !by("resume").hidden) by("resume").focus();
  if (focused === by("resume") && !by("stop").hidden) by("stop").focus();
  by("hint").hidden = state !== "idle";
  by("results").hidden = state === "idle" || (state === "failed" && rows.length === 0);
  showProgress();
  clearInterval(ticking);
  if (isReading) {
    ticking = setInterval(tick, TICK_MILLIS);
  } else {
    showRows();
    filters.offer();
    countGains();
  }
  cover();
  if (error?.status === 401) {
    forgetKey();
    showError(`The server does not know this key. ${error.message}`, "key");
  } else if (error) {
    showError(error.message, error.status === 400 ? "address" : null);
  }
  if (state !== "waiting") announce(state === "idle" ? "" : `${STATES[state]}: ${whole(rows.length)} trades. ${note}`);
}

/** What is read and proved stands below a history that is not being read. */
async function cover() {
  const { wallet, state } = session;
  const known = session.isReading || !wallet ? null : await readCoverage(wallet);
  if (session.wallet === wallet && session.state === state) showCoverage(by("coverage"), known);
}

// --- figures ---

/** Counts in steps, so that the page stays quick; a newer count ends an older one. */
async function countGains() {
  const started = performance.now();
  const mine = {};
  counting = mine;
  const { symbol, decimals } = chain();
  const last = rows.length - 1;
  const method = document.querySelector("input[name=method]:checked").value;
  const steps = gainsInSteps(rows.length, (at) => rows.all[last - at], decimals, method);
  let step = steps.next();
  while (!step.done) {
    await new Promise((next) => setTimeout(next));
    if (counting !== mine) return;
    step = steps.next();
  }
  counted = { result: step.value, last };
  showSummary(by("summary"), step.value, { symbol, decimals });
  by("summary-note").textContent = summaryNote(step.value, session.state === "complete");
  by("positions-count").textContent = whole(step.value.positions.length);
  positions.show(step.value.positions);
  showChart();
  gainsAt = performance.now();
  gainsCost = gainsAt - started;
  counting = null;
}

/** The picture is of one token where the filter names one. */
function showChart() {
  const { result: { events }, last } = counted;
  const { symbol, decimals } = chain();
  const { mint } = rows.filter;
  pictured = mint;
  const points = [];
  let total = 0n;
  for (const event of events) {
    if (mint && event.mint !== mint) continue;
    total += event.gain;
    points.push({ at: Date.parse(rows.all[last - event.at].time), total });
  }
  const marks = [];
  for (let at = last; at >= 0; at -= 1) {
    const row = rows.all[at];
    if (!mint || row.mint === mint) marks.push({ at: Date.parse(row.time), side: row.side });
  }
  by("chart-title").textContent = mint ? `Realised gain, ${rows.tokens.get(mint)?.symbol ?? ""}` : "Realised gain";
  chart.show({ points, trades: marks, symbol, decimals });
}

function filterChanged() {
  trades.changed();
  trades.grid.toTop();
  showCounts();
  if (rows.filter.mint !== pictured) showChart();
}

/** From a position to its trades. */
function pick(mint) {
  filters.pick(mint);
  showTab("trades", true);
}

// --- tabs, theme, export ---

const TABS = ["trades", "positions"];

function showTab(wanted, focus) {
  for (const name of TABS) {
    const [tab, isShown] = [by(`tab-${name}`), name === wanted];
    tab.setAttribute("aria-selected", String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
    by(`panel-${name}`).hidden = !isShown;
    if (isShown && focus) tab.focus();
  }
  by("filters").hidden = wanted !== "trades";
}

function exportRows(format) {
  const { address, chain: of } = session.wallet;
  const places = rows.isFiltered ? [...rows.shown].sort((a, b) => a - b) : [...rows.all.keys()];
  const part = session.state === "complete" && !rows.isFiltered ? "" : "-part";
  save(toBlob(format, rows.all, places), `${of.slug}-${address}${part}.${format}`);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function showTheme() {
  by("theme").setAttribute("aria-pressed", String(isDark()));
}

function listen() {
  by("ask").addEventListener("submit", ask);
  by("address").addEventListener("input", guessChain);
  by("stop").addEventListener("click", () => session.stop());
  by("resume").addEventListener("click", () => {
    showError("");
    const key = by("key").value.trim();
    if (key) saveKey(key, by("remember").checked);
    session.resume(key);
  });
  for (const name of TABS) {
    by(`tab-${name}`).addEventListener("click", () => showTab(name, true));
    by(`tab-${name}`).addEventListener("keydown", ({ key }) => {
      if (key === "ArrowLeft" || key === "ArrowRight") showTab(TABS[1 - TABS.indexOf(name)], true);
    });
  }
  for (const format of Object.keys(FORMATS)) {
    by(`export-${format}`).addEventListener("click", () => exportRows(format));
  }
  for (const input of document.querySelectorAll("input[name=method]")) {
    input.addEventListener("change", countGains);
  }
  by("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    saveTheme(theme);
    showTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
}

async function begin() {
  listen();
  showTheme();
  const { key, lasting } = savedKey();
  by("key").value = key;
  by("remember").checked = lasting;
  try {
    chains = await readChains();
  } catch (error) {
    return showError(`The chains could not be read: ${error.message}`);
  }
  by("chain").replaceChildren(...chains.map((one) => {
    const option = new Option(one.isLive ? one.name : `${one.name} (off)`, one.slug);
    return option;
  }));
  const asked = new URLSearchParams(location.hash.slice(1));
  by("address").value = asked.get("address") ?? "";
  if (chainOf(asked.get("chain"))) by("chain").value = asked.get("chain");
  guessChain();
}

begin();
