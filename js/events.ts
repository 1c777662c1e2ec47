// What a circuit tells, and to whom. A listener that throws is reported to the host; the others still hear.

import { InvalidCircuitError } from "./errors.js";
import { report } from "./host.js";

export type CircuitState = "closed" | "open" | "half_open";
export type Held = "open" | "closed";
/** Why a call was refused: `open`, `held_open` (an operator's hold), `probes_busy` (half-open, every probe is taken). */
export type RefusalReason = "open" | "held_open" | "probes_busy";
/** Why a circuit moved. `adopted`: another participant had decided it, and the store told. */
export type TransitionReason =
  | "failure_rate" | "failure_count" | "slow_rate" | "open_elapsed" | "probe_failed" | "probe_slow" | "probes_succeeded"
  | "forced" | "held" | "released" | "reset" | "adopted";

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

export interface BreakerEvents {
  /** The circuit moved. It has moved already when this is heard. */
  transition: Transition;
  /** A call was refused, or would have been (`shadow`). */
  rejected: { key: string; reason: RefusalReason; retryAt: number | null; shadow: boolean; at: number };
  /** A call ended. `stale`: its circuit had moved on meanwhile, so it was not counted. Heard of calls that began after `on`. */
  outcome: { key: string; verdict: "success" | "failure" | "ignored"; durationMs: number | null; probe: boolean; stale: boolean; at: number };
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

export const noListeners = (): Listeners => ({ transition: new Set(), rejected: new Set(), outcome: new Set(), diagnostic: new Set() });

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
  for (const listener of [...listeners]) {
    if (!listeners.has(listener)) continue;
    try {
      const answer = listener.hear(detail) as PromiseLike<unknown> | undefined;
      // An async listener that fails must not become an unhandled rejection.
      if (typeof answer?.then === "function") answer.then(undefined, report);
    } catch (error) {
      report(error);
    }
  }
}
