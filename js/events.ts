// What a circuit tells, and to whom. A listener that throws is reported to the host; the others still hear.

import { InvalidCircuitError } from "./errors.js";
import { report } from "./host.js";
import type { Inspection } from "./inspection.js";

export type CircuitState = "closed" | "open" | "half_open";
export type Held = "open" | "closed";
/** Why a call was refused: `open`, `held_open` (an operator's hold), `probes_busy` (half-open, every probe is taken). */
export type RefusalReason = "open" | "held_open" | "probes_busy";
/** Why a circuit moved. `adopted`: another participant had decided it, and the store told. */
export type TransitionReason = (typeof REASONS)[number];

/** As the boundary numbers them. */
export const REASONS = [
  "failure_rate", "failure_count", "slow_rate", "open_elapsed", "probe_failed", "probe_slow", "probes_succeeded",
  "forced", "held", "released", "reset", "adopted",
] as const;

/** What the window holds. A slow failure is in both `failures` and `slow`. */
export interface Counts {
  calls: number;
  failures: number;
  slow: number;
}

/** One move of a circuit. Instants are milliseconds since the epoch. */
export interface Transition {
  key: string;
  from: CircuitState;
  to: CircuitState;
  reason: TransitionReason;
  at: number;
  /** Raised by every episode; results of calls admitted in an earlier one change nothing. */
  generation: number;
  /** What decided it. */
  counts: Counts;
  /** When probing may begin; only when it is open. */
  until: number | null;
}

/** What was decided last, here or by whoever shares the circuit. It is stored with the verdict, so a reload and an adoption keep it. */
export interface Why {
  reason: TransitionReason;
  at: number;
  /** What decided it: the window that tripped, or the probes of the half-open period. */
  counts: Counts;
}

/** In order, as they happened. Instants are milliseconds since the epoch, by the circuit's clock. */
export interface BreakerEvents {
  /** What holds: heard at once, and again after every transition. Of a registry: of every circuit there is, and of each new one. */
  state: Inspection;
  /** The circuit moved. It has moved already when this is heard. */
  transition: Transition;
  /** A call was let in, in this state. Its `outcome` follows when it ends. */
  admitted: { key: string; state: CircuitState; probe: boolean; at: number };
  /** A call was refused, or would have been (`shadow`). `fallback`: a fallback is to answer in its place. */
  rejected: { key: string; reason: RefusalReason; retryAt: number | null; shadow: boolean; fallback: boolean; at: number };
  /**
   * A call ended. `stale`: its circuit had moved on meanwhile, so it was not counted. `error`: what made it a failure (what was thrown, the
   * value, the HTTP status). `fallback`: a fallback is to answer in its place. Heard of calls that began after `on`.
   */
  outcome: {
    key: string;
    verdict: "success" | "failure" | "ignored";
    durationMs: number | null;
    probe: boolean;
    stale: boolean;
    fallback: boolean;
    error?: unknown;
    at: number;
  };
  /** A fallback ended. `error`: what the caller gets instead of its answer: what it threw, or a StoreError before it could begin. */
  fallback: { key: string; after: "refusal" | "failure"; error?: unknown; at: number };
  /** The store has answered, or failed (`ok`: false). A write that somebody else was ahead of is `ok`. */
  store_operation: { key: string; operation: "get" | "set" | "claim"; durationMs: number; ok: boolean; at: number };
  /** The store failed: every time, where `diagnostic` tells an outage once. */
  store_error: { key: string; operation: "get" | "set" | "claim"; error: unknown; at: number };
  /** Something beside the calls went wrong, and the calls go on: a store, a stored text, a classifier, a clock, no WebAssembly. Once per cause. */
  diagnostic: { key: string; code: string; message: string; cause?: unknown; at: number };
}

export type Listen = <E extends keyof BreakerEvents>(
  event: E,
  listener: (detail: BreakerEvents[E]) => void,
  options?: { signal?: AbortSignal },
) => () => void;

type Listener = { hear(detail: unknown): unknown };
export type Listeners = Record<keyof BreakerEvents, Set<Listener>>;

export const EVENTS = ["state", "transition", "admitted", "rejected", "outcome", "fallback", "store_operation", "store_error", "diagnostic"] as const;
export const noListeners = (): Listeners => Object.fromEntries(EVENTS.map((event) => [event, new Set()])) as unknown as Listeners;


export function listen(
  listeners: Listeners,
  event: keyof BreakerEvents,
  hear: (detail: never) => unknown,
  signal: AbortSignal | undefined,
  changed: () => void,
): () => void {
  if (!Object.hasOwn(listeners, event)) throw new InvalidCircuitError("event", event, `must be one of ${Object.keys(listeners)}`);
  if (typeof hear !== "function") throw new TypeError("A listener is a function");
  const listener = { hear: hear as Listener["hear"] };
  const stop = (): void => {
    signal?.removeEventListener("abort", stop);
    if (listeners[event].delete(listener)) changed();
  };
  if (!signal?.aborted) {
    signal?.addEventListener("abort", stop);
    listeners[event].add(listener);
    changed();
  }
  return stop;
}

export function tell(listeners: Set<Listener>, detail: unknown): void {
  for (const listener of [...listeners]) if (listeners.has(listener)) hear(listener.hear, detail);
}

/** A listener's fault is its own. */
export function hear(listener: (detail: never) => unknown, detail: unknown): void {
  try {
    const answer = listener(detail as never) as PromiseLike<unknown> | undefined;
    // An async listener that fails must not become an unhandled rejection.
    if (typeof answer?.then === "function") answer.then(undefined, report);
  } catch (error) {
    report(error);
  }
}
