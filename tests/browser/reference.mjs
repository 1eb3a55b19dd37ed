// Gains worked out a second time, plainly: one unit of proof against the page's own way. Lots are
// copied lists, the pool is one pair, and shares are taken as the agreed rule says.

function units(text, decimals) {
  if (text === null) return null;
  const [whole, fraction = ""] = text.split(".");
  return BigInt(whole) * 10n ** BigInt(decimals) + BigInt(fraction.padEnd(decimals, "0") || "0");
}

const smaller = (a, b) => (a < b ? a : b);

/** What leaves the lots for a sell: `[quantity, cost or null]` a part. */
function take(lots, wanted, method) {
  const all = lots.map((_, at) => at);
  const isFree = (at) => Number(lots[at][1] === null);
  // Prices as they were bought, compared crosswise: `[quantity, cost]`.
  const dearer = (a, b) => {
    const [[q, c], [r, d]] = [lots[a][2], lots[b][2]];
    return c * r > d * q ? -1 : c * r < d * q ? 1 : a - b;
  };
  const order = {
    fifo: () => all,
    lifo: () => all.reverse(),
    hifo: () => all.sort((a, b) => isFree(a) - isFree(b) || (isFree(a) ? a - b : dearer(a, b))),
    average: () => all.sort((a, b) => isFree(a) - isFree(b)),
  }[method]();
  const parts = [];
  for (const at of order) {
    const [held, cost] = lots[at];
    const part = smaller(held, wanted);
    if (part === 0n) continue;
    const share = cost === null ? null : part === held ? cost : (cost * part) / held;
    lots[at] = [held - part, cost === null ? null : cost - share, lots[at][2]];
    parts.push([part, share]);
    wanted -= part;
  }
  return parts;
}

/** `rows` newest first as the API has them. Gives a map of mint to figures. */
export function reference(rows, nativeDecimals, method) {
  const books = new Map();
  for (const row of [...rows].reverse()) {
    const book = books.get(row.tokenMint) ?? { rows: [] };
    book.rows.push(row);
    books.set(row.tokenMint, book);
  }
  for (const book of books.values()) Object.assign(book, one(book.rows, nativeDecimals, method));
  return books;
}

function one(rows, nativeDecimals, method) {
  const decimals = Math.max(...rows.map(({ amount }) => (amount ?? "").split(".")[1]?.length ?? 0));
  const figures = { decimals, realised: 0n, open: 0n, openCost: 0n, unmatched: 0n, unmatchedProceeds: 0n,
    unvaluedProceeds: 0n, unvaluedCost: 0n, wins: 0, judgedSells: 0, withoutValue: 0, withoutAmount: 0, bought: 0n, sold: 0n };
  let lots = [];
  for (const { side, amount, amountSol } of rows) {
    const [quantity, value] = [units(amount, decimals), units(amountSol, nativeDecimals)];
    if (!quantity) {
      figures.withoutAmount += 1;
      continue;
    }
    if (value === null) figures.withoutValue += 1;
    if (side === "buy") {
      figures.bought += quantity;
      const pool = lots.findIndex(([, cost]) => (cost === null) === (value === null));
      if (method !== "average" || pool < 0) lots.push([quantity, value, [quantity, value ?? 0n]]);
      else lots[pool] = [lots[pool][0] + quantity, value === null ? null : lots[pool][1] + value, null];
      continue;
    }
    figures.sold += quantity;
    const parts = take(lots, quantity, method);
    lots = method === "average" ? lots : lots.filter(([held]) => held > 0n);
    const matched = parts.reduce((sum, [part]) => sum + part, 0n);
    figures.unmatched += quantity - matched;
    if (value === null) {
      for (const [, cost] of parts) figures.unvaluedCost += cost ?? 0n;
      continue;
    }
    const proceeds = (value * matched) / quantity;
    figures.unmatchedProceeds += value - proceeds;
    const shares = parts.map(([part]) => (value * part) / quantity);
    if (shares.length > 0) shares[shares.length - 1] = proceeds - shares.slice(0, -1).reduce((a, b) => a + b, 0n);
    let gain = null;
    parts.forEach(([, cost], at) => {
      if (cost === null) figures.unvaluedProceeds += shares[at];
      else gain = (gain ?? 0n) + shares[at] - cost;
    });
    if (gain === null) continue;
    figures.realised += gain;
    figures.judgedSells += 1;
    if (gain > 0n) figures.wins += 1;
  }
  for (const [held, cost] of lots) {
    figures.open += held;
    figures.openCost += cost ?? 0n;
  }
  return figures;
}
