// What a store is, and the line to one: an operation at a time, what time it is there, and how long to wait after a failure.

import { type Awaitable, attempt, deadline, isThenable, late, then } from "./awaitable.js";
import { StoreError } from "./errors.js";

/** What a store holds for a key. `now`: the store's own clock, if it has one; such a store tells it also where it holds nothing. */
export interface Stored {
  snapshot: string | null;
  version: string | null;
  now?: number;
}

/** Where circuits are kept. It knows keys, texts and versions and never looks inside a text. Anything may throw or reject: calls go on. */
export interface CircuitStore {
  /** `"atomic"`: `set` honours `ifVersion`. `"last_write"`: it does not. */
  readonly consistency: "atomic" | "last_write";
  /** Synchronous and of this device: read before anything is told, and the tally is kept as well. */
  readonly local?: true;
  /** How old a reading may become, unless `refreshMs` is given. Default 10,000. */
  readonly refreshMs?: number;
  /** The least time between two writes of one key. Default 0. */
  readonly writeEveryMs?: number;
  /** Null, or a null `snapshot`: it holds nothing. */
  get(key: string): Awaitable<Stored | null>;
  /** `ttlMs`: after it the text says nothing any more. `ifVersion`: write only if the stored one has this version; null: only if there is none. */
  set(key: string, snapshot: string, options: { ttlMs: number; ifVersion?: string | null }): Awaitable<{ ok: boolean; version?: string | null }>;
  delete?(key: string): Awaitable<void>;
  /** Calls `listener` whenever somebody else writes. */
  subscribe?(listener: (key: string, snapshot: string | null) => void): () => void;
  /** Takes a lock that is the probe's lease itself, at least for `leaseMs`: what frees it, or null if somebody else has it. */
  claim?(key: string, slot: number, leaseMs: number): Awaitable<(() => void) | null>;
}

const LONGEST_WAIT_MS = 60_000;
/** To ask a local store costs next to nothing. */
const LONGEST_LOCAL_WAIT_MS = 5_000;

/** Who wants to know of a line. */
export interface LineHearer {
  /** The store's clock is known now, and shows so much more. */
  shift(by: number): void;
  /** An operation has ended. */
  asked(operation: StoreError["operation"], durationMs: number, ok: boolean): void;
  /** The store has failed. */
  faulted(fault: StoreError): void;
}

/** The line of one circuit to its store. Intervals are measured by the own clock; the circuit lives by the store's, where it has one. */
export class Line {
  readonly #key: string;
  readonly #own: () => number;
  readonly #timeoutMs: number;
  readonly #hearer: LineHearer;
  #ahead: number | undefined;
  /** By the own clock, when it was asked last. */
  #seen = -Infinity;
  /** How long the answer took that told it best. */
  #known = Infinity;
  #failures = 0;

  /** Why the store fails, while it does. */
  fault: StoreError | undefined;
  /** Not before, after failures. */
  retryAt = -Infinity;
  readAt = -Infinity;
  wroteAt = -Infinity;
  /** An exchange has begun, and nothing has come back since. */
  unanswered = false;
  /** The text that is on its way. */
  sending: string | undefined;

  constructor(
    key: string,
    readonly store: CircuitStore,
    clock: () => number,
    timeoutMs: number,
    hearer: LineHearer,
  ) {
    this.#hearer = hearer;
    this.#key = key;
    this.#own = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** The store's, where it is known: it does not go back because the own one is set back. */
  readonly clock = (): number => {
    const own = this.#own();
    if (this.#ahead === undefined) return own;
    if (own < this.#seen) this.#ahead += this.#seen - own;
    this.#seen = own;
    return own + this.#ahead;
  };

  /** What the store's clock shows more. */
  get ahead(): number {
    return this.#ahead ?? 0;
  }

  get(patient = false): Awaitable<Stored | null> {
    const since = (this.readAt = this.#own());
    return then(this.#ask("get", () => this.store.get(this.#key), patient), (found) => {
      const age = this.#own() - since;
      if (found?.now !== undefined && age <= Math.max(this.#timeoutMs, 2 * this.#known)) {
        const ahead = Math.round(found.now - since - age / 2);
        if (this.#ahead === undefined) this.#hearer.shift(ahead);
        this.#ahead = ahead;
        this.#known = Math.min(this.#known, age);
      }
      return found;
    });
  }

  /** Writes, in an atomic store only over this version. False: it refused. */
  set(text: string, version: string | null, ttlMs: number, patient = false): Awaitable<boolean> {
    this.wroteAt = this.#own();
    this.sending = text;
    const options = this.store.consistency === "atomic" ? { ttlMs, ifVersion: version } : { ttlMs };
    return then(this.#ask("set", () => this.store.set(this.#key, text, options), patient), ({ ok }) => ok);
  }

  lock(slot: number, leaseMs: number): Awaitable<(() => void) | null> {
    return this.#ask("claim", () => this.store.claim!(this.#key, slot, leaseMs));
  }

  works(): void {
    this.unanswered = false;
    this.#failures = 0;
    this.retryAt = -Infinity;
    this.fault = undefined;
  }

  /** True for the first failure of an outage. */
  failed(error: unknown, operation: StoreError["operation"] = "get"): boolean {
    this.fault = error instanceof StoreError ? error : this.#fault(operation, error);
    this.retryAt = this.#own() + Math.min(500 * 2 ** ++this.#failures, this.store.local ? LONGEST_LOCAL_WAIT_MS : LONGEST_WAIT_MS);
    return this.#failures === 1;
  }

  raise(operation: StoreError["operation"], cause: unknown): never {
    throw this.#fault(operation, cause);
  }

  #fault(operation: StoreError["operation"], cause: unknown): StoreError {
    const fault = new StoreError(operation, this.#key, cause);
    this.#hearer.faulted(fault);
    return fault;
  }

  /** The own clock was set back: nothing measured by it holds. */
  setBack(): void {
    this.readAt = this.wroteAt = this.retryAt = -Infinity;
  }

  /** One operation. An answer after its time says nothing: the process may have slept. `patient`: it may have a timer. */
  #ask<T>(operation: StoreError["operation"], work: () => Awaitable<T>, patient = false): Awaitable<T> {
    const since = this.#own();
    const limit = 10 * this.#timeoutMs;
    const within = (): Awaitable<T> => {
      const answer = work();
      return patient && isThenable(answer) ? deadline(answer, limit) : answer;
    };
    const wrong = (error: unknown): never => {
      this.#hearer.asked(operation, Math.max(0, this.#own() - since), false);
      return this.raise(operation, error);
    };
    return then(attempt(within, wrong), (answer) => {
      const took = Math.max(0, this.#own() - since);
      if (took > limit) wrong(late(limit));
      this.#hearer.asked(operation, took, true);
      return answer;
    });
  }
}
