// What every CircuitStore promises, as checks that any runner can run, on any host.

import type { Awaitable } from "./awaitable.js";
import type { CircuitStore, Stored } from "./store.js";

/** A store to check. `other`: a second client of the same backend, as another process would have. `dispose` is called after each check. */
export interface ContractSubject {
  readonly store: CircuitStore;
  readonly other?: CircuitStore;
  dispose?(): Awaitable<void>;
}

export interface ContractCheck {
  readonly name: string;
  /** Rejects with what was expected and what came. */
  run(): Promise<void>;
}

/** What lies in a store, or is told by it, may take so long to arrive. */
const PATIENCE_MS = 5_000;
const EVERY_MS = 50;
const TTL_MS = 120_000;
const LONG = 32_768;

/**
 * The promises of a CircuitStore, one check each. Hand them to the runner of your choice:
 *
 *     for (const { name, run } of storeContract(() => myStore())) test(name, run);
 *
 * `makeStore` is called once per check; all of them may share one backend, since every check uses keys of its own, with a random word in
 * them, and deletes them where the store can. A promise a store does not make (`delete`, `subscribe`, `claim`, `"atomic"`) is not
 * checked. Give `other` wherever there can be one: what is seen and heard by another process is checked with it alone. A check takes
 * milliseconds, or five seconds where something that has to arrive does not; a store with `writeEveryMs` is given that time.
 */
export function storeContract(makeStore: () => Awaitable<CircuitStore | ContractSubject>): readonly ContractCheck[] {
  return checks.map(([name, work]) => ({
    name,
    async run() {
      const made = await makeStore();
      const subject = "store" in made ? made : { store: made };
      const keys = new Set<string>();
      const key = (form = "contract.*"): string => {
        const made = form.replace("*", word());
        keys.add(made);
        return made;
      };
      try {
        await work(subject, key);
      } finally {
        for (const key of keys) await subject.store.delete?.(key);
        await subject.dispose?.();
      }
    },
  }));
}

type Check = (subject: ContractSubject, key: (form?: string) => string) => Promise<void>;

