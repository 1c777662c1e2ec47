// What can be asked of a breaker beside its policy, and of one call; and what circuits of one registry have in common.

import type { Awaitable, WaitUntil } from "./awaitable.js";
import type { CircuitBreaker } from "./breaker.js";
import type { Classify } from "./classify.js";
import { trusted, wallClock } from "./clock.js";
import { InvalidCircuitError, whole } from "./errors.js";
import type { Listeners } from "./events.js";
import { report } from "./host.js";
import type { Rules } from "./policy.js";
import type { SharingOptions } from "./sharing.js";
import type { CircuitStore } from "./store.js";

/** Options of a breaker that are not its policy. */
export interface BreakerOptions {
  /** Shares the circuit with others, and keeps it over a reload. Default: it lives here only. */
  store?: CircuitStore;
  /**
   * What is shared. `"verdict"` (default): the tallies stay here, what was decided travels. `"tally"`: outcomes are counted together as
   * well, in batches, each exactly once; needs an atomic store, and the same choice and policy at every participant.
   */
  share?: "verdict" | "tally";
  /**
   * What a verdict of others does. `"open"` (default): it holds here. `"never"`: it is told as the diagnostic `remote_verdict` and changes
   * nothing; what is decided here is still written. For where one sick participant must not open the circuit of the healthy ones; each
   * then pays for every outage itself, and probes within its own limit.
   */
  adopt?: "open" | "never";
  /**
   * While the store fails. `"continue"` (default): the circuit goes on alone, and tells the diagnostic `store_failed` once an outage.
   * `"refuse"`: so it does, but no probe starts that the others cannot know of. `"throw"`: a first reading, a probe's claim and a write
   * that a call caused reject that call with a StoreError, as rasuvaeff does.
   */
  onStoreError?: "continue" | "refuse" | "throw";
  /** `"wait"` (default): the first call waits for the store, at most `storeTimeoutMs`. `"background"`: it does not. A synchronous store is always read at once. */
  firstRead?: "wait" | "background";
  /** How long a call may wait for the store, in ms. Default 100. Nothing but a first call and a probe ever waits. */
  storeTimeoutMs?: number;
  /** How old the last reading of the store may become while there are calls. Default 10,000, or what the store asks for. */
  refreshMs?: number;
  /** Is given every promise of work for the store that the host should wait for. Inside Cloudflare's runtime this is built in. */
  waitUntil?: WaitUntil;
  /** Milliseconds since the epoch. Default Date.now. What it throws is reported and never reaches a call. */
  clock?: () => number;
  /** How a call went. Default: a value is a success, an error a failure. One that throws makes the outcome ignored and is reported. */
  classify?: Classify;
}

/** Options of one call. */
export interface RunOptions<T> {
  /** Is given to the function. Aborted before the start: the function is not run. Aborted later: the outcome is ignored, unless the reason is a TimeoutError, which is a failure. */
  signal?: AbortSignal;
  /** Aborts the signal given to the function; the call rejects with a DOMException "TimeoutError" and counts as a failure. From 1 ms. */
  timeoutMs?: number;
  /** Runs instead when the call is refused, and is given the CircuitOpenError. Its outcome is never counted; what it throws has the first error as `cause`. */
  fallback?: (error: unknown) => Awaitable<T>;
  /** `"failure"`: the fallback also replaces an error that counted as a failure. Default `"refusal"`. */
  fallbackOn?: "refusal" | "failure";
  /** Runs instead of the function when the call is a probe. */
  probe?: (signal: AbortSignal | undefined) => Awaitable<T>;
  /** Asked before the breaker's. */
  classify?: Classify;
  /** Instead of the breaker's, for work this call causes. */
  waitUntil?: WaitUntil;
}

/** How fetch's calls are judged, before anybody else is asked: a verdict, or that of a failure with the instant it asked for. */
type Judge = (ok: boolean, value: unknown, clock: () => number) => number | { verdict: number; until: number };
/** What goes on after a good value: true if it will call `end`, once, or never if nobody can know. */
type Rest = (value: unknown, end: (verdict: number, error?: unknown) => void) => boolean;
export type CallOptions<T> = RunOptions<T> & { judge?: Judge; rest?: Rest };

/** What circuits of one registry have in common, or one circuit alone has. */
export interface Config extends Rules, SharingOptions {
  readonly clock: () => number;
  readonly classify: Classify | undefined;
  /** Causes that have been told. */
  readonly told: Set<string>;
  readonly registry?: {
    readonly listeners: Listeners;
    /** Finds a place for a circuit that has lost it. */
    enter(breaker: CircuitBreaker, home: Home): void;
    leave(breaker: CircuitBreaker, home: Home): void;
  };
}

/** A circuit's place in its registry. */
export interface Home {
  handle: number;
  /** Held while more than the handle matters: it is not closed, somebody listens, it is shared. */
  keep: CircuitBreaker | undefined;
}

export const OPTIONS = ["store", "share", "adopt", "onStoreError", "firstRead", "storeTimeoutMs", "refreshMs", "waitUntil", "clock", "classify"];

export function parseOptions(options: BreakerOptions, rules: Rules | undefined): Config {
  const { store, share, adopt, onStoreError, firstRead, storeTimeoutMs = 100, refreshMs = store?.refreshMs ?? 10_000, waitUntil, clock, classify } = options;
  const tally = choice("share", share, ["verdict", "tally"]) === "tally";
  if (tally && store?.consistency !== "atomic") throw new InvalidCircuitError("share", share, "needs an atomic store");
  const told = new Set<string>();
  return {
    ...(rules as Rules),
    store,
    tally,
    advice: choice("adopt", adopt, ["open", "never"]) === "never",
    onStoreError: choice("onStoreError", onStoreError, ["continue", "refuse", "throw"]),
    background: choice("firstRead", firstRead, ["wait", "background"]) === "background",
    storeTimeoutMs: whole("storeTimeoutMs", storeTimeoutMs, 1),
    refreshMs: whole("refreshMs", refreshMs, 1),
    waitUntil,
    clock: clock ? trusted(clock, (error) => told.has("clock") || (told.add("clock"), report(error))) : wallClock,
    classify,
    told,
  };
}

/** The first one is the default. */
export function choice<T extends string>(field: string, value: T | undefined, choices: readonly T[]): T {
  if (value === undefined) return choices[0]!;
  if (choices.includes(value)) return value;
  throw new InvalidCircuitError(field, value, `must be one of ${choices.join(", ")}`);
}
