// How numbers and times look. An ellipsis marks cut digits; the whole number is in the title.

import { toText } from "./decimal.js";

const SIGNIFICANT = 4;

/** Groups of three before the point, at most `places` digits after it. */
export function shorten(text, places) {
  const sign = text.startsWith("-") ? "−" : "";
  const [whole, fraction = ""] = text.replace("-", "").split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  const zeros = whole === "0" ? /^0*/.exec(fraction)[0].length : 0;
  const kept = Math.max(places, whole === "0" && zeros > 0 ? zeros + SIGNIFICANT : 0);
  const shown = fraction.slice(0, kept);
  const more = fraction.length > kept ? "…" : "";
  return sign + (shown ? `${grouped}.${shown}${more}` : `${grouped}${more}`);
}

/** A number into a cell: the mark of what was cut hangs outside, so that digits stand in line. */
export function put(cell, text, unit) {
  const isCut = text.endsWith("…");
  if (!isCut && !unit) {
    cell.textContent = text;
    return;
  }
  const parts = [isCut ? text.slice(0, -1) : text];
  const more = (className, content) => {
    const span = document.createElement("span");
    span.className = className;
    span.textContent = content;
    parts.push(span);
  };
  if (isCut) more("cut", "…");
  if (unit) more("unit", ` ${unit}`);
  cell.replaceChildren(...parts);
}

export function units(value, decimals, places) {
  return shorten(toText(value, decimals), places);
}

/** With its sign, also where it is a gain. */
export function signed(value, decimals, places) {
  return (value > 0n ? "+" : "") + units(value, decimals, places);
}

export const whole = (count) => count.toLocaleString("en-US");

/** `2026-11-20T06:05:13+00:00` as `2026-11-20 06:05:13`. */
export const time = (text) => `${text.slice(0, 10)} ${text.slice(11, 19)}`;

export const day = (text) => text.slice(0, 10);

/** Parts of a hundred, one digit after the point, cut. */
export function percent(part, all) {
  if (all === 0) return "–";
  const tenths = Math.floor((part * 1000) / all);
  return `${Math.floor(tenths / 10)}.${tenths % 10} %`;
}

export function middle(text, chars) {
  return text.length <= chars * 2 + 1 ? text : `${text.slice(0, chars)}…${text.slice(-chars)}`;
}

/** Seconds as people say them, in one unit. */
export function duration(seconds) {
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
