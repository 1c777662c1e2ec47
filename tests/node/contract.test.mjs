// What every store promises, and that the checks of it can fail; the store that fails when told.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, memoryStore } from "tripcurve";
import { faultyStore, storeContract } from "tripcurve/testing";
import { B0, outcomeOf, repeat } from "./help.mjs";

const inMemory = () => {
  const store = withLocks(memoryStore());
  return { store, other: store };
};

for (const { name, run } of storeContract(() => memoryStore())) test(`memory: ${name}`, run);
for (const { name, run } of storeContract(inMemory)) test(`memory with locks, two clients: ${name}`, run);
for (const { name, run } of storeContract(() => lastWrite())) test(`last write: ${name}`, run);

/** Locks of the plain kind: enough to see that claims are checked. */
function withLocks(store) {
  const held = new Set();
  const claim = (key, slot) => {
    const lock = `${key} ${slot}`;
    if (held.has(lock)) return null;
    held.add(lock);
    return () => held.delete(lock);
  };
  return { ...store, claim };
}

function lastWrite(texts = new Map()) {
  return {
    consistency: "last_write",
    get: async (key) => (texts.has(key) ? { snapshot: texts.get(key), version: null } : null),
    set: async (key, snapshot) => (texts.set(key, snapshot), { ok: true }),
    delete: async (key) => void texts.delete(key),
  };
}

// Each with the beginning of the check it must not pass.
const mutated = {
  "forgets": [(store) => ({ set: async (_, __, options) => ({ ok: options.ifVersion == null }) }), "a text comes back"],
  "answers null where it has a text": [() => ({ get: async () => null }), "a text comes back"],
  "answers a text where it has none": [(store) => ({ get: (key) => store.get(key) ?? { snapshot: "", version: "0" } }), "a key that was never"],
  "cuts long texts": [(store) => ({ set: (key, text, options) => store.set(key, text.slice(0, 4_096), options) }), "a text comes back"],
  "mixes keys that are alike": [
    (store) => ({ get: (key) => store.get(key.replaceAll(/[._-]/g, ".")), set: (key, ...rest) => store.set(key.replaceAll(/[._-]/g, "."), ...rest) }),
    "keys do not see",
  ],
  "cuts keys": [(store) => ({ get: (key) => store.get(key.slice(0, 86)), set: (key, ...rest) => store.set(key.slice(0, 86), ...rest) }), "keys do not see"],
  "keeps the first text": [
    (store) => ({ set: (key, text, options) => (options.ifVersion === undefined && store.get(key) ? { ok: true } : store.set(key, text, options)) }),
    "a later text",
  ],
  "deletes nothing": [() => ({ delete: async () => {} }), "what is deleted"],
  "fails to delete what is not there": [
    (store) => ({ delete: (key) => (store.get(key) ? store.delete(key) : Promise.reject(new Error("not there"))) }),
    "what is deleted",
  ],
  "refuses short lives": [
    (store) => ({ set: (key, text, options) => (Number.isInteger(options.ttlMs) ? store.set(key, text, options) : Promise.reject(new Error("not an integer"))) }),
    "a text of a short life",
  ],
  "tells the time in seconds": [(store) => ({ get: (key) => withNow(store.get(key), Date.now() / 1_000) }), "a clock"],
  "has a clock that stands": [(store) => ({ get: (key) => withNow(store.get(key), standing) }), "a clock"],
  "tells no time but NaN": [(store) => ({ get: (key) => withNow(store.get(key), NaN) }), "a clock"],
  "ignores ifVersion": [(store) => ({ set: (key, text, { ttlMs }) => store.set(key, text, { ttlMs }) }), "atomic: the right version"],
  "takes null for anything": [
    (store) => ({ set: (key, text, { ttlMs, ifVersion }) => store.set(key, text, { ttlMs, ...(ifVersion === null ? {} : { ifVersion }) }) }),
    "atomic: `ifVersion: null`",
  ],
  "writes and says it did not": [
    (store) => ({ set: (key, text, options) => (store.set(key, text, options).ok || store.set(key, text, { ttlMs: options.ttlMs }), { ok: false }) }),
    "atomic: `ifVersion: null`",
  ],
  "writes in spite of saying no": [
    (store) => ({ set: (key, text, options) => ((answer) => (answer.ok || store.set(key, text, { ttlMs: options.ttlMs }), answer))(store.set(key, text, options)) }),
    "atomic: the right version",
  ],
  "refuses every version": [(store) => ({ set: (key, text, { ifVersion }) => ifVersion === undefined ? store.set(key, text, { ttlMs: 1e6 }) : { ok: false } }), "atomic: no update is lost"],
  "has one version for one text": [(store) => byText(store), "atomic: every write"],
  "starts its versions again after a deletion": [(store) => counting(store), "atomic: after a deletion"],
  "compares before it waits, and then writes": [
    (store) => ({
      async set(key, text, { ttlMs, ifVersion }) {
        if (ifVersion !== undefined && ((await store.get(key))?.version ?? null) !== ifVersion) return { ok: false };
        await new Promise((resolve) => setTimeout(resolve, 1));
        return store.set(key, text, { ttlMs });
      },
    }),
    "atomic: of twenty that race, one wins",
  ],
  "tells a version that is not its own": [(store) => ({ set: (...of) => ({ ...store.set(...of), version: "7" }) }), "atomic: every write"],
  "tells nobody": [() => ({ subscribe: () => () => {} }), "a subscriber"],
  "tells without the text": [
    (store) => ({ subscribe: (listener) => store.subscribe((key) => listener(key, null)) }),
    "a subscriber",
  ],
  "goes on telling": [
    (store) => ({ subscribe: (listener) => (store.subscribe(listener), () => {}) }),
    "a subscriber",
  ],
  "lets everybody hold a slot": [() => ({ claim: async () => () => {} }), "a slot"],
  "has one slot for all": [(store) => ({ claim: (_, __, leaseMs) => store.claim("one", 0, leaseMs) }), "a slot"],
  "never lets a slot go": [(store) => ({ claim: (...of) => store.claim(...of) && (() => {}) }), "a slot"],
};

