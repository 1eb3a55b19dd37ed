// What the address bar says: wallet, chain, filter, method and table. It is in the fragment, which browsers
// send to no server; the key is never in it.

const NAMES = ["chain", "address", "token", "side", "dex", "from", "to", "method", "view"];

/** The members that the fragment names, as text. */
export function readPlace(hash = location.hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const place = {};
  for (const name of NAMES) {
    const value = given.get(name);
    if (value) place[name] = value;
  }
  return place;
}

export function fragment(place) {
  const given = NAMES.filter((name) => place[name]).map((name) => [name, place[name]]);
  return `#${new URLSearchParams(given)}`;
}

/** `isNew`: Back leads to what was there before. */
export function showPlace(place, isNew) {
  const hash = fragment(place);
  if (hash === location.hash) return;
  if (isNew) history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
}
