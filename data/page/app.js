// Joins the parts: the form asks, the session reads, the tables and the picture show, the address
// bar says what is shown.

import { familyOf } from "./address.js";
import { readChains } from "./api.js";
import { Chart } from "./chart.js";
import { readCoverage, showCoverage } from "./coverage.js";
import { Disposals } from "./disposals.js";
import { FORMATS, disposalsBlob, save, toBlob } from "./export.js";
import { Figures } from "./figures.js";
import { Filters } from "./filters.js";
import { day, duration, whole } from "./format.js";
import { forgetKey, isLasting, saveKey, saveTheme, savedKey, setLasting } from "./keys.js";
import { METHODS } from "./lots.js";
import { Panel } from "./panel.js";
import { readPlace, showPlace } from "./place.js";
import { Positions } from "./positions.js";
import { Recent } from "./recent.js";
import { Session } from "./session.js";
import { Trades } from "./trades.js";

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
  following: "Following",
  failed: "Failed",
};

const NO_CHAIN = { slug: "sol", family: "solana", symbol: "SOL", decimals: 9, explorer: null };
let chains = [];
const chainOf = (slug) => chains.find((chain) => chain.slug === slug);
const chain = () => session.wallet?.chain ?? NO_CHAIN;
const method = () => document.querySelector("input[name=method]:checked").value;

const session = new Session({ onRows: rowsCame, onNew: newRowsCame, onState: stateChanged });
const { rows } = session;
const panel = new Panel(by("panel"), () => session.wallet);
const onOpen = (row) => panel.open(row);
const trades = new Trades(by("panel-trades"), rows, { chain, isWhole: () => session.isWhole, onOpen });
const positions = new Positions(by("panel-positions"), { chain, onPick: ({ mint }) => pick(mint) });
const disposals = new Disposals(by("panel-disposals"), { chain, onOpen });
const filters = new Filters(by("filters"), rows, filterChanged);
const chart = new Chart(by("chart"), by("chart-readout"));
const figures = new Figures({
  parts: {
    summary: by("summary"), title: by("summary-title"), note: by("summary-note"), chartTitle: by("chart-title"),
    positionsCount: by("positions-count"), disposalsCount: by("disposals-count"),
  },
  positions,
  disposals,
  chart,
  source: () => ({ rows, chain: chain(), method: method(), isWhole: session.isWhole }),
});
const recent = new Recent(by("recent"), readRecent);

// --- the form ---

function showError(text, field) {
  by("ask-error").textContent = text;
  for (const id of ["address", "chain", "key"]) by(id).removeAttribute("aria-invalid");
  if (field) {
    by(field).setAttribute("aria-invalid", "true");
    by(field).focus();
  }
  if (text) by("ask-error").scrollIntoView({ block: "nearest" });
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
  // Before anything changes: what follows belongs to the new wallet's entry.
  showPlace({ chain: chosen.slug, address }, session.wallet !== null);
  read({ address, key, chain: chosen }, { method: method() });
}

/** Begins a wallet with what the address bar says of filters, method and table. */
function read(wallet, { method: basis, view, ...filter }) {
  showError("");
  setLasting(by("remember").checked);
  saveKey(wallet.key);
  trades.grid.setTitle("native", wallet.chain.symbol);
  if (METHODS[basis]) document.querySelector(`input[name=method][value=${basis}]`).checked = true;
  session.start(wallet);
  rows.setOrder("time", true);
  filters.reset(filter);
  if (TABS.includes(view)) showTab(view, false);
  by("status").scrollIntoView({ block: "nearest" });
}

function readRecent({ chain: slug, address }) {
  [by("address").value, by("chain").value] = [address, slug];
  by("ask").requestSubmit();
}

// --- the address bar ---

