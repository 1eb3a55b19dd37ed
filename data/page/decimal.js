// Exact decimals: a text of digits to base units and back. Nothing here rounds without saying so.

const DECIMAL = /^(\d+)(?:\.(\d+))?$/;

/** How many digits stand after the point; `null` for what is no plain decimal. */
export function decimalsOf(text) {
  const parts = DECIMAL.exec(text);
  return parts ? (parts[2] ?? "").length : null;
}

/** Base units; `null` for what is no plain decimal, or has more decimals than there are. */
export function toUnits(text, decimals) {
  const parts = text === null ? null : DECIMAL.exec(text);
  if (!parts) return null;
  const fraction = (parts[2] ?? "").replace(/0+$/, "");
  if (fraction.length > decimals) return null;
  return BigInt(parts[1] + fraction.padEnd(decimals, "0"));
}

/** Every digit, without trailing zeros after the point. */
export function toText(units, decimals) {
  const sign = units < 0n ? "-" : "";
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return sign + (fraction ? `${whole}.${fraction}` : whole);
}

/** Exact order of two plain decimals. */
export function compareDecimals(a, b) {
  const decimals = Math.max(decimalsOf(a) ?? 0, decimalsOf(b) ?? 0);
  const [x, y] = [toUnits(a, decimals) ?? 0n, toUnits(b, decimals) ?? 0n];
  return x < y ? -1 : x > y ? 1 : 0;
}

/**
 * The price of one whole token, cut (not rounded) to `digits` that matter: a quotient has no last
 * digit, so this one is for reading only.
 */
export function priceText(cost, costDecimals, quantity, decimals, digits) {
  if (quantity === 0n) return null;
  const scaled = cost * 10n ** BigInt(decimals);
  let places = costDecimals;
  let value = scaled / quantity;
  const missing = digits - (value === 0n ? 0 : value.toString().length);
  if (scaled !== 0n && missing > 0) {
    places += missing + (value === 0n ? decimals : 0);
    value = (scaled * 10n ** BigInt(places - costDecimals)) / quantity;
  }
  const excess = value.toString().length - digits;
  const cut = Math.min(Math.max(excess, 0), places);
  return toText(value / 10n ** BigInt(cut), places - cut);
}
