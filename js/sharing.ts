// One circuit shared by many through a store: one loop for every kind of store, driven by what the store can do. What travels is the
// opaque text of the core, and the core merges; here is only when to read and when to write. A store fault never reaches a call.

import { type Awaitable, attempt, deadline, isThenable, keep, late, then, type WaitUntil } from "./awaitable.js";
import { claims } from "./claims.js";
import type { StoreError } from "./errors.js";
import { onPageHide } from "./host.js";
import type { Rules } from "./policy.js";
import { inspect, source } from "./runtime.js";
import { type CircuitStore, Line, type LineHearer, type Stored } from "./store.js";

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
  /** A fallback answers for it. */
  readonly fallback: boolean;
}

/** What sharing needs of its circuit. */
export interface Member extends LineHearer {
  handle(): number;
  /** The text to store. */
  seal(): string;
  /** Merges a text: the bits of the boundary. `whole`: take its tally as well. */
  adopt(text: string, whole: boolean): number;
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
  /** An outage of the store begins. */
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
/** A write inside `waitUntil` may wait this long for its turn. */
const PATIENCE_MS = 5_000;

export function share(key: string, store: CircuitStore, options: SharingOptions & Rules & { readonly clock: () => number }, member: Member): Shared {
  const { clock: own, storeTimeoutMs, refreshMs } = options;
  const local = store.local === true;
  const atomic = store.consistency === "atomic";
  const shared = !options.advice;
  const arbitrates = shared && options.probeLimit !== null && (atomic || store.claim !== undefined);
  const tellsProbes = shared && !arbitrates && local;
  // What was decided before the store's clock was known moves to it.
  const line = new Line(key, store, own, storeTimeoutMs, member);
  const { clock } = line;

  let unread = true;
  let closed = false;
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
  /** Between these, by the circuit's clock, a success asks for nothing. */
  let quietFrom = -Infinity;
  let quietUntil = -Infinity;
  let lookedAt = -Infinity;
  /** An exchange is under way; one that has not come back by then is given up. */
  let busyUntil = -Infinity;
  /** Ahead of the clock while it waits for its turn. */
  let busySince = -Infinity;
  let turn = 0;
  let unsubscribe: (() => void) | undefined;
  let unhide: (() => void) | undefined;

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

  const failed = (error: unknown, operation?: StoreError["operation"]): void => {
    const first = line.failed(error, operation);
    quietUntil = -Infinity;
    if (first) member.failed(line.fault!.cause);
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

  const write = (text: string, version: string | null, patient = false): Awaitable<boolean> =>
    then(line.set(text, version, ttl(), patient), (ok) => {
      if (!ok) return false;
      last = text; // what comes back from the store is no news
      behind = false;
      return true;
    });

  const ttl = (): number => {
    const [state, held, , , until] = look();
    // A closed verdict must outlive every open one it may have to beat.
    const matters = held ? HOLD_MS : state ? Math.max(0, until! - clock()) || 0 : options.maxOpenMs;
    return matters + options.leaseMs + MARGIN_MS;
  };

  /** Only an open verdict that is not due is ever said again, and once per staleness of the store: else old verdicts would come back. */
  const repair = (lacks: boolean): void => {
    if (!shared || !lacks || own() - line.wroteAt < Math.max(refreshMs, store.refreshMs ?? 0)) return;
    const [state, , , , until] = look();
    if (state === OPEN && until! > clock()) decided();
  };

  /** Reads, meets what comes, and writes if there is still something to say. `patient`: somebody keeps the promise alive, so it may have a timer. */
  const exchange = (patient: boolean, mine: number, tries = 4): Awaitable<void> =>
    then(line.get(patient), (found) => {
      if (mine !== turn) return;
      if (unread) join();
      quietUntil = -Infinity;
      meet(found?.snapshot);
      const version = found?.version ?? null;
      repair(found?.snapshot == null || behind);
      if (tally && look()[0] !== CLOSED) tally = false; // an outcome from before it opened
      if (member.handle() < 0) return line.works();

      if (uncertain?.version !== version) uncertain = undefined; // what it was to replace is gone
      const outcome = verdict || tally ? undefined : outcomes[0];
      const resent = !verdict && uncertain !== undefined;
      const text = outcome ? member.propose(outcome) : resent ? uncertain!.text : pending() ? member.seal() : "";
      if (outcome && !text) member.settle(outcomes.shift()!); // stale
      if (!text || text === found?.snapshot) {
        if (text) verdict = tally = false;
        return line.works();
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
            line.raise("set", new Error("The store refuses every write"));
          }
          line.works();
          said = NOTHING;
          if (outcome && outcomes[0] === outcome) member.commit(outcomes.shift()!);
          else if (options.tally) member.adopt(text, false);
          tally ||= resent; // what was counted since it was sealed
        },
      );
    });

  /** When the next exchange may begin. */
  const opening = (urgent: boolean): number => {
    const pace = options.tally && !verdict && outcomes.length === 0 && !urgent ? tallyEvery() : (store.writeEveryMs ?? 0);
    return Math.max(pending() ? line.wroteAt + pace : -Infinity, urgent ? -Infinity : line.retryAt);
  };