/** What is shown, as the address bar says it. */
function place() {
  const { wallet } = session;
  if (!wallet) return {};
  const [basis, view] = [method(), TABS.find((name) => !by(`panel-${name}`).hidden)];
  return {
    chain: wallet.chain.slug,
    address: wallet.address,
    ...filters.values,
    method: basis === "fifo" ? "" : basis,
    view: view === "trades" ? "" : view,
  };
}

/** Reads what the address bar names; without a key the form waits for one. */
function goToPlace() {
  const { chain: slug, address = "", ...rest } = readPlace();
  const named = chainOf(slug);
  by("address").value = address;
  if (named) by("chain").value = named.slug;
  guessChain();
  const { wallet } = session;
  if (wallet && wallet.address === address && wallet.chain === named) return showRest(rest);
  const key = by("key").value.trim();
  const chosen = chainOf(by("chain").value);
  if (key && chosen && familyOf(address) === chosen.family) read({ address, key, chain: chosen }, rest);
}

/** The same wallet under another filter. */
function showRest({ method: basis = "fifo", view = "trades", ...filter }) {
  const input = METHODS[basis] && document.querySelector(`input[name=method][value=${basis}]`);
  if (input) input.checked = true;
  filters.set(filter);
  if (TABS.includes(view)) showTab(view, false);
}

// --- while it reads ---

let sortedAt = 0;
let announcedAt = 0;
let dirty = false;
let ticking = 0;

function rowsCame() {
  if (!dirty) requestAnimationFrame(showRows);
  dirty = true;
}

let remembered = null;

/** A wallet that the server has an answer for is one to come back to. */
function remember() {
  const { wallet, isWhole } = session;
  if (!wallet || wallet === remembered || (rows.length === 0 && !isWhole)) return;
  remembered = wallet;
  recent.add({ chain: wallet.chain.slug, address: wallet.address });
}

