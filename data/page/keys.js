// What the browser keeps: the API key and the wallets read lately, for this tab or for longer where
// that was asked, and the theme. A browser that keeps nothing is no error.

const KEY = "blotter-key";
const LASTS = "blotter-lasts";
const THEME = "blotter-theme";

function attempt(action) {
  try {
    return action();
  } catch {
    return null;
  }
}

/** Whether things outlive the tab. */
export function isLasting() {
  return attempt(() => localStorage.getItem(LASTS)) === "1" || attempt(() => localStorage.getItem(KEY)) !== null;
}

/** Moves what is kept to where it is to be kept from now on. */
export function setLasting(lasting) {
  const [keep, drop] = lasting ? ["localStorage", "sessionStorage"] : ["sessionStorage", "localStorage"];
  for (const name of [KEY, "blotter-recent"]) {
    const value = attempt(() => window[drop].getItem(name));
    attempt(() => window[drop].removeItem(name));
    if (value !== null) attempt(() => window[keep].setItem(name, value));
  }
  attempt(() => (lasting ? localStorage.setItem(LASTS, "1") : localStorage.removeItem(LASTS)));
}

export function load(name) {
  return attempt(() => localStorage.getItem(name)) ?? attempt(() => sessionStorage.getItem(name));
}

/** `null` forgets it. */
export function save(name, value) {
  const [keep, drop] = isLasting() ? ["localStorage", "sessionStorage"] : ["sessionStorage", "localStorage"];
  attempt(() => window[drop].removeItem(name));
  attempt(() => (value === null ? window[keep].removeItem(name) : window[keep].setItem(name, value)));
}

export const savedKey = () => load(KEY) ?? "";

export const saveKey = (key) => save(KEY, key);

export function forgetKey() {
  attempt(() => localStorage.removeItem(KEY));
  attempt(() => sessionStorage.removeItem(KEY));
}

export function saveTheme(theme) {
  attempt(() => localStorage.setItem(THEME, theme));
}
