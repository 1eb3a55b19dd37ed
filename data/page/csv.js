// One field of a CSV file.

/** RFC 4180, and a quote before what a spreadsheet would run as a formula. */
export function csvField(value) {
  if (value === null) return "";
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
