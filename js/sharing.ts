// One circuit shared by many through a store: one loop for every kind of store, driven by what the store can do. What travels is the
// opaque text of the core, and the core merges; here is only when to read and when to write. A store fault never reaches a call.

import { onPageHide } from "./host.js";
import type { Rules } from "./policy.js";
import { inspect, source } from "./runtime.js";

export type Awaitable<T> = T | PromiseLike<T>;
export type WaitUntil = (work: Promise<unknown>) => void;

/** What a store holds for a key. `now`: the store's own clock, if it has one. */
export interface Stored {
  snapshot: string;
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
  get(key: string): Awaitable<Stored | null>;
  /** `ttlMs`: after it the text says nothing any more. `ifVersion`: write only if the stored one has this version; null: only if there is none. */
  set(key: string, snapshot: string, options: { ttlMs: number; ifVersion?: string | null }): Awaitable<{ ok: boolean; version?: string | null }>;
  delete?(key: string): Awaitable<void>;
  /** Calls `listener` whenever somebody else writes. */
  subscribe?(listener: (key: string, snapshot: string | null) => void): () => void;
  claim?(key: string, slot: number, leaseMs: number): Awaitable<(() => void) | null>;
}

export interface SharingOptions {
  readonly store: CircuitStore | undefined;
  readonly background: boolean;
  readonly storeTimeoutMs: number;
  readonly refreshMs: number;
  readonly waitUntil: WaitUntil | undefined;
}

/** What sharing needs of its circuit. */
export interface Member {
  handle(): number;
  encode(): string;
  /** Merges a text: the bits of the boundary. `whole`: take its tally as well. */
  adopt(text: string, whole: boolean): number;
  failed(error: unknown): void;
}

export interface Shared {
  readonly local: boolean;
  readonly unread: boolean;
  /** The first reading; a promise if the call has to wait. It never rejects. */
  first(waitUntil?: WaitUntil): Promise<void> | undefined;
  /** Before an admission that has to ask. */
  refresh(waitUntil?: WaitUntil): void;
  /** After an outcome. */
  settled(failed: boolean, waitUntil?: WaitUntil): void;
  /** After a probe was let in or came back. */
  probing(waitUntil?: WaitUntil): void;
  /** After something was decided here. */
  changed(waitUntil?: WaitUntil): void;
  flush(): Awaitable<void>;
  /** The last write; a promise while it goes on. */
  close(): Promise<void> | undefined;
}

const OPEN = 1;
const DUE = 2;
const ADOPTED = 2;
const REPAIR = 8;

const MARGIN_MS = 60_000;
const HOLD_MS = 30 * 86_400_000;
const TALLY_EVERY_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
/** A write inside `waitUntil` may wait this long for its turn. */
const PATIENCE_MS = 5_000;

