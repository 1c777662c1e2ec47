// For tests of code that uses a circuit or keeps it: a clock that moves when told, a store that fails when told, what a store promises.

import type { Awaitable } from "./awaitable.js";
import type { CircuitStore } from "./store.js";

export { storeContract, type ContractCheck, type ContractSubject } from "./contract.js";

/**
 * A clock for the `clock` option. It stands still until `advance(ms)` or `set(at)`; nothing is scheduled on it, so a circuit that became
 * due shows it at the next call. `start` is an instant in milliseconds since the epoch, default 0.
 */
export function fakeClock(start = 0): { (): number; advance(ms: number): void; set(at: number): void } {
  let now = start;
  return Object.assign(() => now, {
    advance(ms: number) {
      now += ms;
    },
    set(at: number) {
      now = at;
    },
  });
}

/** What a faulty store does wrong. All of it can be switched while it is used. */
export interface StoreFaults {
  /** Every operation is refused, and nobody hears of a write. */
  down: boolean;
  /** No operation is ever answered or done, and nobody hears of a write. */
  hang: boolean;
  /** Every operation is done so much later. */
  delayMs: number;
  /** Writes are done, but the answer is an error. */
  lose: boolean;
}

/**
 * A store around yours that fails when told: for tests of what your application does without its store.
 *
 *     const store = faultyStore(memoryStore());
 *     store.down = true;
 *
 * `calls` lists the operations asked for, also those that failed. While no fault is on, answers are those of the wrapped store, and as
 * synchronous as its own are.
 */
export function faultyStore(store: CircuitStore, faults: Partial<StoreFaults> = {}): CircuitStore & StoreFaults & { readonly calls: StoreCall[] } {
  const calls: StoreCall[] = [];
  const fail = (message: string): Promise<never> => {
    const error = new Error(message);
    if (store.local) throw error;
    return Promise.reject(error);
  };
  const perform = <T>(operation: StoreCall["operation"], key: string, work: () => Awaitable<T>): Awaitable<T> => {
    calls.push({ operation, key });
    if (faulty.hang) return new Promise(() => {});
    if (faulty.down) return fail("The store is down");
    return faulty.delayMs > 0 ? new Promise((resolve) => setTimeout(resolve, faulty.delayMs)).then(work) : work();
  };
  const faulty: CircuitStore & StoreFaults & { readonly calls: StoreCall[] } = {
    down: false,
    hang: false,
    delayMs: 0,
    lose: false,
    ...faults,
    calls,
    consistency: store.consistency,
    local: store.local,
    refreshMs: store.refreshMs,
    writeEveryMs: store.writeEveryMs,
    get: (key) => perform("get", key, () => store.get(key)),
    set: (key, snapshot, options) => {
      const { lose } = faulty;
      const answer = perform("set", key, () => store.set(key, snapshot, options));
      if (!lose) return answer;
      return store.local ? fail("The answer was lost") : Promise.resolve(answer).then(() => fail("The answer was lost"));
    },
    delete: store.delete && ((key) => perform("delete", key, () => store.delete!(key))),
    subscribe: store.subscribe && ((listener) => store.subscribe!((key, snapshot) => faulty.down || faulty.hang || listener(key, snapshot))),
    claim: store.claim && ((key, slot, leaseMs) => perform("claim", key, () => store.claim!(key, slot, leaseMs))),
  };
  return faulty;
}

export interface StoreCall {
  readonly operation: "get" | "set" | "delete" | "claim";
  readonly key: string;
}