const checks: readonly (readonly [name: string, work: Check])[] = [
  ["a key that was never written gives null", async ({ store }, key) => equal(held(await store.get(key())), null, "an unknown key")],

  [
    "a text comes back as it was set, short or long",
    async ({ store }, key) => {
      for (const text of ["x", word(), "0;Zz.9;-1;;1e3;~", long()]) {
        const at = key();
        await write(store, at, text);
        await holds(store, at, text);
      }
    },
  ],

  [
    "keys do not see each other",
    async ({ store }, key) => {
      const most = `https.${word()}.`;
      const forms = ["*", "*.a", "*-a", "*_a", "a.*", "1.*", "a.b-c_d.*", `${most}${"k".repeat(86 - most.length)}1`, `${most}${"k".repeat(86 - most.length)}2`];
      const stem = word();
      const texts = new Map(forms.map((form) => [key(form.replace("*", stem)), word()]));
      for (const [at, text] of texts) await write(store, at, text);
      for (const [at, text] of texts) await holds(store, at, text);
    },
  ],

  [
    "a later text replaces the earlier one",
    async ({ store }, key) => {
      const at = key();
      for (const text of [word(), long(), word()]) {
        await write(store, at, text);
        await holds(store, at, text);
        await turn(store);
      }
    },
  ],

  [
    "what is deleted is gone, and what is not there can be deleted",
    async ({ store }, key) => {
      if (!store.delete) return;
      const [at, beside] = [key(), key()];
      const text = word();
      await store.delete(at);
      await write(store, at, word());
      await write(store, beside, text);
      await turn(store);
      await store.delete(at);
      await gone(store, at);
      await store.delete(at);
      await holds(store, beside, text);
      await turn(store);
      await write(store, at, text);
      await holds(store, at, text);
    },
  ],

  [
    "a text of a short life can be written, and is either whole or gone",
    async ({ store }, key) => {
      for (const ttlMs of [1, 20, 999.5]) {
        const at = key();
        const text = word();
        equal((await store.set(at, text, { ttlMs })).ok, true, `ok of a write with ttlMs ${ttlMs}`);
        const found = held(await store.get(at));
        if (found !== null) equal(found, text, "a text of a short life");
      }
    },
  ],

  [
    "a clock of the store's own tells the time",
    async ({ store }, key) => {
      const at = key();
      const before = (await store.get(at))?.now;
      await write(store, at, word());
      const now = (await store.get(at))?.now;
      if (before === undefined && now === undefined) return;
      if (now === undefined || !(before! <= now)) differs("now, where there is nothing", "as where there is something", before);
      // Nobody's clock is right; but this is milliseconds since the epoch, neither seconds nor microseconds.
      if (!(Math.abs(now - Date.now()) < 86_400_000)) differs("now", `about ${Date.now()}`, now);
      await pause(EVERY_MS);
      const later = (await store.get(at))?.now;
      if (!(later! > now)) differs(`now after ${EVERY_MS} ms`, `more than ${now}`, later);
    },
  ],

  [
    "atomic: `ifVersion: null` writes only where there is nothing",
    atomic(async ({ store }, key) => {
      const at = key();
      const text = word();
      equal((await store.set(at, text, { ttlMs: TTL_MS, ifVersion: null })).ok, true, "ok of ifVersion: null on an unknown key");
      await holds(store, at, text);
      equal((await store.set(at, word(), { ttlMs: TTL_MS, ifVersion: null })).ok, false, "ok of ifVersion: null on a written key");
      await holds(store, at, text);
    }),
  ],

  [
    "atomic: the right version writes, a wrong one changes nothing",
    atomic(async ({ store }, key) => {
      const at = key();
      const text = word();
      await write(store, at, word());
      const first = await version(store, at);
      equal((await store.set(at, word(), { ttlMs: TTL_MS, ifVersion: first })).ok, true, "ok of a write with the right version");
      const second = await version(store, at);
      equal((await store.set(at, text, { ttlMs: TTL_MS, ifVersion: second })).ok, true, "ok of a second write with the right version");
      await holds(store, at, text);
      const now = await version(store, at);
      for (const wrong of [second, first]) {
        equal((await store.set(at, word(), { ttlMs: TTL_MS, ifVersion: wrong })).ok, false, `ok of a write with an old version`);
      }
      await holds(store, at, text);
      equal(await version(store, at), now, "the version after refused writes");
      equal((await store.set(key(), word(), { ttlMs: TTL_MS, ifVersion: now })).ok, false, "ok of a version on an unknown key");
    }),
  ],

  [
    "atomic: every write has a version of its own, also of the same text",
    atomic(async ({ store }, key) => {
      const at = key();
      const text = word();
      const seen = new Set<string>();
      for (let i = 0; i < 20; i++) {
        const { ok, version: told } = await store.set(at, text, { ttlMs: TTL_MS, ...(i % 2 ? { ifVersion: await version(store, at) } : {}) });
        equal(ok, true, "ok of a write");
        const read = await version(store, at);
        if (told !== undefined) equal(told, read, "the version a write answers with");
        if (seen.has(read)) differs("the version of another write", "a new one", read);
        seen.add(read);
      }
    }),
  ],

  [
    "atomic: after a deletion no version from before writes",
    atomic(async ({ store }, key) => {
      if (!store.delete) return;
      const at = key();
      const text = word();
      const before: string[] = [];
      for (let i = 0; i < 3; i++) {
        await write(store, at, text);
        before.push(await version(store, at));
        await store.delete(at);
        equal((await store.set(at, word(), { ttlMs: TTL_MS, ifVersion: before[i]! })).ok, false, "ok of a version from before the deletion");
        equal(held(await store.get(at)), null, "a deleted key after a refused write");
      }
      await write(store, at, text);
      for (const old of before) equal((await store.set(at, word(), { ttlMs: TTL_MS, ifVersion: old })).ok, false, "ok of a version from before the deletion");
      await holds(store, at, text);
    }),
  ],

  [
    "atomic: of twenty that race, one wins",
    atomic(async ({ store, other = store }, key) => {
      const at = key();
      for (const round of ["to create", "to replace"]) {
        const ifVersion = (await store.get(at))?.version ?? null;
        const texts = Array.from({ length: 20 }, () => word());
        const answers = await Promise.all(texts.map((text, i) => (i % 2 ? other : store).set(at, text, { ttlMs: TTL_MS, ifVersion })));
        const winners = texts.filter((_, i) => answers[i]!.ok);
        equal(winners.length, 1, `winners of a race ${round}`);
        await holds(store, at, winners[0]!);
      }
    }),
  ],

  [
    "atomic: no update is lost",
    atomic(async ({ store, other = store }, key) => {
      const at = key();
      await write(store, at, "n;0");
      const increment = async (store: CircuitStore): Promise<void> => {
        for (let tries = 0; tries < 1_000; tries++) {
          const found = await store.get(at);
          const next = `n;${Number(found!.snapshot!.slice(2)) + 1}`;
          if ((await store.set(at, next, { ttlMs: TTL_MS, ifVersion: found!.version })).ok) return;
        }
        differs("a write by the version just read", "to win some time", "1000 refusals");
      };
      const worker = async (store: CircuitStore): Promise<void> => {
        for (let i = 0; i < 10; i++) await increment(store);
      };
      await Promise.all(Array.from({ length: 6 }, (_, i) => worker(i % 2 ? other : store)));
      await holds(store, at, "n;60");
    }),
  ],

  [
    "another client sees what was written, and its versions are the same",
    async ({ store, other }, key) => {
      if (!other) return;
      const at = key();
      const [first, second] = [word(), word()];
      await write(store, at, first);
      await holds(other, at, first);
      await turn(store);
      if (store.consistency === "atomic") {
        const seen = await version(other, at);
        equal(seen, await version(store, at), "the version another client sees");
        equal((await other.set(at, second, { ttlMs: TTL_MS, ifVersion: seen })).ok, true, "ok of another client's write");
        equal((await store.set(at, word(), { ttlMs: TTL_MS, ifVersion: seen })).ok, false, "ok of a write after another client's");
      } else await write(other, at, second);
      await holds(store, at, second);
      await turn(store);
      await other.delete?.(at);
      if (other.delete) await gone(store, at);
    },
  ],

  [
    "a subscriber hears of another client's writes, with key and text, until it unsubscribes",
    async ({ store, other }, key) => {
      if (!store.subscribe || !other) return;
      const [at, beside] = [key(), key()];
      const heard: string[] = [];
      const control: string[] = [];
      const said = new Set<string>();
      const came = (list: string[]): string | undefined => list.find((one) => said.has(one));
      // Joining may take a while, and what was said before that is not heard: something new is said until it is.
      const until = async (arrived: () => boolean): Promise<void> => {
        const end = Date.now() + PATIENCE_MS;
        do {
          const text = word();
          said.add(`${at} ${text}`);
          await write(other, beside, text);
          await write(other, at, text);
          await pause(EVERY_MS);
        } while (!arrived() && Date.now() < end);
      };
      const stop = store.subscribe((key, snapshot) => heard.push(`${key} ${snapshot}`));
      const stopControl = store.subscribe((key, snapshot) => control.push(`${key} ${snapshot}`));
      try {
        await until(() => came(heard) !== undefined && came(control) !== undefined);
        if (!came(heard)) differs("what a subscriber hears", [...said].at(-1), heard.at(-1));
        const wrong = heard.find((one) => one.startsWith(`${at} `) && !said.has(one));
        equal(wrong, undefined, "anything else a subscriber hears of the key");
        stop();
        for (const list of [heard, control]) list.length = 0;
        said.clear();
        await until(() => came(control) !== undefined);
        if (!came(control)) differs("what a second subscriber hears when the first has gone", [...said].at(-1), control.at(-1));
        equal(heard[0], undefined, "what is heard after unsubscribing");
      } finally {
        stop();
        stopControl();
      }
    },
  ],

  [
    "a slot is held by one, and is free when it was let go",
    async ({ store, other = store }, key) => {
      if (!store.claim) return;
      const [at, beside] = [key(), key()];
      const leaseMs = 60_000;
      const release = await store.claim(at, 0, leaseMs);
      if (!release) return differs("a claim of a free slot", "a function", release);
      equal(await store.claim(at, 0, leaseMs), null, "a second claim of a held slot");
      equal(await other.claim!(at, 0, leaseMs), null, "another client's claim of a held slot");
      for (const free of [await other.claim!(at, 1, leaseMs), await other.claim!(beside, 0, leaseMs)]) {
        if (!free) return differs("a claim of another slot, and of another key's", "a function", free);
        free();
      }
      release();
      await eventually(PATIENCE_MS, async () => {
        const again = await other.claim!(at, 0, leaseMs);
        if (!again) return differs("a claim after the release", "a function", again);
        again();
      });
    },
  ],
];

