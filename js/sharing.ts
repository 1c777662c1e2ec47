// One circuit shared by many through a store: one loop for every kind of store, driven by what the store can do. What travels is the
// opaque text of the core, and the core merges; here is only when to read and when to write. A store fault never reaches a call.

import { StoreError } from "./errors.js";
import { onPageHide } from "./host.js";
import type { Rules } from "./policy.js";
import { inspect, isProbe, source } from "./runtime.js";

export type Awaitable<T> = T | PromiseLike<T>;
export type WaitUntil = (work: Promise<unknown>) => void;

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

export interface SharingOptions {
  readonly store: CircuitStore | undefined;
  /** The tally is shared, too. */
  readonly tally: boolean;
  /** A remote verdict is advice only. */
  readonly advice: boolean;
  readonly onStoreError: "continue" | "refuse" | "throw";
  readonly background: boolean;
  readonly storeTimeoutMs: number;
  readonly refreshMs: number;
  readonly waitUntil: WaitUntil | undefined;
}

/** How a probe went. */
export interface ProbeOutcome {
  readonly token: number;
  readonly verdict: number;
  readonly duration: number;
  readonly at: number;
  readonly until: number;
  readonly waitUntil: WaitUntil | undefined;
  readonly cause: { cause: unknown } | undefined;
}

/** What sharing needs of its circuit. */
export interface Member {
  handle(): number;
  /** The text to store. */
  seal(): string;
  /** Merges a text: the bits of the boundary. `whole`: take its tally as well. */
  adopt(text: string, whole: boolean): number;
  /** The clock is another one, which shows so much more. */
  shift(by: number): void;
  /** Somebody else decided this, and it is not to hold here. */
  advise(text: string): void;
  /** A token, or why not; see the boundary. */
  admit(): number;
  /** The probe was not let in after all. */
  giveBack(token: number): void;
  /** The text as it would be after this outcome; empty if it is stale. */
  propose(outcome: ProbeOutcome): string;
  /** The store has it. */
  commit(outcome: ProbeOutcome): void;
  /** Judges it here. */
  settle(outcome: ProbeOutcome): void;
  failed(error: unknown): void;
}

export interface Shared {
  readonly local: boolean;
  readonly unread: boolean;
  /** The circuit's clock: the store's own, where it has one. */
  readonly clock: () => number;
  /** Why the store fails, while it does. */
  readonly fault: StoreError | undefined;
  /** The first reading; a promise if the call has to wait. It rejects only where store errors are to be thrown, with `strict`. */
  first(waitUntil?: WaitUntil, strict?: boolean): Promise<void> | undefined;
  /** Before an admission that has to ask. */
  refresh(at: number, waitUntil?: WaitUntil): void;
  /** Asks for a probe where others have to agree: a token, or why not. Undefined: it is not due, or nobody has to be asked. */
  claim(at: number): Awaitable<number> | undefined;
  /** Takes a probe's outcome, to be judged in the store's text. False: judge it here. */
  judge(outcome: ProbeOutcome): boolean;
  /** After a success at `at`, on the quick way. */
  succeeded(at: number): void;
  /** After an outcome. */
  settled(failed: boolean, waitUntil?: WaitUntil): void;
  /** After a probe was let in, and after it came back. */
  probing(waitUntil?: WaitUntil): void;
  probed(waitUntil?: WaitUntil): void;
  /** After something was decided here. */
  changed(waitUntil?: WaitUntil): void;
  flush(): Awaitable<void>;
  /** The last write; a promise while it goes on. */
  close(): Promise<void> | undefined;
}

const CLOSED = 0;
const OPEN = 1;
const DUE = 2;
const ADOPTED = 2;
/** The text lacks a verdict that we have, or is none. */
const BEHIND = 4 | 16;
const BUSY = -3;

const NOTHING = { verdict: false, tally: false };
const MARGIN_MS = 60_000;
const HOLD_MS = 30 * 86_400_000;
const TALLY_EVERY_MS = 1_000;
/** A shared tally with failures in it does not wait as long. */
const FAILURES_EVERY_MS = 250;
/** How often those read who are refused because somebody else is probing. */
const BUSY_EVERY_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
/** To ask a local store costs next to nothing. */
const LONGEST_LOCAL_WAIT_MS = 5_000;
/** A write inside `waitUntil` may wait this long for its turn. */
const PATIENCE_MS = 5_000;
/** A lock is let go when everybody has heard what its probe decided. */
const LINGER_MS = 100;

