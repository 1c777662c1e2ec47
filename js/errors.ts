// What can be thrown. Literal names and stable codes; `isCircuitOpenError` also knows errors of another realm or another copy.

import type { CircuitState, RefusalReason } from "./events.js";

/** Everything this package throws. `code` is stable, the message is not. */
export class CircuitError extends Error {
  readonly code: string;
  /** The circuit it is about, if it is about one. */
  readonly key: string | null;

  constructor(code: string, message: string, key: string | null = null, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.key = key;
  }

  override get name(): string {
    return "CircuitError";
  }
}

/**
 * A call was refused and nothing was run. `retryAt` is the instant at which it may come back (milliseconds since the epoch), null if
 * nobody can tell; `cause` is the failure that opened the circuit, if it happened here.
 *
 * One error is shared by all refused calls of one open period, so that a refusal costs next to nothing: do not change it.
 */
export class CircuitOpenError extends CircuitError {
  declare readonly code: "ERR_CIRCUIT_OPEN";
  declare readonly key: string;
  readonly state: CircuitState;
  readonly reason: RefusalReason;
  readonly retryAt: number | null;
  readonly #clock: () => number;

  /** `told`: what holds and why, for the message. */
  constructor(key: string, reason: RefusalReason, retryAt: number | null, clock: () => number, options: { cause?: unknown; told?: string | undefined } = {}) {
    const busy = reason === "probes_busy";
    const { told = `${busy ? "half-open, every probe is under way" : "open"}${retryAt === null ? "" : `; next probe at ${instant(retryAt)}`}` } = options;
    super("ERR_CIRCUIT_OPEN", `Circuit ${key} is ${told}`, key, options);
    this.state = busy ? "half_open" : "open";
    this.reason = reason;
    this.retryAt = retryAt;
    this.#clock = clock;
  }

  override get name(): string {
    return "CircuitOpenError";
  }

  /** Milliseconds from now, by the breaker's clock, until `retryAt`; never negative. */
  get retryAfterMs(): number | null {
    return this.retryAt === null ? null : Math.max(0, this.retryAt - this.#clock());
  }
}

/**
 * The store failed, and `onStoreError` is `"throw"`. `cause` is what it threw; `callError` what the call itself threw, if it did: its
 * outcome was counted here all the same.
 */
export class StoreError extends CircuitError {
  declare readonly code: "ERR_CIRCUIT_STORE";
  declare readonly key: string;
  readonly operation: "get" | "set" | "claim";
  readonly callError?: unknown;

  constructor(operation: StoreError["operation"], key: string, cause: unknown, call?: { callError: unknown }) {
    super("ERR_CIRCUIT_STORE", `The store of circuit ${key} failed (${operation}): ${cause instanceof Error ? cause.message : String(cause)}`, key, { cause });
    this.operation = operation;
    if (call) this.callError = call.callError;
  }

  override get name(): string {
    return "StoreError";
  }
}

/** As much of a text as a message should hold. */
export const clipped = (text: string): string => (text.length > 100 ? `${text.slice(0, 100)}…` : text);

/** A key, an option or a policy that cannot work. `field` names it; `min` and `max` are its bounds where it has any. */
export class InvalidCircuitError extends CircuitError {
  declare readonly code: "ERR_INVALID_CIRCUIT";
  readonly field: string;
  readonly value: unknown;
  readonly min?: number;
  readonly max?: number;

  constructor(field: string, value: unknown, problem: string, min?: number, max?: number) {
    const shown = typeof value === "string" ? JSON.stringify(clipped(value)) : typeof value === "object" && value ? "an object" : clipped(String(value));
    super("ERR_INVALID_CIRCUIT", `${clipped(field)} ${problem} (got ${shown})`);
    this.field = field;
    this.value = value;
    if (min !== undefined) this.min = min;
    if (max !== undefined) this.max = max;
  }

  override get name(): string {
    return "InvalidCircuitError";
  }
}

/** Was this call refused by a circuit? Also true for errors of another realm and of another copy of this package. */
export function isCircuitOpenError(error: unknown): error is CircuitOpenError {
  return typeof error === "object" && error !== null && (error as { code?: unknown }).code === "ERR_CIRCUIT_OPEN";
}

/** A number as it must be: whole, from `min` to `max`. */
export function whole(field: string, value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  throw new InvalidCircuitError(field, value, `must be a whole number from ${min} to ${max}`, min, max);
}

/** Makes an error without a stack: half of what an error costs, and the stack of one refused call says nothing about the others. */
export function withoutStack<E>(make: () => E): E {
  const errors = Error as { stackTraceLimit?: number };
  const limit = errors.stackTraceLimit;
  if (limit === undefined) return make();
  try {
    errors.stackTraceLimit = 0;
    return make();
  } finally {
    errors.stackTraceLimit = limit;
  }
}

/** Readable, also beyond the last day a Date can hold. */
export const instant = (at: number): string => (at <= 864e13 ? new Date(at).toISOString().replace(/\.\d+Z$/, "Z") : String(at));
