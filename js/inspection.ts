// What a circuit shows of itself.

import { type CircuitState, type Counts, type Held, REASONS, type Why } from "./events.js";
import { inspect } from "./runtime.js";

/** What holds at an instant. Instants are milliseconds since the epoch. */
export interface Inspection {
  key: string;
  /** An open circuit that is due reads `half_open`: the next call is a probe. */
  state: CircuitState;
  /** An operator's hold, which time does not end. */
  held: Held | null;
  /** Would a call be let in? */
  admits: boolean;
  since: number;
  /** When probing may begin; only when it is open. */
  until: number | null;
  counts: Counts;
  probesInFlight: number;
  probeSuccesses: number;
  /** Refused since the outage began. */
  rejected: number;
  generation: number;
  /** The next instant at which time alone changes something, for screens. */
  nextChangeAt: number | null;
  /** What was decided last; null: nothing yet. */
  why: Why | null;
}

export const STATES = ["closed", "open", "half_open"] as const;
export const HELD = ["open", "closed"] as const;
export const orNull = (number: number): number | null => (number === number ? number : null);

/** The circuit of a handle, as it is at `now`; closed and empty if there is none. */
export function inspection(key: string, handle: number, now: number): Inspection {
  const [state, held, admits, since, until, calls, failures, slow, probesInFlight, probeSuccesses, rejected, generation, next, ...why] = inspect(handle, now);
  const [reason, at, ...decided] = why;
  return {
    key,
    state: STATES[state!]!,
    held: held === 0 ? null : HELD[held! - 1]!,
    admits: admits === 1,
    since: since!,
    until: orNull(until!),
    counts: { calls: calls!, failures: failures!, slow: slow! },
    probesInFlight: probesInFlight!,
    probeSuccesses: probeSuccesses!,
    rejected: rejected!,
    generation: generation!,
    nextChangeAt: orNull(next!),
    why: reason! >= 0 ? { reason: REASONS[reason!]!, at: at!, counts: { calls: decided[0]!, failures: decided[1]!, slow: decided[2]! } } : null,
  };
}
