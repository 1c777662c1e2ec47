// How a call went, and who says so.

import { InvalidCircuitError } from "./errors.js";
import { isOffline } from "./host.js";
import { retryAt } from "./retry-after.js";

/** `ignored` says nothing about the service: it counts nowhere, and frees the slot of a probe. */
export type Verdict = "success" | "failure" | "ignored";

/**
 * How a call went. `durationMs`: how long it took, at least 0; null: not measured, so never slow; left out: as measured here, if it was.
 * `retryAt`: the instant the answer asked for (milliseconds since the epoch); used when this failure opens or reopens the circuit; null:
 * none; left out: what the `Retry-After` of a fetch says, if it is heeded.
 */
export interface CallOutcome {
  verdict: Verdict;
  durationMs?: number | null;
  retryAt?: number | null;
}

/** Judges a call; undefined keeps the default: a value is a success, an error a failure. A value judged a failure is still returned. */
export type Classify = (
  result: { ok: true; value: unknown } | { ok: false; error: unknown },
  durationMs: number | null,
) => Verdict | CallOutcome | undefined;

export const VERDICTS = ["success", "failure", "ignored"] as const;
export const SUCCESS = 0;
export const FAILURE = 1;
export const IGNORED = 2;

/** An outcome as numbers. Undefined: not said; NaN: none. */
export interface Judged {
  verdict: number;
  duration: number | undefined;
  until: number | undefined;
}

export function parseOutcome(given: Verdict | CallOutcome): Judged {
  const outcome: Partial<CallOutcome> = typeof given === "string" ? { verdict: given } : Object(given);
  const verdict = VERDICTS.indexOf(outcome.verdict as Verdict);
  if (verdict < 0) throw new InvalidCircuitError("verdict", outcome.verdict, `must be one of ${VERDICTS}`);
  return { verdict, duration: amount("durationMs", outcome.durationMs), until: amount("retryAt", outcome.retryAt) };
}

function amount(field: string, value: number | null | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (value === null) return NaN;
  if (value >= 0 && value <= Number.MAX_SAFE_INTEGER) return value;
  throw new InvalidCircuitError(field, value, "must be a number of milliseconds from 0", 0, Number.MAX_SAFE_INTEGER);
}

/** A deadline of the caller's speaks against the service; a caller who went away does not. */
export const isDeadline = (reason: unknown): boolean => (reason as { name?: unknown } | null | undefined)?.name === "TimeoutError";

/** Status codes that speak against the service: 429 and every 5xx but 501, which says that it works and does not know the method. */
export const isFailing = (status: number): boolean => status === 429 || (status >= 500 && status !== 501);

/**
 * Judges what `fetch` gave. An opaque answer shows no status, but it is one. A network error while offline says nothing about the service.
 * `retryAfter`: the header is heeded.
 */
export const judgeFetch =
  (failing: (status: number) => boolean, retryAfter: boolean) =>
  (ok: boolean, value: unknown, clock: () => number): number | { verdict: number; until: number } => {
    if (!ok) return isOffline() ? IGNORED : FAILURE;
    const { type, status, headers } = value as Partial<Response> & Pick<Response, "status">;
    if (type !== "error" && !failing(status)) return SUCCESS;
    return retryAfter && (status === 429 || status === 503) ? { verdict: FAILURE, until: retryAt(headers?.get("Retry-After") ?? null, clock()) } : FAILURE;
  };