function showRows() {
  dirty = false;
  remember();
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

/** New rows stand above the others, marked until the next wallet. */
function newRowsCame(count) {
  trades.changed();
  filters.offer();
  figures.count();
  showCounts();
  announce(`${whole(count)} new ${count === 1 ? "trade" : "trades"}`);
}

function showCounts() {
  const rate = session.state === "reading" ? session.rate() : null;
  by("count").textContent = whole(rows.length);
  by("news").textContent = session.news > 0 ? ` ${whole(session.news)} new` : "";
  by("rate").textContent = rate === null ? "–" : `${whole(rate)}/s`;
  by("reach").textContent = rows.length > 0 ? day(rows.all.at(-1).time) : "–";
  by("trades-count").textContent = trades.countText();
  showProgress();
  const news = session.news > 0 ? `(${whole(session.news)}) ` : "";
  document.title = rows.length > 0 ? `${news}${whole(rows.length)} trades · blotter` : "blotter";
}

function showProgress() {
  const part = session.progress();
  if (part === null && session.isReading) by("progress").removeAttribute("value");
  else by("progress").value = part ?? 0;
  const left = session.state === "reading" ? session.secondsLeft() : null;
  by("left").textContent = left === null ? "" : ` about ${duration(left)} left`;
  by("expected").textContent = part !== null && part < 1 ? ` of about ${whole(session.expected)}` : "";
}

/** What need not follow every row. */
function tick() {
  showCounts();
  filters.offer();
  figures.tick();
  if (performance.now() - announcedAt > ANNOUNCE_MILLIS) announce(`${whole(rows.length)} trades so far`);
}

function announce(text) {
  announcedAt = performance.now();
  by("live").textContent = text;
}

/** A hidden button loses the focus, which belongs to the one that takes its place. */
function showButtons() {
  const shown = {
    stop: session.isReading || session.isFollowing,
    resume: session.canResume,
    follow: session.state === "complete",
  };
  const focused = Object.keys(shown).find((id) => by(id) === document.activeElement);
  for (const [id, isShown] of Object.entries(shown)) by(id).hidden = !isShown;
  if (focused && !shown[focused]) by(Object.keys(shown).find((id) => shown[id]) ?? "status").focus();
}

function stateChanged() {
  const { state, note, isReading, error } = session;
  document.body.dataset.state = state;
  by("state").textContent = STATES[state];
  by("state-note").textContent = note;
  showButtons();
  by("hint").hidden = state !== "idle";
  by("results").hidden = state === "idle" || (state === "failed" && rows.length === 0);
  showProgress();
  clearInterval(ticking);
  if (isReading) {
    ticking = setInterval(tick, TICK_MILLIS);
  } else if (state !== "following") {
    trades.changed();
    showRows();
    filters.offer();
    figures.count();
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

// --- filters, tabs, theme, export ---

function filterChanged() {
  trades.changed();
  trades.grid.toTop();
  showCounts();
  figures.count();
  if (session.wallet) showPlace(place(), false);
}

/** From a position to its trades. */
function pick(mint) {
  filters.pick(mint);
  showTab("trades", true);
}

const TABS = ["trades", "positions", "disposals"];

function showTab(wanted, focus) {
  for (const name of TABS) {
    const [tab, isShown] = [by(`tab-${name}`), name === wanted];
    tab.setAttribute("aria-selected", String(isShown));
    tab.tabIndex = isShown ? 0 : -1;
    by(`panel-${name}`).hidden = !isShown;
    if (isShown && focus) tab.focus();
  }
  if (session.wallet) showPlace(place(), false);
}

function exportRows(format) {
  const { address, chain: of } = session.wallet;
  const places = rows.isFiltered ? [...rows.shown].sort((a, b) => a - b) : [...rows.all.keys()];
  const part = session.isWhole && !rows.isFiltered ? "" : "-part";
  const { suffix } = FORMATS[format];
  const extent = { isWhole: session.isWhole, isFiltered: rows.isFiltered };
  save(toBlob(format, rows.all, places, of.symbol, extent), `${of.slug}-${address}${part}.${suffix}`);
}

function exportDisposals() {
  const { address, chain: of } = session.wallet;
  const part = session.isWhole && !rows.isFiltered ? "" : "-part";
  save(disposalsBlob(figures.result.sales, figures.rowAt, of.decimals), `${of.slug}-${address}${part}.disposals-${method()}.csv`);
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
  by("remember").addEventListener("change", ({ target }) => setLasting(target.checked));
  by("stop").addEventListener("click", () => session.stop());
  by("follow").addEventListener("click", () => session.follow());
  by("resume").addEventListener("click", () => {
    showError("");
    const key = by("key").value.trim();
    if (key) saveKey(key);
    session.resume(key);
  });
  TABS.forEach((name, at) => {
    by(`tab-${name}`).addEventListener("click", () => showTab(name, true));
    by(`tab-${name}`).addEventListener("keydown", ({ key }) => {
      const step = { ArrowLeft: TABS.length - 1, ArrowRight: 1 }[key];
      if (step) showTab(TABS[(at + step) % TABS.length], true);
    });
  });
  for (const format of Object.keys(FORMATS)) {
    by(`export-${format}`).addEventListener("click", () => exportRows(format));
  }
  by("export-disposals").addEventListener("click", exportDisposals);
  for (const input of document.querySelectorAll("input[name=method]")) {
    input.addEventListener("change", () => {
      figures.count();
      if (session.wallet) showPlace(place(), false);
    });
  }
  by("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    saveTheme(theme);
    showTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
  addEventListener("popstate", goToPlace);
}

async function begin() {
  listen();
  showTheme();
  by("key").value = savedKey();
  by("remember").checked = isLasting();
  try {
    chains = await readChains();
  } catch (error) {
    return showError(`The chains could not be read: ${error.message}`);
  }
  by("chain").replaceChildren(...chains.map((one) => {
    const option = new Option(one.isLive ? one.name : `${one.name} (off)`, one.slug);
    return option;
  }));
  goToPlace();
}

begin();