  /** Exchanges, when the store and its failures allow it, and again while there is something new to say. */
  const flow = (patient: boolean, urgent: boolean, tries = 3): Awaitable<void> => {
    const wait = opening(urgent) - own();
    if (wait > 0 && !(patient && wait <= PATIENCE_MS)) return;
    const go = (): Awaitable<void> => {
      const mine = ++turn;
      sayAgain();
      line.unanswered = true;
      busySince = own();
      busyUntil = busySince + 20 * storeTimeoutMs;
      return then(attempt(() => exchange(patient, mine), (error) => (mine === turn ? failed(error) : undefined)), () => {
        if (mine !== turn) return;
        busyUntil = -Infinity;
        return (verdict || outcomes.length > 0) && tries > 1 ? flow(patient, false, tries - 1) : undefined;
      });
    };
    if (wait <= 0) return go();
    const mine = ++turn;
    line.unanswered = false;
    busySince = own() + wait;
    busyUntil = busySince + storeTimeoutMs;
    return new Promise<void>((resolve) => setTimeout(resolve, wait)).then(() => (mine === turn ? go() : undefined));
  };

  const start = (waitUntil: WaitUntil | undefined, urgent = false): void => {
    const now = own();
    // What was decided does not wait as long for an answer that may never come as a mere reading does, nor for the turn of a tally.
    const decided = verdict || outcomes.length > 0;
    const patience = now < busySince ? opening(urgent) : busySince + 2 * storeTimeoutMs;
    if (closed || now < (decided ? Math.min(busyUntil, patience) : busyUntil)) return;
    if (busyUntil > -Infinity) {
      sayAgain();
      turn++;
      busyUntil = -Infinity;
      if (line.unanswered) {
        failed(late(20 * storeTimeoutMs));
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
    if (now < lookedAt) {
      line.setBack();
      busyUntil = -Infinity;
    }
    lookedAt = now;
    if (now < line.retryAt) return;
    const kept = options.tally && (waitUntil ?? options.waitUntil ?? source?.waitUntil) !== undefined;
    const [toRead, toWrite] = [line.readAt + refreshMs, line.wroteAt + tallyEvery()];
    if (verdict || line.fault || outcomes.length > 0 || now >= toRead || (tally && (kept || now >= toWrite))) start(waitUntil);
    else if (!kept) [quietFrom, quietUntil] = [clock(), (tally || options.tally ? Math.min(toRead, toWrite) : toRead) + line.ahead];
  };

  const changed = (waitUntil?: WaitUntil): void => {
    decided();
    // A local store is asked at every move, also while it fails: a page may be gone before the next chance.
    start(waitUntil, local);
  };

  const join = (): void => {
    unread = false;
    line.readAt = own();
    if (unsubscribe || closed) return;
    const heard = (of: string, text: string | null): void => {
      if (of !== key || text === null || text === line.sending) return;
      meet(text);
      repair(behind);
      if (verdict) start(undefined);
    };
    attempt(() => void (unsubscribe = store.subscribe?.(heard) ?? (() => {})), (error) => failed(error));
    if (local) unhide = onPageHide(() => pending() && start(undefined, true));
  };

  const probes = claims({
    line,
    options,
    failed,
    generation: () => look()[11]!,
    admit: () => member.admit(),
    giveBack: (token) => member.giveBack(token),
    meet: (found) => meet(found?.snapshot),
    write: (version) => write(member.seal(), version),
  });

  return {
    local,
    get unread() {
      return unread;
    },
    clock,
    get fault() {
      return line.fault;
    },
    first(waitUntil, strict = false) {
      unread = false; // a store that calls back finds it read
      const without = (error: unknown): void => {
        failed(error);
        join();
        if (strict && options.onStoreError === "throw") throw line.fault;
      };
      const met = (found: Stored | null): void => {
        line.works();
        join();
        meet(found?.snapshot, local);
      };
      let reading: Awaitable<Stored | null>;
      try {
        reading = line.get();
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
      if (!local && own() < line.retryAt) return probes.outage();
      if (inFlight + probes.asking >= options.probeLimit! && own() - line.readAt >= Math.min(refreshMs, BUSY_EVERY_MS)) {
        start(undefined);
        inFlight = due(); // a synchronous store has told already
        if (inFlight !== inFlight) return undefined;
      }
      if (inFlight + probes.asking < options.probeLimit!) return probes.ask();
      return inFlight < options.probeLimit! ? BUSY : undefined;
    },
    judge(outcome) {
      const { token, waitUntil } = outcome;
      probes.release(token);
      // Somebody may have decided since: a local store tells at once.
      if (local && !closed) attempt(() => then(line.get(), (found) => meet(found?.snapshot)), failed);
      if (!arbitrates || !atomic || closed || own() < line.retryAt) return false;
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
        probes.close();
      };
      if (!work) return void end();
      const ended = Promise.resolve(work).then(end);
      keep(ended, options.waitUntil ?? source?.waitUntil);
      return ended;
    },
  };
}
