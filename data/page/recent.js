// Wallets that were read lately, under names that only this browser knows. Kept as long as the key
// is: in the tab, or in the browser where the key is to be remembered.

import { middle } from "./format.js";
import { load, save } from "./keys.js";

const NAME = "blotter-recent";
const MOST = 12;
const NAME_CHARS = 40;

const same = (a, b) => a.chain === b.chain && a.address === b.address;

function isEntry(entry) {
  return [entry?.chain, entry?.address].every((text) => typeof text === "string") && typeof (entry.name ?? "") === "string";
}

export class Recent {
  /** `onPick({chain, address})`; `list` is the element that shows them. */
  constructor(list, onPick) {
    this.list = list;
    this.onPick = onPick;
    try {
      this.entries = JSON.parse(load(NAME) ?? "[]").filter(isEntry).slice(0, MOST);
    } catch {
      this.entries = [];
    }
    this.show();
  }

  add({ chain, address }) {
    const known = this.entries.find((one) => same(one, { chain, address }));
    this.entries = [known ?? { chain, address, name: "" }, ...this.entries.filter((one) => one !== known)].slice(0, MOST);
    this.keep();
  }

  rename(entry, name) {
    entry.name = name.trim().slice(0, NAME_CHARS);
    this.keep();
  }

  remove(entry) {
    this.entries = this.entries.filter((one) => one !== entry);
    this.keep();
  }

  keep() {
    save(NAME, this.entries.length > 0 ? JSON.stringify(this.entries) : null);
    this.show();
  }

  /** After the choice of where things are kept. */
  moved() {
    this.keep();
  }

  show() {
    this.list.hidden = this.entries.length === 0;
    this.list.replaceChildren(...this.entries.map((entry) => this.item(entry)));
  }

  item(entry) {
    const item = document.createElement("li");
    const shown = entry.name || middle(entry.address, 5);
    const pick = button(shown, `Read ${shown} ${entry.chain}`, () => this.onPick(entry));
    pick.className = "pick";
    pick.title = entry.address;
    const chain = document.createElement("span");
    chain.className = "unit";
    chain.textContent = ` ${entry.chain}`;
    pick.append(chain);
    const rename = button("✎", `Name ${shown}`, () => this.edit(item, entry));
    const remove = button("×", `Forget ${shown}`, () => this.remove(entry));
    item.append(pick, rename, remove);
    return item;
  }

  edit(item, entry) {
    const input = document.createElement("input");
    input.value = entry.name;
    input.maxLength = NAME_CHARS;
    input.placeholder = "Name";
    input.setAttribute("aria-label", `Name of ${entry.address}`);
    let isOver = false;
    const end = (name) => {
      if (isOver) return;
      isOver = true;
      if (name === null) this.show();
      else this.rename(entry, name);
    };
    input.addEventListener("keydown", ({ key }) => {
      if (key === "Enter") end(input.value);
      if (key === "Escape") end(null);
    });
    input.addEventListener("blur", () => end(input.value));
    item.replaceChildren(input);
    input.focus();
  }
}

function button(text, label, onClick) {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.setAttribute("aria-label", label);
  element.addEventListener("click", onClick);
  return element;
}
