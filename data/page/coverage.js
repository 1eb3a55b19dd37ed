// What is read and proved of a wallet: the cut, doubts and gaps by height, the chain's blind spots.

import { readJson } from "./json.js";
import { whole } from "./format.js";

/** Ranges that are named; more are counted. */
const SHOWN_MAX = 8;

/** `null` where the server does not say. */
export async function readCoverage({ address, chain, key }, signal) {
  try {
    const query = new URLSearchParams({ chain: chain.slug });
    const response = await fetch(`/v1/wallets/${encodeURIComponent(address)}/coverage?${query}`, {
      headers: { authorization: `Bearer ${key}` },
      credentials: "omit",
      signal,
    });
    return response.ok ? readJson(await response.text()) : null;
  } catch {
    return null;
  }
}

const height = (text) => whole(Number(text));

/** A heading and the lines below it. */
export function coverageText(coverage) {
  if (coverage.height === null) return { title: "Coverage: no height was read", lines: [] };
  const meaning = (name) => (coverage.meanings[name] ? `${name}: ${coverage.meanings[name]}` : name);
  const state = coverage.complete ? "read and proved" : "not all read and proved";
  const lines = [];
  if (coverage.historyCut !== null) {
    lines.push(`The nodes keep the history only from height ${height(coverage.historyCut)}.`);
  }
  const open = coverage.spans.filter((span) => !span.accepted).map(({ low, high, way, doubts, missing }) => {
    const named = missing.length > 0 ? ` (${missing.join(", ")})` : "";
    return `Heights ${height(low)} to ${height(high)}, read by ${way}: ${doubts.map(meaning).join("; ")}${named}.`;
  });
  const gaps = coverage.gaps.map(({ low, high }) => `Heights ${height(low)} to ${height(high)}: not read.`);
  const ranges = [...open, ...gaps];
  lines.push(...ranges.slice(0, SHOWN_MAX));
  if (ranges.length > SHOWN_MAX) lines.push(`… and ${whole(ranges.length - SHOWN_MAX)} more ranges.`);
  for (const name of coverage.blindSpots) lines.push(`Not seen by any configured way: ${meaning(name)}.`);
  return { title: `Coverage: heights 0 to ${height(coverage.height)}, ${state}`, lines };
}

export function showCoverage(box, coverage) {
  box.hidden = coverage === null;
  if (coverage === null) return;
  const { title, lines } = coverageText(coverage);
  const [summary, list] = [document.createElement("summary"), document.createElement("ul")];
  summary.textContent = title;
  list.replaceChildren(...lines.map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
  box.replaceChildren(summary, ...(lines.length > 0 ? [list] : []));
  box.open = !coverage.complete && lines.length > 0;
}
