// All of one row: its members whole, to be copied, the transaction on its explorer, and why it
// became a trade in words.

import { readExplanation } from "./api.js";
import { tokenLink, transactionLink } from "./explorer.js";
import { time } from "./format.js";

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function outside(text, href) {
  const link = make("a", "", text);
  link.href = href;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return link;
}

/** What of a movement, a leg that is left out or a note people can read. */
function sentences({ movements, leftOut, venues, notes, nativeMovementsKnown }) {
  const lines = [];
  for (const { asset, came, went, became } of movements) {
    const moved = [came && came !== "0" && `${came} came`, went && went !== "0" && `${went} went`].filter(Boolean);
    const as = became.length > 0 ? ` It is in ${became.join(", ")}.` : "";
    if (moved.length > 0) lines.push(`${asset}: ${moved.join(", ")}.${as}`);
  }
  for (const { what, asset, amount, direction, why } of leftOut) {
    lines.push(`Left out: ${amount ?? "an unknown amount of"} ${asset} ${direction} (${what}): ${why}.`);
  }
  if (venues.length > 0) lines.push(`Venues: ${venues.map(({ name, part }) => `${name} (${part})`).join(", ")}.`);
  for (const { detail } of notes) lines.push(detail);
  if (nativeMovementsKnown === false) lines.push("Movements of the chain's own coin may be missing.");
  return lines;
}

export class Panel {
  /** `context()`: the wallet with its key, as the session has it. */
  constructor(dialog, context) {
    this.dialog = dialog;
    this.context = context;
    // A click on the ground behind the panel closes it.
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
    this.asked = 0;
  }

  open(row) {
    const { chain } = this.context();
    this.asked += 1;
    const unknown = (text) => text ?? "unknown";
    const list = make("dl", "members");
    const add = (term, text, link) => list.append(this.member(term, text, link));
    add("Time (UTC)", time(row.time));
    add("Amount", unknown(row.amount));
    add(`Value, ${chain.symbol}`, unknown(row.native));
    add("Venue", row.venue);
    add("Token", row.mint, tokenLink(chain, row.mint));
    add("Transaction", row.signature, transactionLink(chain, row.signature));
    const head = make("header");
    const title = make("h2", row.side, `${row.side === "buy" ? "Buy" : "Sell"} ${row.token}`);
    title.id = "panel-title";
    const close = make("button", "quiet", "Close");
    close.type = "button";
    close.addEventListener("click", () => this.dialog.close());
    head.append(title, close);
    const words = make("div", "words");
    words.setAttribute("aria-live", "polite");
    const explain = make("button", "", "Explain this transaction");
    explain.type = "button";
    explain.addEventListener("click", () => this.explain(row, explain, words));
    this.dialog.replaceChildren(head, list, explain, words);
    if (!this.dialog.open) this.dialog.showModal();
    close.focus();
  }

  member(term, text, href) {
    const box = make("div");
    const value = make("dd");
    value.append(make("span", "mono", text));
    const copy = make("button", "quiet", "Copy");
    copy.type = "button";
    copy.setAttribute("aria-label", `Copy ${term}`);
    copy.addEventListener("click", async () => {
      copy.textContent = (await copied(text)) ? "Copied" : "Select it";
    });
    value.append(copy);
    if (href) value.append(outside("Explorer", href));
    box.append(make("dt", "", term), value);
    return box;
  }

  async explain(row, button, words) {
    this.asked += 1;
    const mine = this.asked;
    button.disabled = true;
    words.replaceChildren(make("p", "note", "Reading the transaction…"));
    let shown;
    try {
      const told = await readExplanation(this.context(), row.signature);
      const verdict = told.verdict.charAt(0).toUpperCase() + told.verdict.slice(1);
      const list = make("ul");
      list.append(...sentences(told).map((line) => make("li", "", line)));
      shown = [make("p", "verdict", `${verdict}.`), list];
    } catch (error) {
      shown = [make("p", "error", error.message)];
      button.disabled = false;
    }
    if (mine === this.asked) words.replaceChildren(...shown);
  }
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