export function share(key: string, store: CircuitStore, options: SharingOptions & Rules & { readonly clock: () => number }, member: Member): Shared {
  const { clock, storeTimeoutMs, refreshMs } = options;
  const local = store.local === true;
  const tellsProbes = local || store.consistency === "atomic";

  let unread = true;
  let closed = false;
  /** The last text seen in the store. */
  let last: string | undefined;
  /** Something was decided, or counted, that the store does not have. */
  let verdict = false;
  let tally = false;
  let readAt = -Infinity;
  let wroteAt = -Infinity;
  let failures = 0;
  /** Not before, after failures. */
  let retryAt = -Infinity;
  /** An exchange is under way; one that has not come back by then is given up. */
  let busyUntil = -Infinity;
  let unsubscribe: (() => void) | undefined;
  let unhide: (() => void) | undefined;

  const meet = (text: string | undefined, whole = false): number => {
    if (text === undefined || text === last || closed) return 0;
    last = text;
    const bits = member.adopt(text, whole);
    if (bits & ADOPTED) verdict = tally = false; // what was to be said is no longer so
    return bits;
  };

  const failed = (error: unknown): void => {
    retryAt = clock() + Math.min(500 * 2 ** ++failures, LONGEST_WAIT_MS);
    if (failures === 1) member.failed(error);
  };

  const works = (): void => {
    failures = 0;
    retryAt = -Infinity;
  };

  const ttl = (): number => {
    const [state, held, , , until] = inspect(member.handle(), clock());
    // A closed verdict must outlive every open one it may have to beat.
    const matters = held ? HOLD_MS : state ? Math.max(0, until! - clock()) || 0 : options.maxOpenMs;
    return matters + options.leaseMs + MARGIN_MS;
  };

  /** Reads, meets what comes, and writes if there is still something to say. `patient`: somebody keeps the promise alive, so it may have a timer. */
  const exchange = (patient: boolean, tries = 3): Awaitable<void> => {
    const within = <T>(work: Awaitable<T>): Awaitable<T> => (patient && isThenable(work) ? deadline(work, 10 * storeTimeoutMs) : work);
    readAt = clock();
    return then(within(store.get(key)), (found) => {
      if (unread) join();
      const bits = meet(found?.snapshot);
      const [state, , , , until] = inspect(member.handle(), clock());
      // Only an open verdict that is not due is ever said again, and once per staleness of the store: else old verdicts would come back.
      const repair = found ? bits & REPAIR : state === OPEN && until! > clock();
      if (repair && readAt - wroteAt >= refreshMs) verdict = true;
      if (!(verdict || tally) || member.handle() < 0) return works();
      const text = member.encode();
      const said = { verdict, tally };
      verdict = tally = false;
      wroteAt = clock();
      if (found?.snapshot === text) return works();
      const before = last;
      last = text; // what comes back from the store is no news
      const again = (): void => {
        last = before;
        verdict ||= said.verdict;
        tally ||= said.tally;
      };
      const ifVersion = store.consistency === "atomic" ? { ifVersion: found?.version ?? null } : {};
      return then(
        attempt(() => within(store.set(key, text, { ttlMs: ttl(), ...ifVersion })), (error) => {
          again();
          throw error;
        }),
        ({ ok }) => {
          if (ok) return works();
          again();
          if (tries > 1) return exchange(patient, tries - 1);
          throw new Error("The store refuses every write");
        },
      );
    });
  };

  /** Exchanges, when the store and its failures allow it, and again while there is something new to say. */
  const flow = (patient: boolean, urgent: boolean, tries = 3): Awaitable<void> => {
    const wait = Math.max(wroteAt + (store.writeEveryMs ?? 0), urgent ? -Infinity : retryAt) - clock();
    if (wait > 0 && !(patient && wait <= PATIENCE_MS)) return;
    const go = (): Awaitable<void> => {
      busyUntil = clock() + 20 * storeTimeoutMs;
      return then(attempt(() => exchange(patient), failed), () => {
        busyUntil = -Infinity;
        return verdict && tries > 1 ? flow(patient, false, tries - 1) : undefined;
      });
    };
    if (wait <= 0) return go();
    busyUntil = clock() + wait + storeTimeoutMs;
    return new Promise<void>((resolve) => setTimeout(resolve, wait)).then(go);
  };

  const start = (waitUntil: WaitUntil | undefined, urgent = false): void => {
    if (closed || clock() < busyUntil) return;
    const keeper = waitUntil ?? options.waitUntil ?? source?.waitUntil;
    const work = flow(keeper !== undefined, urgent);
    if (work) keep(work, keeper);
  };

  const settled = (failure: boolean, waitUntil?: WaitUntil): void => {
    if (unread) return;
    const now = clock();
    if (local && failure) tally = true;
    const due = verdict || failures > 0 || (tally && now - wroteAt >= TALLY_EVERY_MS) || now - readAt >= refreshMs;
    if (due && now >= retryAt) start(waitUntil);
  };

  const changed = (waitUntil?: WaitUntil): void => {
    verdict = true;
    // A local store is asked at every move, also while it fails: a page may be gone before the next chance.
    start(waitUntil, local);
  };

  const join = (): void => {
    unread = false;
    readAt = clock();
    if (unsubscribe || closed) return;
    attempt(() => void (unsubscribe = store.subscribe?.((of, text) => of === key && text !== null && meet(text)) ?? (() => {})), failed);
    if (local) unhide = onPageHide(() => (verdict || tally) && start(undefined, true));
  };

  return {
    local,
    get unread() {
      return unread;
    },
    first(waitUntil) {
      unread = false; // a store that calls back finds it read
      let reading: Awaitable<Stored | null> = null;
      try {
        reading = store.get(key);
      } catch (error) {
        failed(error);
      }
      if (!isThenable(reading)) {
        join();
        meet(reading?.snapshot, local);
        return undefined;
      }
      unread = !options.background;
      if (options.background) join();
      // Each first caller waits for its own reading: a promise made for one request must not be awaited by another. A late answer still counts.
      const done = Promise.resolve(reading).then(
        (found) => {
          works();
          join();
          meet(found?.snapshot);
        },
        (error) => {
          failed(error);
          join();
        },
      );
      keep(done, waitUntil ?? options.waitUntil ?? source?.waitUntil);
      if (options.background) return undefined;
      return deadline(done, storeTimeoutMs).catch((error) => {
        if (!unread) return; // an earlier call has waited as long
        failed(error);
        join();
      });
    },
    refresh(waitUntil) {
      settled(false, waitUntil);
      // Somebody else may have probed meanwhile, or closed: a local store tells at once.
      if (local && !closed && inspect(member.handle(), clock())[0] === DUE && clock() >= busyUntil) void flow(false, false);
    },
    settled,
    probing(waitUntil) {
      if (tellsProbes) changed(waitUntil);
    },
    changed,
    flush: () => (verdict || tally || clock() < busyUntil ? flow(true, true) : undefined),
    close() {
      const work = verdict || tally ? flow(true, true) : undefined;
      const end = (): void => {
        closed = true;
        unsubscribe?.();
        unhide?.();
      };
      if (!work) return void end();
      const ended = Promise.resolve(work).then(end);
      keep(ended, options.waitUntil ?? source?.waitUntil);
      return ended;
    },
  };
}

export const isThenable = <T>(value: Awaitable<T> | undefined): value is PromiseLike<T> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === "function";

/** Goes on at once with what is there at once. */
function then<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return isThenable(value) ? Promise.resolve(value).then(next) : next(value);
}

function attempt<T>(work: () => Awaitable<T>, failed: (error: unknown) => T | void): Awaitable<T> {
  try {
    const result = work();
    return (isThenable(result) ? Promise.resolve(result).then(undefined, failed) : result) as Awaitable<T>;
  } catch (error) {
    return failed(error) as T;
  }
}

function deadline<T>(work: PromiseLike<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const id = setTimeout(() => reject(new Error(`The store did not answer within ${ms} ms`)), ms);
    work.then(
      (value) => (clearTimeout(id), resolve(value)),
      (error) => (clearTimeout(id), reject(error)),
    );
  });
}

/** Hands work to whoever keeps it alive, if somebody does. */
function keep(work: PromiseLike<unknown>, keeper: WaitUntil | undefined): void {
  try {
    keeper?.(Promise.resolve(work));
  } catch {
    // Outside a request there is nobody to keep it.
  }
}
