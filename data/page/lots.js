// What is held of one token, in the order in which a method sells it. A part that is taken has its
// share of the cost, cut down; the rest stays in the lot, so that all shares are always the whole.

const least = (a, b) => (a < b ? a : b);

/** As much of `wanted` as a lot has; `cost` is `null` where none is known. */
function takeFrom(lot, wanted) {
  const quantity = least(wanted, lot.quantity);
  let cost = null;
  if (lot.cost !== null) {
    cost = quantity === lot.quantity ? lot.cost : (lot.cost * quantity) / lot.quantity;
    lot.cost -= cost;
  }
  lot.quantity -= quantity;
  return { quantity, cost, row: lot.row };
}

/** Lots of which one is the next to be sold: subclasses say which. */
class Lots {
  held = 0n;

  buy(quantity, cost, row) {
    this.add({ quantity, cost, row });
    this.held += quantity;
  }

  take(wanted) {
    const parts = [];
    let missing = least(wanted, this.held);
    this.held -= missing;
    while (missing > 0n) {
      const lot = this.next();
      const part = takeFrom(lot, missing);
      missing -= part.quantity;
      parts.push(part);
      if (lot.quantity === 0n) this.drop();
    }
    return parts;
  }
}

class Fifo extends Lots {
  lots = [];
  first = 0;

  add(lot) {
    this.lots.push(lot);
  }

  next() {
    return this.lots[this.first];
  }

  /** Lots that are used up go in bulk, so that none is moved twice. */
  drop() {
    this.lots[this.first] = null;
    this.first += 1;
    if (this.first > 1024 && this.first * 2 > this.lots.length) {
      this.lots = this.lots.slice(this.first);
      this.first = 0;
    }
  }

  open() {
    return this.lots.slice(this.first);
  }
}

class Lifo extends Lots {
  lots = [];

  add(lot) {
    this.lots.push(lot);
  }

  next() {
    return this.lots.at(-1);
  }

  drop() {
    this.lots.pop();
  }

  open() {
    return this.lots;
  }
}

/** Sold before another lot: the higher price when it was bought, then the older one; without a price last. */
function isDearer(a, b) {
  if (a.price === null || b.price === null) {
    return a.price === b.price ? a.number < b.number : b.price === null;
  }
  const [x, y] = [a.price.cost * b.price.quantity, b.price.cost * a.price.quantity];
  return x === y ? a.number < b.number : x > y;
}

/** A heap: the dearest lot stands first. */
class Hifo extends Lots {
  lots = [];
  bought = 0;

  add(lot) {
    lot.price = lot.cost === null ? null : { cost: lot.cost, quantity: lot.quantity };
    lot.number = this.bought;
    this.bought += 1;
    const { lots } = this;
    let at = lots.push(lot) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isDearer(lots[at], lots[above])) break;
      [lots[at], lots[above]] = [lots[above], lots[at]];
      at = above;
    }
  }

  next() {
    return this.lots[0];
  }

  drop() {
    const { lots } = this;
    const last = lots.pop();
    if (lots.length === 0) return;
    lots[0] = last;
    for (let at = 0; ;) {
      let most = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < lots.length && isDearer(lots[below], lots[most])) most = below;
      }
      if (most === at) return;
      [lots[at], lots[most]] = [lots[most], lots[at]];
      at = most;
    }
  }

  open() {
    return this.lots;
  }
}

/** One pool with a cost and one without; the first is sold first. */
class Average {
  valued = { quantity: 0n, cost: 0n, row: null };
  unvalued = { quantity: 0n, cost: null, row: null };

  get held() {
    return this.valued.quantity + this.unvalued.quantity;
  }

  buy(quantity, cost) {
    const pool = cost === null ? this.unvalued : this.valued;
    pool.quantity += quantity;
    if (cost !== null) pool.cost += cost;
  }

  take(wanted) {
    const parts = [];
    let missing = least(wanted, this.held);
    for (const pool of [this.valued, this.unvalued]) {
      if (missing === 0n || pool.quantity === 0n) continue;
      const part = takeFrom(pool, missing);
      missing -= part.quantity;
      parts.push(part);
    }
    return parts;
  }

  open() {
    return [this.valued, this.unvalued];
  }
}

/** The methods, and how people name them. */
export const METHODS = { fifo: Fifo, lifo: Lifo, hifo: Hifo, average: Average };

/** The known cost of what is held, and how much of it has none. */
export function openOf(lots) {
  let [cost, unvalued] = [0n, 0n];
  for (const lot of lots.open()) {
    if (lot.cost === null) unvalued += lot.quantity;
    else cost += lot.cost;
  }
  return { cost, unvalued };
}