function atomic(work: Check): Check {
  return async (subject, key) => {
    if (subject.store.consistency === "atomic") await work(subject, key);
  };
}

async function write(store: CircuitStore, key: string, text: string): Promise<void> {
  equal((await store.set(key, text, { ttlMs: TTL_MS })).ok, true, "ok of a write without ifVersion");
}

async function holds(store: CircuitStore, key: string, text: string): Promise<void> {
  await eventually(staleness(store), async () => equal((await store.get(key))?.snapshot, text, `the text of ${key}`));
}

async function gone(store: CircuitStore, key: string): Promise<void> {
  await eventually(staleness(store), async () => equal(held(await store.get(key)), null, "a deleted key"));
}

async function version(store: CircuitStore, key: string): Promise<string> {
  const found = await store.get(key);
  return typeof found?.version === "string" ? found.version : differs("the version of an atomic store", "a text", found?.version);
}

/** A last-write store may take a while to show what was written, or deleted; an atomic one may not. */
const held = (found: Stored | null): string | null => found?.snapshot ?? null;

const staleness = (store: CircuitStore): number => (store.consistency === "atomic" ? 0 : PATIENCE_MS);

async function eventually(patienceMs: number, check: () => Promise<void>): Promise<void> {
  const end = Date.now() + patienceMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() >= end) throw error;
      await pause(EVERY_MS);
    }
  }
}

/** Until the key may be written again. */
const turn = (store: CircuitStore): Promise<void> => pause(store.writeEveryMs ?? 0);

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

// Texts as a circuit's could be: letters, digits, separators.
const word = (): string => Math.random().toString(36).slice(2, 12).padEnd(10, "0");

function long(): string {
  let text = word();
  while (text.length < LONG) text += `;${word()}.${word()}`;
  return text.slice(0, LONG);
}

function equal(got: unknown, expected: unknown, what: string): void {
  if (got !== expected) differs(what, expected, got);
}

function differs(what: string, expected: unknown, got: unknown): never {
  throw new Error(`${what}: expected ${show(expected)}, got ${show(got)}`);
}

function show(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? String(value);
  return text.length > 100 ? `${text.slice(0, 60)}… (${text.length} characters)` : text;
}
