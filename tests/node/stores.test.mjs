// Browser storage, each kind with what its real one does to people.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { CircuitBreaker } from "tripcurve";
import { indexedDbStore } from "tripcurve/stores/indexed-db";
import { localStorageStore } from "tripcurve/stores/local-storage";
import { fakeClock } from "tripcurve/testing";
import { B0, outcomeOf, repeat, ticks } from "./help.mjs";

const T = 1_700_000_000_000;
const down = () => Promise.reject(new Error("down"));

function tab({ clock = fakeClock(T), policy = {}, store = localStorageStore(), ...options } = {}) {
  const breaker = new CircuitBreaker("http.shop", { ...B0, ...policy }, { clock, store, ...options });
  const told = [];
  breaker.on("diagnostic", ({ code, cause }) => told.push(`${code} ${cause?.name}`));
  const fail = (times = 1) => repeat(times, () => breaker.run(down).catch(() => {}));
  return { breaker, clock, told, fail };
}

/** A localStorage of the browser's kind, and its events. */
async function browser(work, area = new Map(), { getter, ...overrides } = {}) {
  const storage = {
    getItem: (key) => area.get(key) ?? null,
    setItem: (key, value) => void area.set(key, String(value)),
    removeItem: (key) => void area.delete(key),
    ...overrides,
  };
  const listeners = new Set();
  Object.defineProperty(globalThis, "localStorage", { configurable: true, get: getter ?? (() => storage) });
  globalThis.addEventListener = (type, listener) => type === "storage" && listeners.add(listener);
  globalThis.removeEventListener = (_, listener) => listeners.delete(listener);
  try {
    const change = (key, newValue, storageArea = storage) => listeners.forEach((listener) => listener({ key, newValue, storageArea }));
    await work({ area, listeners, change });
  } finally {
    for (const name of ["localStorage", "addEventListener", "removeEventListener"]) delete globalThis[name];
  }
}

test("a circuit in localStorage survives a reload, under its own key", () =>
  browser(async ({ area }) => {
    area.set("theirs", "untouched");
    const clock = fakeClock(T);
    const before = tab({ clock });
    await before.fail(4);
    assert.deepEqual([...area.keys()], ["theirs", "tripcurve:http.shop"]);
    assert.equal(area.get("tripcurve:http.shop"), before.breaker.snapshot());
    const after = tab({ clock });
    assert.equal(after.breaker.state, "open");
    assert.equal((await outcomeOf(after.breaker.run(() => 1))).error.retryAt, T + 1_000);
  }));

test("another prefix is another place", () =>
  browser(async ({ area }) => {
    await tab({ store: localStorageStore({ prefix: "mine/" }) }).fail(4);
    assert.deepEqual([...area.keys()], ["mine/http.shop"]);
  }));

test("another tab's verdict comes with the event, from the event's own value", () =>
  browser(async ({ area, change }) => {
    const clock = fakeClock(T);
    const here = tab({ clock });
    await here.breaker.run(() => 1);
    const elsewhere = new CircuitBreaker("http.shop", B0, { clock });
    elsewhere.force("open");
    change("tripcurve:other", elsewhere.snapshot());
    change(null, null);
    change("tripcurve:http.shop", null);
    change("tripcurve:http.shop", elsewhere.snapshot(), "the sessionStorage of another frame");
    assert.equal(here.breaker.state, "closed");
    area.set("tripcurve:http.shop", "stale, as another process sees it");
    change("tripcurve:http.shop", elsewhere.snapshot());
    assert.equal(here.breaker.state, "open");
  }));

test("a disposed circuit listens no more", () =>
  browser(async ({ listeners }) => {
    const { breaker } = tab();
    await breaker.run(() => 1);
    assert.equal(listeners.size, 1);
    breaker.dispose();
    assert.equal(listeners.size, 0);
  }));

const quota = () => { throw new DOMException("full", "QuotaExceededError"); };
const forbidden = () => { throw new DOMException("denied", "SecurityError"); };
const broken = {
  "forbidden": [{ getter: forbidden }, "store_failed SecurityError"],
  "null": [{ getter: () => null }, "store_failed Error"],
  "missing": [{ getter: () => undefined }, "store_failed Error"],
  "unreadable": [{ getItem: forbidden }, "store_failed SecurityError"],
  "full": [{ setItem: quota }, "store_failed QuotaExceededError"],
};
for (const [name, [overrides, diagnostic]] of Object.entries(broken)) {
  test(`where localStorage is ${name} the circuit lives in memory, and says so once (R28)`, () =>
    browser(async () => {
      const { breaker, clock, told, fail } = tab();
      assert.equal(breaker.state, "closed");
      await fail(4);
      assert.equal(breaker.state, "open");
      clock.advance(1_000);
      assert.equal(await breaker.run(() => "probe"), "probe");
      assert.equal(breaker.state, "closed");
      assert.deepEqual(told, [diagnostic]);
    }, new Map(), overrides));
}

test("a quota that fails twice and then not: the third move is stored, and attempts are counted in moves, not in calls (R28)", () => {
  let writes = 0;
  const area = new Map();
  return browser(
    async () => {
      const { breaker } = tab();
      breaker.force("open");
      await repeat(100, () => outcomeOf(breaker.run(() => 1)));
      breaker.reset();
      await repeat(100, () => outcomeOf(breaker.run(() => 1)));
      assert.equal(writes, 2);
      breaker.force("open");
      assert.equal(area.get("tripcurve:http.shop"), breaker.snapshot());
    },
    area,
    { setItem: (key, value) => (++writes <= 2 ? quota() : area.set(key, value)) },
  );
});

test("where `navigator` cannot be read, or has no locks, there are no claims, and nothing is thrown", () => {
  for (const get of [forbidden, () => undefined, () => ({})]) {
    const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    Object.defineProperty(globalThis, "navigator", { configurable: true, get });
    try {
      assert.equal(localStorageStore().claim, undefined);
    } finally {
      if (before) Object.defineProperty(globalThis, "navigator", before);
      else delete globalThis.navigator;
    }
  }
});

test("nothing of localStorage is touched at import or when a breaker is made (R28)", () => {
  const script = `
    let touched = 0;
    Object.defineProperty(globalThis, "localStorage", { get() { touched++; throw new Error("touched") } });
    const { CircuitBreaker } = await import("tripcurve");
    const { localStorageStore } = await import("tripcurve/stores/local-storage");
    new CircuitBreaker("a", {}, { store: localStorageStore() });
    console.log(touched);`;
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: new URL("../..", import.meta.url), encoding: "utf8" }), "0\n");
});

// ---- IndexedDB, where there is none

test("a host without IndexedDB says so with the first reading, and the circuit lives in memory", async () => {
  const store = indexedDbStore();
  await assert.rejects(store.get("a"), { message: "There is no IndexedDB" });
  await assert.rejects(store.set("a", "b", { ttlMs: 1_000 }), { message: "There is no IndexedDB" });
  const { breaker, told, fail } = tab({ store });
  await fail(4);
  assert.equal((await outcomeOf(breaker.run(() => 1))).error.code, "ERR_CIRCUIT_OPEN");
  assert.deepEqual(told, ["store_failed Error"]);
});

test("a database without a name is refused when the store is made", () => {
  for (const name of ["", null, 5]) assert.throws(() => indexedDbStore({ name }), { code: "ERR_INVALID_CIRCUIT", field: "name", value: name });
});
