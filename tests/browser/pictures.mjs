// Makes the pictures of the page that the README shows: `docs/pictures BINARY`.

import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { ask, chromiumPath, openPage, startDemo, waitFigures, waitState } from "./support.mjs";

const DOCS = fileURLToPath(new URL("../../docs", import.meta.url));
const PICTURES = [
  ["page-light", { colorScheme: "light" }],
  ["page-dark", { colorScheme: "dark" }],
  ["page-phone", { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
];

const demo = await startDemo();
const browser = await chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox"] });
for (const [name, options] of PICTURES) {
  const { page, context } = await openPage(browser, demo.url, options);
  await ask(page, { address: demo.wallets.eth.wallet, key: demo.key });
  await waitState(page, "Complete");
  await waitFigures(page);
  // The key is the demo's and ends with it, but a picture need not show its length.
  await page.fill("#key", "");
  if (name === "page-phone") await page.locator("#status").evaluate((status) => scrollTo(0, status.offsetTop - 8));
  await page.evaluate(() => document.activeElement?.blur());
  await page.screenshot({ path: join(DOCS, `${name}.png`) });
  await context.close();
}
await browser.close();
await demo.stop();
