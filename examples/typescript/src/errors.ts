// What the server refuses.

/** Of errors that end a stream: their final line has no status. */
const STATUS: Record<string, number> = {
  INVALID_SESSION: 401,
  QUOTA_EXCEEDED: 402,
  HISTORY_CHANGED: 409,
  HISTORY_CUT: 502,
  HISTORY_UNPROVED: 503,
};

export interface LineError {
  code: string;
  message: string;
  type: string;
  retryable: boolean;
}

/** What the server says is wrong: asking again as it is does not help, or did not in time. */
export class BlotterError extends Error {
  constructor(
    readonly status: number,
    /** Coarse, such as VALIDATION_ERROR. */
    readonly code: string,
    message: string,
    /** Fine, such as /errors/not_a_wallet. */
    readonly type: string,
  ) {
    super(`${status} ${code}: ${message}`);
    this.name = "BlotterError";
  }

  static ofLine({ code, message, type, retryable }: LineError): BlotterError {
    if (retryable) return new Passing(STATUS[code] ?? 503, code, message, type);
    return new BlotterError(STATUS[code] ?? 400, code, message, type);
  }
}

/** A failure that may pass; `wait` is what the server asks for, in seconds. */
export class Passing extends BlotterError {
  constructor(status: number, code: string, message: string, type: string, readonly wait: number | null = null) {
    super(status, code, message, type);
  }
}

export async function refusal(response: Response): Promise<Error> {
  let [code, message, type] = ["", `the server answered ${response.status}`, ""];
  try {
    const told = (await response.json()) as { error: { code: string; message: string }; type?: string };
    [code, message, type] = [told.error.code, told.error.message, told.type ?? ""];
  } catch {
    // Not the server's own answer: a proxy's page, say.
  }
  const passes = response.status === 408 || response.status === 429 || response.status >= 500;
  if (!passes || code === "HISTORY_CUT") return new BlotterError(response.status, code, message, type);
  const wait = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  return new Passing(response.status, code, message, type, Number.isNaN(wait) ? null : wait);
}
