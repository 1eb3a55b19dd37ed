// What the server offers, and how it says no.

import { readJson } from "./json.js";

/**
 * The server refused. `mayPass`: the same question may be answered later; `isPermanent`: the server says that it
 * will not.
 */
export class Refused extends Error {
  constructor(status, code, message, retryAfter = null, isPermanent = false) {
    super(message);
    this.name = "Refused";
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
    this.isPermanent = isPermanent;
    this.mayPass = status === 408 || status === 429 || status >= 500;
  }
}

/** An answer that is no success, as an error that says why. */
export async function refusal(response) {
  const wait = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  let [code, message] = ["", `the server answered ${response.status}`];
  try {
    const body = readJson(await response.text());
    code = body.error?.code ?? "";
    message = body.error?.message ?? message;
  } catch {
    // Not ours: a proxy's page, say.
  }
  return new Refused(response.status, code, message, Number.isNaN(wait) ? null : wait);
}

/** The key is never in it: addresses are logged, headers are not. */
export function url(address, chain, cursor, follow) {
  const query = new URLSearchParams({ chain });
  if (cursor) query.set("cursor", cursor);
  if (follow) query.set("follow", "1");
  return `/v1/wallets/${encodeURIComponent(address)}/history?${query}`;
}

/** Why a transaction became these rows. */
export async function readExplanation({ address, chain, key }, signature) {
  const path = `/v1/wallets/${encodeURIComponent(address)}/explain/${encodeURIComponent(signature)}`;
  const response = await fetch(`${path}?${new URLSearchParams({ chain: chain.slug })}`, {
    headers: { authorization: `Bearer ${key}` },
    cache: "no-store",
    credentials: "omit",
  });
  if (!response.ok) throw await refusal(response);
  return readJson(await response.text());
}

export async function readChains() {
  const response = await fetch("/v1/chains", { credentials: "omit" });
  if (!response.ok) throw await refusal(response);
  const { chains } = readJson(await response.text());
  return chains.map((chain) => ({
    slug: chain.slug,
    name: chain.name,
    family: chain.family,
    symbol: chain.native.symbol,
    decimals: Number(chain.native.decimals),
    explorer: chain.explorer ?? null,
    isLive: chain.status === "live",
  }));
}

/** About how many trades there are; `null` where the server does not say. */
export async function estimate(address, chain, signal) {
  try {
    const response = await fetch("/v1/billing/estimate", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ addresses: [address], chain }),
      credentials: "omit",
      signal,
    });
    if (!response.ok) return null;
    const [row] = readJson(await response.text()).addresses;
    const count = Number(row.estimatedTradeCount);
    return Number.isSafeInteger(count) && count > 0 ? count : null;
  } catch {
    return null;
  }
}
