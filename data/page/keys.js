// What the browser keeps: the API key, for this tab or for longer where that was asked, and the
// theme. A browser that keeps nothing is no error.

const KEY = "blotter-key";
const THEME = "blotter-theme";

function attempt(action) {
  try {
    return action();
  } catch {
    return null;
  }
}

export function savedKey() {
  const lasting = attempt(() => localStorage.getItem(KEY));
  return { key: lasting ?? attempt(() => sessionStorage.getItem(KEY)) ?? "", lasting: lasting !== null };
}

export function saveKey(key, lasting) {
  const [keep, drop] = lasting ? ["localStorage", "sessionStorage"] : ["sessionStorage", "localStorage"];
  attempt(() => window[keep].setItem(KEY, key));
  attempt(() => window[drop].removeItem(KEY));
}

export function forgetKey() {
  attempt(() => localStorage.removeItem(KEY));
  attempt(() => sessionStorage.removeItem(KEY));
}

export function saveTheme(theme) {
  attempt(() => localStorage.setItem(THEME, theme));
}