const standing = Date.now();
const withNow = (found, now) => found && { ...found, now };

function byText(store) {
  const version = (found) => found && { ...found, version: found.snapshot };
  return {
    get: (key) => version(store.get(key)),
    set(key, text, { ttlMs, ifVersion }) {
      if (ifVersion !== undefined && ifVersion !== (store.get(key)?.snapshot ?? null)) return { ok: false };
      return { ...store.set(key, text, { ttlMs }), version: text };
    },
  };
}

const counts = new WeakMap();
function counting(store) {
  const count = counts.get(store) ?? counts.set(store, new Map()).get(store);
  const versionOf = (key) => (store.get(key) ? String(count.get(key)) : null);
  return {
    get: (key) => ((found) => found && { ...found, version: versionOf(key) })(store.get(key)),
    set(key, text, { ttlMs, ifVersion }) {
      if (ifVersion !== undefined && ifVersion !== versionOf(key)) return { ok: false };
      count.set(key, store.get(key) ? count.get(key) + 1 : 1);
      return { ...store.set(key, text, { ttlMs }), version: versionOf(key) };
    },
  };
}

/** What a check says of the store so changed. */
async function verdict([change, check]) {
  const changed = (store) => ({ ...store, ...change(store) });
  const make = () => (({ store, other }) => ({ store: changed(store), other: changed(other) }))(inMemory());
  const { run } = storeContract(make).find(({ name }) => name.startsWith(check));
  return run().then(() => "passed", (error) => error.message);
}

// All at once: to find that something does not arrive takes five seconds.
const verdicts = Object.entries(mutated).map(([name, mutant]) => [name, verdict(mutant)]);
for (const [name, said] of verdicts) {
  test(`a store that ${name} does not pass`, async () => assert.match(await said, /: expected .*, got |^not /));
}

test("a check says what was expected and what came", async () => {
  const checks = storeContract(() => ({ ...memoryStore(), get: () => ({ snapshot: "k".repeat(500), version: "1" }) }));
  await assert.rejects(checks[0].run(), { message: `an unknown key: expected null, got ${"k".repeat(60)}… (500 characters)` });
});

