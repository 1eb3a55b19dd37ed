// Accessibility rules (WCAG 2.2 A and AA, and good practice) by axe, in every state of the page.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import axe from "axe-core";
import { chromium } from "playwright-core";

import { ask, chromiumPath, openPage, startDemo, waitState } from "./support.mjs";

let demo;
let browser;

before(async () => {
  demo = await startDemo();
  browser = await chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  await demo?.stop();
});

async function assertAccessible(page, state) {
  const found = await page.evaluate(async () => (await window.axe.run()).violations.map((one) =>
    `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).slice(0, 3).join(" | ")}`));
  assert.deepEqual(found, [], state);
}

for (const [name, options] of [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["narrow", { viewport: { width: 390, height: 800 } }],
]) {
  test(`no rule is broken, ${name}`, async () => {
    const { page, context } = await openPage(browser, demo.url, options);
    await page.evaluate(axe.source);
    await assertAccessible(page, "idle");
    await ask(page, { address: demo.wallets.sol.wallet, key: "blt_wrong" });
    await waitState(page, "Failed");
    await assertAccessible(page, "refused");
    await ask(page, { address: demo.wallets.sol.wallet, key: demo.key });
    await page.waitForFunction(() => document.querySelectorAll("#panel-trades .grid-body [role=row]").length > 0);
    await assertAccessible(page, "reading");
    await waitState(page, "Complete");
    await assertAccessible(page, "complete");
    await page.selectOption("#filter-side", "buy");
    await assertAccessible(page, "filtered");
    await page.click("#tab-positions");
    await assertAccessible(page, "positions");
    await context.close();
  });
}
