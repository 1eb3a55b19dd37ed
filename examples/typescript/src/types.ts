// The shapes of the interface; numbers of trades and gains are exact decimal text.

/** Decimal text: every digit, no exponent. */
export type Decimal = string;

export interface Trade {
  signature: string;
  side: "buy" | "sell";
  /** The symbol: no key, symbols collide. */
  token: string;
  tokenMint: string;
  /** Value in the chain's own coin; null where it is unknown. */
  amountSol: Decimal | null;
  /** Token quantity; null where it is unknown. */
  amount: Decimal | null;
  dex: string;
  blockTime: string;
}

/** Trades that arrived together. */
export interface Batch {
  trades: Trade[];
  /** Where a later call goes on, right behind them; `null` behind the last page of a complete history. */
  cursor: string | null;
  /** New trades of a stream that follows the chain, oldest first. */
  live: boolean;
}

export interface Filter {
  chain?: string;
  token?: string;
  side?: "buy" | "sell";
  dex?: string;
  from?: string;
  to?: string;
}

export interface StreamOptions extends Filter {
  cursor?: string;
  /** After the history, new trades as they become final: the stream never ends. */
  follow?: boolean;
  signal?: AbortSignal;
}

export interface PageOptions extends Filter {
  limit?: number;
  cursor?: string;
  signal?: AbortSignal;
}

export interface PnlOptions {
  chain?: string;
  method?: "fifo" | "lifo" | "hifo" | "average";
  from?: string;
  to?: string;
  year?: number;
  disposals?: boolean;
  signal?: AbortSignal;
}

export interface PnlSums {
  buys: number;
  sells: number;
  withoutAmount: number;
  withoutValue: number;
  spent: Decimal;
  received: Decimal;
  realised: Decimal;
  realisedCost: Decimal;
  openingCost: Decimal;
  openCost: Decimal;
  unmatchedProceeds: Decimal;
  unvaluedProceeds: Decimal;
  unvaluedCost: Decimal;
  judgedSells: number;
  wins: number;
  winRate: Decimal | null;
}

export interface PnlToken extends PnlSums {
  token: string;
  tokenMint: string;
  bought: Decimal;
  sold: Decimal;
  opening: Decimal;
  open: Decimal;
  openUnvalued: Decimal;
  unmatched: Decimal;
  averageCost: Decimal | null;
}

export interface PnlLot {
  /** False: sold beyond what had been bought. */
  matched: boolean;
  signature: string | null;
  acquiredAt: string | null;
  heldSeconds: number | null;
  quantity: Decimal;
  proceeds: Decimal | null;
  cost: Decimal | null;
  realised: Decimal | null;
}

export interface Disposal {
  signature: string | null;
  token: string;
  tokenMint: string;
  soldAt: string;
  quantity: Decimal;
  proceeds: Decimal | null;
  realised: Decimal | null;
  lots: PnlLot[];
}

export interface Pnl {
  wallet: string;
  chain: string;
  complete: true;
  native: string;
  method: "fifo" | "lifo" | "hifo" | "average";
  from: string | null;
  to: string | null;
  trades: number;
  firstTrade: string | null;
  /** Rows whose value is still being looked for. */
  valuesPending?: number;
  totals: PnlSums;
  tokens: PnlToken[];
  disposals?: Disposal[];
}

export interface Usage {
  key: { id: string; name: string | null };
  tradesCounted: number;
  quota: number | null;
  remaining: number | null;
}

export interface Chain {
  slug: string;
  aliases: string[];
  name: string;
  family: "solana" | "evm" | "tron";
  native: { symbol: string; decimals: number };
  explorer: string | null;
  status: "live" | "disabled";
}