test("a check disposes of its store and leaves nothing in it, also when it fails", async () => {
  for (const change of [{}, { set: () => ({ ok: false }) }]) {
    const texts = new Map([["theirs", "untouched"]]);
    let [made, disposed] = [0, 0];
    const checks = storeContract(() => (made++, { store: { ...lastWrite(texts), ...change }, dispose: async () => void disposed++ }));
    await Promise.all(checks.map(({ run }) => run().catch(() => {})));
    assert.deepEqual([made, disposed, [...texts]], [checks.length, checks.length, [["theirs", "untouched"]]]);
  }
});

// ---- The store that fails when told

for (const { name, run } of storeContract(() => ({ store: faultyStore(memoryStore()) }))) test(`faulty, with no fault on: ${name}`, run);

const ttlMs = 60_000;

test("a faulty store without a fault is as synchronous as the store in it, and counts", () => {
  const inner = memoryStore();
  const store = faultyStore(inner);
  assert.equal(store.get("a"), null);
  assert.deepEqual(store.set("a", "text", { ttlMs }), { ok: true, version: "1" });
  store.delete("a");
  assert.deepEqual(store.calls, [{ operation: "get", key: "a" }, { operation: "set", key: "a" }, { operation: "delete", key: "a" }]);
  assert.deepEqual([store.consistency, store.claim], ["atomic", undefined]);
});

test("down: every operation is refused, nothing is done and nobody hears; up again as if nothing had been", async () => {
  const store = faultyStore(withLocks(memoryStore()), { down: true });
  const heard = [];
  store.subscribe((key) => heard.push(key));
  for (const ask of [() => store.get("a"), () => store.set("a", "text", { ttlMs }), () => store.delete("a"), () => store.claim("a", 0, 1)]) {
    await assert.rejects(ask(), { message: "The store is down" });
  }
  assert.equal(store.calls.length, 4);
  store.down = false;
  assert.equal(store.get("a"), null);
  store.set("a", "text", { ttlMs });
  assert.deepEqual(heard, ["a"]);
});

test("a local store that is down throws, as a browser's does", () => {
  const store = faultyStore({ ...memoryStore(), local: true }, { down: true });
  assert.throws(() => store.get("a"), { message: "The store is down" });
  Object.assign(store, { down: false, lose: true });
  assert.throws(() => store.set("a", "text", { ttlMs }), { message: "The answer was lost" });
  assert.equal(store.get("a").snapshot, "text");
});

test("hang: no answer, and nothing done", async () => {
  const inner = memoryStore();
  const store = faultyStore(inner, { hang: true });
  const answer = Promise.race([store.set("a", "text", { ttlMs }), new Promise((resolve) => setTimeout(resolve, 20, "none"))]);
  assert.equal(await answer, "none");
  assert.equal(inner.get("a"), null);
});

test("delayMs: done later", async () => {
  const inner = memoryStore();
  const store = faultyStore(inner, { delayMs: 20 });
  const answer = store.set("a", "text", { ttlMs });
  assert.equal(inner.get("a"), null);
  assert.equal((await answer).ok, true);
  assert.equal(inner.get("a").snapshot, "text");
});

test("lose: written, and the answer is an error", async () => {
  const inner = memoryStore();
  const store = faultyStore(inner, { lose: true });
  await assert.rejects(store.set("a", "text", { ttlMs }), { message: "The answer was lost" });
  assert.equal(inner.get("a").snapshot, "text");
  assert.equal(store.get("a").snapshot, "text");
});

test("an application sees with it that calls go on without their store", async () => {
  const store = faultyStore(memoryStore(), { down: true });
  const breaker = new CircuitBreaker("shop", B0, { store });
  const told = [];
  breaker.on("diagnostic", ({ code }) => told.push(code));
  await repeat(4, () => outcomeOf(breaker.run(() => Promise.reject(new Error("down")))));
  assert.equal(breaker.state, "open");
  assert.deepEqual(told, ["store_failed"]);
  assert.ok(store.calls.length > 0);
});
