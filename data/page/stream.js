// Reads one wallet's history as it comes: line by line, opened again where a stream ended before
// the history did, from the cursor of the last line that arrived whole.

import { Refused, refusal, url } from "./api.js";
import { readJson } from "./json.js";

/** Of errors that end a stream for good; others are 400. */
const STATUS = { INVALID_SESSION: 401, QUOTA_EXCEEDED: 402, HISTORY_CHANGED: 409, HISTORY_CUT: 502, HISTORY_UNPROVED: 503 };
/** Pauses between streams that brought nothing, in seconds. */
const PAUSES = [1, 2, 4, 8, 15, 30];
/** The server sends a blank line every 10 s: silence for much longer is a dead connection. */
const SILENCE_MAX = 45_000;

/**
 * `on.trades(trades, cursor, isLive)` for each line, `on.waiting(seconds, why)` before a pause.
 * Returns the final line of a complete history; with `follow` it never does. Throws `Refused` where
 * asking again would not help, and `AbortError` when `signal` stops it.
 */
export async function readHistory({ address, chain, key, cursor, follow, signal, on }) {
  let empty = 0;
  for (;;) {
    let [brought, why, wait] = [false, "", null];
    try {
      const final = await readStream({ address, chain, key, cursor, follow, signal }, (line) => {
        cursor = line.cursor;
        brought ||= line.trades.length > 0 || line.live === true;
        on.trades(line.trades, cursor, line.live === true);
      });
      if (final?.complete === true) return final;
      cursor = final?.cursor ?? cursor;
      if (final?.error) throwPermanent(final.error);
      // A stream that follows ends with its window, whatever it brought.
      brought ||= Boolean(follow && final && !final.error);
      why = final ? (final.error?.message ?? "") : "the connection was cut";
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof Refused && (error.isPermanent || !error.mayPass)) throw error;
      why = error.message;
      wait = error.retryAfter ?? null;
    }
    empty = brought ? 0 : empty + 1;
    const seconds = wait ?? (empty === 0 ? 0 : PAUSES[Math.min(empty, PAUSES.length) - 1]);
    on.waiting(seconds, why);
    await pause(seconds * 1000, signal);
  }
}

/** More will not come by asking again as it is. */
function throwPermanent({ code, message, retryable }) {
  if (retryable === false) throw new Refused(STATUS[code] ?? 400, code, message, null, true);
}

/** One stream. Returns its final line, or nothing where it was cut before. */
async function readStream({ address, chain, key, cursor, follow, signal }, take) {
  const quiet = new AbortController();
  const response = await fetch(url(address, chain, cursor, follow), {
    headers: { authorization: `Bearer ${key}` },
    cache: "no-store",
    credentials: "omit",
    referrerPolicy: "no-referrer",
    signal: AbortSignal.any ? AbortSignal.any([signal, quiet.signal]) : signal,
  });
  if (!response.ok) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, timer] = ["", 0];
  try {
    for (;;) {
      timer = setTimeout(() => quiet.abort(), SILENCE_MAX);
      const { done, value } = await reader.read();
      clearTimeout(timer);
      if (done) return undefined;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const text of lines) {
        if (text.trim() === "") continue;
        const line = readJson(text);
        if ("complete" in line) return line;
        if (!Array.isArray(line.trades)) throw new SyntaxError("a line without trades");
        take(line);
      }
    }
  } catch (error) {
    if (quiet.signal.aborted) throw new Error("the connection fell silent");
    throw error;
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {});
  }
}

function pause(millis, signal) {
  return new Promise((done, fail) => {
    const stopped = () => {
      clearTimeout(timer);
      fail(new DOMException("stopped", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stopped);
      done();
    }, millis);
    signal.addEventListener("abort", stopped, { once: true });
  });
}