export function share(key: string, store: CircuitStore, options: SharingOptions & Rules & { readonly clock: () => number }, member: Member): Shared {
  // Intervals are measured by the own clock, the circuit lives by the store's, where it has one.
  const { clock: own, storeTimeoutMs, refreshMs } = options;
  const local = store.local === true;
  const atomic = store.consistency === "atomic";
  const shared = !options.advice;
  const arbitrates = shared && options.probeLimit !== null && (atomic || store.claim !== undefined);
  const tellsProbes = shared && !arbitrates && local;

  let unread = true;
  let closed = false;
  /** What the store's clock shows more than the own one. */
  let offset: number | undefined;
  /** How long the answer took that told it best. */
  let known = Infinity;
  /** The last text seen in the store. */
  let last: string | undefined;
  /** It lacks a verdict that we had. */
  let behind = false;
  /** Something was decided, or counted, that the store does not have. */
  let verdict = false;
  let tally = false;
  let failing = false;
  /** Outcomes of probes, to be judged in the store's text. */
  const outcomes: ProbeOutcome[] = [];
  /** A shared tally that was sent, and nobody knows whether it arrived. */
  let uncertain: { version: string | null; text: string } | undefined;
  /** What a write says that has not been answered: to be said again, unless it is. */
  let said = NOTHING;
  /** The text that is on its way. */
  let sending: string | undefined;
  /** Between these, by the circuit's clock, a success asks for nothing. */
  let quietFrom = -Infinity;
  let quietUntil = -Infinity;
  let readAt = -Infinity;
  let wroteAt = -Infinity;
  let lookedAt = -Infinity;
  let failures = 0;
  let fault: StoreError | undefined;
  /** Not before, after failures. */
  let retryAt = -Infinity;
  /** An exchange is under way; one that has not come back by then is given up. */
  let busyUntil = -Infinity;
  let busySince = -Infinity;
  let answeredAt = -Infinity;
  let turn = 0;
  /** Probes that have been asked for. */
  let claiming = 0;
  const locks = new Map<number, { release: () => void; until: number }>();
  let unsubscribe: (() => void) | undefined;
  let unhide: (() => void) | undefined;

  const clock = (): number => own() + (offset ?? 0);
  const look = (at = clock()) => inspect(member.handle(), at);
  const pending = (): boolean => verdict || tally || outcomes.length > 0;

  const meet = (text: string | null | undefined, whole = false): void => {
    if (text == null || text === last || closed) return;
    last = text;
    if (!shared) return member.advise(text);
    const bits = member.adopt(text, whole);
    behind = (bits & BEHIND) > 0;
    if (bits & ADOPTED) verdict = tally = false; // what was to be said is no longer so
  };

  const failed = (error: unknown): void => {
    retryAt = own() + Math.min(500 * 2 ** ++failures, local ? LONGEST_LOCAL_WAIT_MS : LONGEST_WAIT_MS);
    quietUntil = -Infinity;
    fault = error instanceof StoreError ? error : new StoreError("get", key, error);
    if (failures === 1) member.failed(fault.cause);
    for (const outcome of outcomes.splice(0)) member.settle(outcome); // nobody else will judge them
  };

  const decided = (): void => {
    verdict = true;
    quietUntil = -Infinity;
  };

  const sayAgain = (): void => {
    verdict ||= said.verdict;
    tally ||= said.tally;
    said = NOTHING;
    quietUntil = -Infinity;
  };

  const works = (): void => {
    answeredAt = own();
    failures = 0;
    retryAt = -Infinity;
    fault = undefined;
  };

  /** One operation. An answer after its time says nothing: the process may have slept. */
  const ask = <T>(operation: StoreError["operation"], work: () => Awaitable<T>, patient = false): Awaitable<T> => {
    const since = own();
    const within = (): Awaitable<T> => {
      const answer = work();
      return patient && isThenable(answer) ? deadline(answer, 10 * storeTimeoutMs) : answer;
    };
    const wrong = (error: unknown): never => {
      throw new StoreError(operation, key, error);
    };
    return then(attempt(within, wrong), (answer) => (own() - since > 10 * storeTimeoutMs ? wrong(late(10 * storeTimeoutMs)) : answer));
  };

  const read = (patient = false): Awaitable<Stored | null> => {
    const since = (readAt = own());
    return then(ask("get", () => store.get(key), patient), (found) => {
      const back = own();
      const age = back - since;
      if (found?.now !== undefined && age <= Math.max(storeTimeoutMs, 2 * known)) {
        const ahead = Math.round(found.now - (since + back) / 2);
        if (offset === undefined) member.shift(ahead); // what was decided before the clock was known
        offset = ahead;
        quietUntil = -Infinity;
        known = Math.min(known, age);
      }
      return found;
    });
  };

  const write = (text: string, version: string | null, patient = false): Awaitable<boolean> => {
    wroteAt = own();
    sending = text;
    const ifVersion = atomic ? { ifVersion: version } : {};
    return then(ask("set", () => store.set(key, text, { ttlMs: ttl(), ...ifVersion }), patient), ({ ok }) => {
      if (!ok) return false;
      last = text; // what comes back from the store is no news
      behind = false;
      return true;
    });
  };

  const ttl = (): number => {
    const [state, held, , , until] = look();
    // A closed verdict must outlive every open one it may have to beat.
    const matters = held ? HOLD_MS : state ? Math.max(0, until! - clock()) || 0 : options.maxOpenMs;
    return matters + options.leaseMs + MARGIN_MS;
  };

  /** Only an open verdict that is not due is ever said again, and once per staleness of the store: else old verdicts would come back. */
  const repair = (lacks: boolean): void => {
    if (!shared || !lacks || own() - wroteAt < Math.max(refreshMs, store.refreshMs ?? 0)) return;
    const [state, , , , until] = look();
    if (state === OPEN && until! > clock()) decided();
  };

  /** Reads, meets what comes, and writes if there is still something to say. `patient`: somebody keeps the promise alive, so it may have a timer. */
  const exchange = (patient: boolean, mine: number, tries = 4): Awaitable<void> =>
    then(read(patient), (found) => {
      if (mine !== turn) return;
      if (unread) join();
      meet(found?.snapshot);
      const version = found?.version ?? null;
      repair(found?.snapshot == null || behind);
      if (tally && look()[0] !== CLOSED) tally = false; // an outcome from before it opened
      if (member.handle() < 0) return works();

      if (uncertain?.version !== version) uncertain = undefined; // what it was to replace is gone
      const outcome = verdict || tally ? undefined : outcomes[0];
      const resent = !verdict && uncertain !== undefined;
      const text = outcome ? member.propose(outcome) : resent ? uncertain!.text : pending() ? member.seal() : "";
      if (outcome && !text) member.settle(outcomes.shift()!); // stale
      if (!text || text === found?.snapshot) {
        if (text) verdict = tally = false;
        return works();
      }
      said = { verdict, tally };
      if (options.tally && !outcome) uncertain = { version, text };
      if (!outcome) verdict = tally = failing = false;
      return then(
        attempt(() => write(text, version, patient), (error) => {
          if (mine === turn) sayAgain();
          throw error;
        }),
        (ok) => {
          if (mine !== turn) return;
          uncertain = undefined;
          if (!ok) {
            sayAgain();
            if (tries > 1) return exchange(patient, mine, tries - 1);
            throw new StoreError("set", key, new Error("The store refuses every write"));
          }
          works();
          said = NOTHING;
          if (outcome && outcomes[0] === outcome) member.commit(outcomes.shift()!);
          else if (options.tally) member.adopt(text, false);
          tally ||= resent; // what was counted since it was sealed
        },
      );
    });

  /** Exchanges, when the store and its failures allow it, and again while there is something new to say. */
  const flow = (patient: boolean, urgent: boolean, tries = 3): Awaitable<void> => {
    const pace = options.tally && !verdict && outcomes.length === 0 && !urgent ? tallyEvery() : (store.writeEveryMs ?? 0);
    const wait = Math.max(wroteAt + (pending() ? pace : 0), urgent ? -Infinity : retryAt) - own();
    if (wait > 0 && !(patient && wait <= PATIENCE_MS)) return;
    const go = (): Awaitable<void> => {
      const mine = ++turn;
      sayAgain();
      busySince = own();
      busyUntil = busySince + 20 * storeTimeoutMs;
      return then(attempt(() => exchange(patient, mine), (error) => (mine === turn ? failed(error) : undefined)), () => {
        if (mine !== turn) return;
        busyUntil = -Infinity;
        return (verdict || outcomes.length > 0) && tries > 1 ? flow(patient, false, tries - 1) : undefined;
      });
    };
    if (wait <= 0) return go();
    busyUntil = own() + wait + storeTimeoutMs;
    return new Promise<void>((resolve) => setTimeout(resolve, wait)).then(go);
  };

  const start = (waitUntil: WaitUntil | undefined, urgent = false): void => {
    // What was decided does not wait as long for an answer that may never come as a mere reading does.
    const patience = verdict || outcomes.length > 0 ? busySince + 2 * storeTimeoutMs : busyUntil;
    if (closed || own() < Math.min(busyUntil, patience)) return;
    if (busyUntil > -Infinity) {
      sayAgain();
      turn++;
      busyUntil = -Infinity;
      if (answeredAt <= busySince) {
        failed(new StoreError("get", key, late(20 * storeTimeoutMs)));
        if (!urgent) return;
      }
    }
    const keeper = waitUntil ?? options.waitUntil ?? source?.waitUntil;
    const work = flow(keeper !== undefined, urgent);
    if (work) keep(work, keeper);
  };

  const tallyEvery = (): number => (options.tally && failing ? FAILURES_EVERY_MS : TALLY_EVERY_MS);

  const settled = (failure: boolean, waitUntil?: WaitUntil): void => {
    if (unread) return;
    if (options.tally || (local && failure)) tally = true;
    if (failure) failing = true;
    pursue(waitUntil);
  };

  const pursue = (waitUntil?: WaitUntil): void => {
    if (unread) return;
    const now = own();
    if (now < lookedAt) readAt = wroteAt = retryAt = busyUntil = -Infinity; // the clock was set back
    lookedAt = now;
    if (now < retryAt) return;
    const kept = options.tally && (waitUntil ?? options.waitUntil ?? source?.waitUntil) !== undefined;
    const [toRead, toWrite] = [readAt + refreshMs, wroteAt + tallyEvery()];
    if (verdict || failures > 0 || outcomes.length > 0 || now >= toRead || (tally && (kept || now >= toWrite))) start(waitUntil);
    else if (!kept) [quietFrom, quietUntil] = [clock(), (tally || options.tally ? Math.min(toRead, toWrite) : toRead) + (offset ?? 0)];
  };

  const changed = (waitUntil?: WaitUntil): void => {
    decided();
    // A local store is asked at every move, also while it fails: a page may be gone before the next chance.
    start(waitUntil, local);
  };

  const join = (): void => {
    unread = false;
    readAt = own();
    if (unsubscribe || closed) return;
    const heard = (of: string, text: string | null): void => {
      if (of !== key || text === null || text === sending) return;
      meet(text);
      repair(behind);
      if (verdict) start(undefined);
    };
    attempt(() => void (unsubscribe = store.subscribe?.(heard) ?? (() => {})), (error) => failed(error));
    if (local) unhide = onPageHide(() => pending() && start(undefined, true));
  };

  /** The store gives no answer: what an outage means for a probe. */
  const outage = (token = member.admit()): number => {
    if (options.onStoreError === "continue" || !isProbe(token)) return token;
    member.giveBack(token);
    if (options.onStoreError === "throw") throw fault;
    return BUSY;
  };

  /** A probe is in the store's text before it starts: of two that try at once one finds the text changed. */
  const claimByVersion = (state: Claim, tries: number): Awaitable<number> =>
    then(read(), (found) => {
      if (state.over) return BUSY;
      works();
      meet(found?.snapshot);
      const token = member.admit();
      if (!isProbe(token)) return token;
      state.token = token;
      const generation = (state.generation = look()[11]!);
      const since = (state.since = clock());
      return then(write(member.seal(), found?.version ?? null), (ok) => {
        if (state.over) return BUSY;
        // Meanwhile somebody may have decided otherwise, or the process slept until the lease was over.
        if (ok && look()[11] === generation && clock() - since < options.leaseMs) return token;
        member.giveBack(token);
        state.token = undefined;
        return tries > 1 ? claimByVersion(state, tries - 1) : BUSY;
      });
    });

  /** Holding the lock of a slot is the claim; the store is read once more before the probe starts. */
  const claimByLock = (state: Claim, slot: number): Awaitable<number> => {
    if (slot >= options.probeLimit!) return BUSY;
    return then(ask("claim", () => store.claim!(key, slot, options.leaseMs)), (release) => {
      if (!release) return state.over ? BUSY : claimByLock(state, slot + 1);
      return then(attempt(read, failed), (found) => {
        meet(found?.snapshot);
        const token = state.over ? BUSY : member.admit();
        if (isProbe(token)) locks.set(token, { release, until: clock() + options.leaseMs });
        else release();
        return token;
      });
    });
  };

  const claim = (): Awaitable<number> => {
    for (const [token, { until }] of locks) if (clock() >= until) unlock(token);
    const state: Claim = { token: undefined, since: 0, generation: 0, over: false };
    const lost = (error: unknown): number => {
      state.over = true;
      failed(error instanceof StoreError ? error : new StoreError("claim", key, error));
      const { token } = state;
      if (token !== undefined && (look()[11] !== state.generation || clock() - state.since >= options.leaseMs)) {
        member.giveBack(token);
        return outage();
      }
      return outage(token);
    };
    const answer = attempt(() => (atomic ? claimByVersion(state, 4) : claimByLock(state, 0)), lost);
    claiming++;
    const done = (token: number): number => {
      claiming--;
      return token;
    };
    if (!isThenable(answer)) return done(answer);
    return deadline(answer, storeTimeoutMs).catch(lost).then(done, (error) => {
      done(BUSY);
      throw error;
    });
  };

  const unlock = (token: number): void => {
    locks.get(token)?.release();
    locks.delete(token);
  };

  return {
    local,
    get unread() {
      return unread;
    },
    clock,
    get fault() {
      return fault;
    },
    first(waitUntil, strict = false) {
      unread = false; // a store that calls back finds it read
      const without = (error: unknown): void => {
        failed(error);
        join();
        if (strict && options.onStoreError === "throw") throw fault;
      };
      const met = (found: Stored | null): void => {
        works();
        join();
        meet(found?.snapshot, local);
      };
      let reading: Awaitable<Stored | null>;
      try {
        reading = read();
        if (!isThenable(reading)) return void met(reading);
      } catch (error) {
        return attempt(() => without(error), (thrown) => Promise.reject(thrown)) as Promise<void> | undefined;
      }
      unread = !options.background;
      if (options.background) join();
      // Each first caller waits for its own reading: a promise made for one request must not be awaited by another. A late answer still counts.
      const done = Promise.resolve(reading).then(met);
      keep(done.catch(() => {}), waitUntil ?? options.waitUntil ?? source?.waitUntil);
      if (options.background) return void done.catch(without);
      return deadline(done, storeTimeoutMs).catch((error) => {
        if (unread || strict) without(error); // else an earlier call has waited as long
      });
    },
    refresh(at, waitUntil) {
      pursue(waitUntil);
      // Somebody else may have probed meanwhile, or closed: a local store tells at once.
      if (local && !closed && !arbitrates && look(at)[0] === DUE && own() >= busyUntil) void flow(false, true);
    },
    claim(at) {
      if (!arbitrates || closed || unread) return undefined;
      const due = (): number => {
        const [state, , , , , , , , inFlight] = look(at);
        return state === DUE ? inFlight! : NaN;
      };
      let inFlight = due();
      if (inFlight !== inFlight) return undefined;
      if (own() < retryAt) return outage();
      if (inFlight + claiming >= options.probeLimit! && own() - readAt >= Math.min(refreshMs, BUSY_EVERY_MS)) {
        start(undefined);
        inFlight = due(); // a synchronous store has told already
        if (inFlight !== inFlight) return undefined;
      }
      if (inFlight + claiming < options.probeLimit!) return claim();
      return inFlight < options.probeLimit! ? BUSY : undefined;
    },
    judge(outcome) {
      const { token, waitUntil } = outcome;
      if (locks.has(token)) setTimeout(() => unlock(token), LINGER_MS);
      // Somebody may have decided since: a local store tells at once.
      if (local && !closed) attempt(() => then(read(), (found) => meet(found?.snapshot)), failed);
      if (!arbitrates || !atomic || closed || own() < retryAt) return false;
      outcomes.push(outcome);
      quietUntil = -Infinity;
      start(waitUntil);
      return true;
    },
    succeeded(at) {
      if (options.tally) tally = true;
      if (at >= quietUntil || at < quietFrom) pursue();
    },
    settled,
    probing(waitUntil) {
      if (tellsProbes) changed(waitUntil);
    },
    probed(waitUntil) {
      if (shared && (local || atomic)) changed(waitUntil);
    },
    changed,
    flush: () => (pending() || own() < busyUntil ? flow(true, true) : undefined),
    close() {
      const work = pending() ? flow(true, true) : undefined;
      const end = (): void => {
        closed = true;
        unsubscribe?.();
        unhide?.();
        for (const token of [...locks.keys()]) unlock(token);
      };
      if (!work) return void end();
      const ended = Promise.resolve(work).then(end);
      keep(ended, options.waitUntil ?? source?.waitUntil);
      return ended;
    },
  };
}

interface Claim {
  token: number | undefined;
  since: number;
  generation: number;
  over: boolean;
}

const late = (ms: number): Error => new Error(`The store did not answer within ${ms} ms`);

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
    const id = setTimeout(() => reject(late(ms)), ms);
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
