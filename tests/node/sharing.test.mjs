// Several breakers, one circuit: what travels when, and that no store can hurt a call.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, memoryStore } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { B0, deferred, outcomeOf, repeat, ticks, unhandled } from "./help.mjs";

const T = 1_700_000_000_000;

/** A last-write store that counts, and can be made to fail. */
function fakeStore({ sync = false, clock, ...rest } = {}) {
  const texts = new Map();
  const store = {
    consistency: "last_write",
    texts,
    gets: 0,
    sets: 0,
    ttls: [],
    failing: undefined,
    get(key) {
      store.gets++;
      return answer(() => (texts.has(key) ? { snapshot: texts.get(key), version: null } : null));
    },
    set(key, text, { ttlMs }) {
      store.sets++;
      store.ttls.push(ttlMs);
      return answer(() => (texts.set(key, text), { ok: true }));
    },
    ...rest,
  };
  function answer(work) {
    const { failing } = store;
    if (failing) return failing(work);
    return sync ? work() : Promise.resolve().then(work);
  }
  return store;
}

function memberOf(store, { policy = {}, clock = fakeClock(T), ...options } = {}) {
  const breaker = new CircuitBreaker("shared", { ...B0, ...policy }, { store, clock, ...options });
  const moves = [];
  const told = [];
  breaker.on("transition", ({ to, reason }) => moves.push(`${to} ${reason}`));
  breaker.on("diagnostic", ({ code }) => told.push(code));
  const fail = (times = 1) => repeat(times, () => breaker.run(() => { throw new Error("down"); }).catch(() => {}));
  const succeed = (times = 1) => repeat(times, () => breaker.run(() => "fine").catch(() => {}));
  return { breaker, clock, moves, told, fail, succeed, open: () => fail(4) };
}

const settled = async () => {
  await ticks(50);
};

test("a healthy circuit reads once and writes nothing", async () => {
  const store = fakeStore();
  const { succeed, fail } = memberOf(store);
  await succeed(50);
  await fail(1);
  await succeed(50);
  await settled();
  assert.deepEqual([store.gets, store.sets], [1, 0]);
});

test("an open circuit is open for whoever comes new", async () => {
  const store = fakeStore();
  const clock = fakeClock(T);
  const one = memberOf(store, { clock });
  await one.open();
  await settled();
  assert.equal(store.sets, 1);
  const two = memberOf(store, { clock });
  const { error } = await outcomeOf(two.breaker.run(() => assert.fail("ran")));
  assert.equal(error.retryAt, T + 1_000);
  assert.deepEqual(two.moves, ["open adopted"]);
  await settled();
  assert.equal(store.sets, 1, "nobody writes back what was read");
});

test("a participant that is there learns of it within refreshMs, by a reading of its own", async () => {
  const store = fakeStore();
  const clock = fakeClock(T);
  const one = memberOf(store, { clock, policy: { openMs: 60_000 } });
  const two = memberOf(store, { clock, policy: { openMs: 60_000 } });
  await two.succeed();
  await one.open();
  await settled();
  clock.advance(9_999);
  await two.succeed();
  assert.equal(two.breaker.state, "closed");
  clock.advance(1);
  await two.succeed();
  await settled();
  assert.equal(two.breaker.state, "open");
  assert.deepEqual(two.moves, ["open adopted"]);
});

test("refreshMs is the option's, else the store's, else ten seconds", async () => {
  for (const [options, hint, ms] of [[{ refreshMs: 5 }, 7, 5], [{}, 7, 7], [{}, undefined, 10_000]]) {
    const store = fakeStore(hint ? { refreshMs: hint } : {});
    const { succeed, clock } = memberOf(store, options);
    await succeed();
    clock.advance(ms - 1);
    await succeed();
    await settled();
    assert.equal(store.gets, 1);
    clock.advance(1);
    await succeed(3);
    await settled();
    assert.equal(store.gets, 2);
  }
});

test("refused calls read as well, so that a reset elsewhere is seen", async () => {
  const store = fakeStore();
  const clock = fakeClock(T);
  const policy = { openMs: 100_000 };
  const one = memberOf(store, { clock, policy });
  await one.open();
  await settled();
  const two = memberOf(store, { clock, policy });
  await two.succeed();
  assert.equal(two.breaker.state, "open");
  clock.advance(10);
  one.breaker.reset();
  await settled();
  clock.advance(10_000);
  await two.succeed();
  await settled();
  assert.equal(two.breaker.state, "closed");
});

test("with a memory store everything is seen at once, in order, without an echo", async () => {
  const clock = fakeClock(T);
  const memory = memoryStore({ clock });
  let sets = 0;
  const store = { ...memory, set: (...args) => (sets++, memory.set(...args)) };
  const [one, two, three] = [1, 2, 3].map(() => memberOf(store, { clock }));
  for (const { succeed } of [one, two, three]) await succeed();
  await one.open();
  assert.deepEqual([two.breaker.state, three.breaker.state, sets], ["open", "open", 1]);
  clock.advance(1_000);
  await two.succeed();
  assert.deepEqual([one, two, three].map(({ breaker }) => breaker.state), ["closed", "closed", "closed"]);
  assert.deepEqual(one.moves, ["open failure_rate", "half_open adopted", "closed adopted"]);
  assert.deepEqual(two.moves, ["open adopted", "half_open open_elapsed", "closed probes_succeeded"]);
  const before = sets;
  one.breaker.hold("open");
  assert.deepEqual([two.breaker.inspect().held, three.breaker.inspect().held, sets], ["open", "open", before + 1]);
  three.breaker.release();
  assert.deepEqual([one, two, three].map(({ breaker }) => breaker.inspect().held), [null, null, null]);
});

test("a text of the memory store ends when its time is over", () => {
  const clock = fakeClock(0);
  const store = memoryStore({ clock });
  store.set("k", "text", { ttlMs: 100 });
  clock.set(99);
  assert.equal(store.get("k").snapshot, "text");
  clock.set(100);
  assert.equal(store.get("k"), null);
});

test("the memory store compares and sets", () => {
  const store = memoryStore();
  assert.deepEqual(store.set("k", "a", { ttlMs: 1e9, ifVersion: "7" }), { ok: false, version: null });
  const { ok, version } = store.set("k", "a", { ttlMs: 1e9, ifVersion: null });
  assert.equal(ok, true);
  assert.equal(store.set("k", "b", { ttlMs: 1e9, ifVersion: null }).ok, false);
  assert.equal(store.set("k", "b", { ttlMs: 1e9, ifVersion: version }).ok, true);
  assert.equal(store.get("k").snapshot, "b");
  store.delete("k");
  assert.equal(store.get("k"), null);
});

test("a write that another one overtook reads, merges and writes again", async () => {
  const clock = fakeClock(T);
  const memory = memoryStore({ clock });
  let overtake;
  const store = { consistency: "atomic", get: async (key) => memory.get(key), set: async (key, text, options) => (overtake?.(), memory.set(key, text, options)) };
  const one = memberOf(store, { clock });
  const two = memberOf(store, { clock });
  await one.succeed();
  overtake = () => {
    overtake = undefined;
    clock.advance(5);
    two.breaker.force("open", T + 9_000);
    memory.set("shared", two.breaker.snapshot(), { ttlMs: 1e9 });
  };
  await one.open();
  await settled();
  assert.equal(one.breaker.inspect().until, T + 9_000);
  assert.deepEqual(one.told, []);
});

// ---- the first reading

test("the first call waits for an asynchronous store, at most storeTimeoutMs", async () => {
  const store = fakeStore();
  store.failing = () => new Promise(() => {});
  const { breaker, told } = memberOf(store, { storeTimeoutMs: 20 });
  const began = performance.now();
  assert.equal(await breaker.run(() => "fine"), "fine");
  const waited = performance.now() - began;
  assert.ok(waited >= 18 && waited < 500, `${waited}`);
  const again = performance.now();
  assert.equal(await breaker.run(() => "fine"), "fine");
  assert.ok(performance.now() - again < 15);
  assert.deepEqual(told, ["store_failed"]);
});

test("with firstRead background it does not wait, and learns later", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  const one = memberOf(store, { clock });
  await one.open();
  await settled();
  const two = memberOf(store, { clock, firstRead: "background" });
  assert.equal(await two.breaker.run(() => "ran"), "ran");
  await settled();
  assert.equal(two.breaker.state, "open");
});

test("each first caller waits for a reading of its own; nobody awaits a promise another call made (R07)", async () => {
  const readings = [];
  const store = {
    consistency: "last_write",
    get() {
      const reading = deferred();
      const awaited = [];
      reading.promise.then = function (...args) {
        awaited.push(new Error().stack);
        return Promise.prototype.then.apply(this, args);
      };
      readings.push({ ...reading, awaited });
      return reading.promise;
    },
    set: () => ({ ok: true }),
  };
  const { breaker } = memberOf(store, { storeTimeoutMs: 10_000 });
  const first = breaker.run(() => "one");
  const second = breaker.run(() => "two");
  assert.equal(readings.length, 2);
  const before = readings[0].awaited.length;
  readings[1].resolve(null);
  assert.equal(await second, "two");
  assert.equal(await breaker.run(() => "three"), "three");
  assert.equal(readings[0].awaited.length, before);
  readings[0].resolve(null);
  assert.equal(await first, "one");
});

test("a call that is dropped while its reading hangs does not hold up the next (R07)", async () => {
  let n = 0;
  const store = { consistency: "last_write", get: () => (n++ === 0 ? new Promise(() => {}) : Promise.resolve(null)), set: () => ({ ok: true }) };
  const { breaker } = memberOf(store, { storeTimeoutMs: 5_000 });
  const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  void breaker.run(() => "dropped");
  assert.equal(await breaker.run(() => "next"), "next");
  void timers;
});

test("admit waits for the first reading as well", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  await memberOf(store, { clock }).open();
  await settled();
  assert.equal((await memberOf(store, { clock }).breaker.admit()).kind, "rejected");
});

test("a signal that fires while a call waits for the store runs nothing", async () => {
  const store = fakeStore();
  const { breaker } = memberOf(store);
  const controller = new AbortController();
  const call = outcomeOf(breaker.run(() => assert.fail("ran"), { signal: controller.signal }));
  controller.abort("gone");
  assert.equal((await call).error, "gone");
});

test("an answer that comes late still counts", async () => {
  const clock = fakeClock(T);
  const good = fakeStore();
  await memberOf(good, { clock, policy: { openMs: 60_000 } }).open();
  await settled();
  const late = deferred();
  const store = { consistency: "last_write", get: () => late.promise, set: () => ({ ok: true }) };
  const { breaker } = memberOf(store, { clock, storeTimeoutMs: 5, policy: { openMs: 60_000 } });
  assert.equal(await breaker.run(() => "ran"), "ran");
  late.resolve({ snapshot: good.texts.get("shared"), version: null });
  await settled();
  assert.equal(breaker.state, "open");
});

test("a clock that is set back an hour holds up neither readings nor writes", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  const { succeed, breaker } = memberOf(store, { clock });
  await succeed();
  clock.advance(10_000);
  await succeed();
  await settled();
  clock.set(T - 3_600_000);
  const before = store.gets;
  await succeed();
  await settled();
  assert.equal(store.gets, before + 1);
  breaker.force("open");
  await settled();
  assert.equal(store.texts.get("shared"), breaker.snapshot());
});

// ---- faults

const faults = {
  "throws": () => { throw new Error("store"); },
  "rejects": () => Promise.reject(new Error("store")),
  "hangs": () => new Promise(() => {}),
  "answers nonsense": () => 5,
  "answers undefined": async () => undefined,
};
for (const [name, failing] of Object.entries(faults)) {
  test(`a store that ${name} reaches no call; the circuit opens all the same and what was decided is written when the store is back (R29)`, async () => {
    const clock = fakeClock(T);
    const store = fakeStore();
    store.failing = failing;
    const { breaker, fail, told } = memberOf(store, { clock, storeTimeoutMs: 5, policy: { openMs: 600_000, maxOpenMs: 600_000 } });
    const seen = await unhandled(async () => {
      await fail(4);
      assert.equal(breaker.state, "open");
      await repeat(20, async () => {
        assert.equal((await outcomeOf(breaker.run(() => 1))).error.code, "ERR_CIRCUIT_OPEN");
        clock.advance(50);
      });
      await settled();
    });
    assert.deepEqual(seen, []);
    assert.ok(told.length <= 1, `${told}`);
    assert.ok(store.gets + store.sets < 10, "it backs off");
    store.failing = undefined;
    clock.advance(120_000);
    await outcomeOf(breaker.run(() => 1));
    await settled();
    assert.equal(store.texts.get("shared"), breaker.snapshot());
  });
}

test("an outage is told once, and the next one again", async () => {
  const store = fakeStore();
  const { succeed, clock, told } = memberOf(store);
  const down = () => Promise.reject(new Error("down"));
  for (let outage = 1; outage <= 2; outage++) {
    store.failing = down;
    for (let i = 0; i < 5; i++) {
      clock.advance(100_000);
      await succeed();
      await settled();
    }
    assert.equal(told.length, outage);
    store.failing = undefined;
    clock.advance(100_000);
    await succeed();
    await settled();
  }
});

test("a store that is back with an older verdict is told the newer one", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  const one = memberOf(store, { clock, policy: { openMs: 60_000 } });
  one.breaker.force("open");
  await settled();
  const older = store.texts.get("shared");
  clock.advance(10);
  one.breaker.reset();
  await settled();
  clock.advance(10);
  one.breaker.force("open");
  await settled();
  const newest = store.texts.get("shared");
  assert.notEqual(newest, older);
  store.texts.set("shared", older);
  clock.advance(10_000);
  await one.succeed();
  await settled();
  assert.equal(store.texts.get("shared"), one.breaker.snapshot());
});

test("only an open verdict that is not due is ever written again, once per staleness", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  const { breaker, succeed } = memberOf(store, { clock, policy: { openMs: 60_000 } });
  breaker.force("open");
  await settled();
  const { sets } = store;
  store.texts.clear();
  clock.advance(9_000);
  await succeed(5);
  await settled();
  assert.equal(store.sets, sets, "not yet");
  clock.advance(1_000);
  await succeed(5);
  await settled();
  assert.equal(store.sets, sets + 1);
  store.texts.clear();
  clock.advance(60_000);
  await succeed();
  await settled();
  assert.equal(breaker.state, "closed");
  store.texts.clear();
  const closed = store.sets;
  for (let i = 0; i < 5; i++) {
    clock.advance(100_000);
    await succeed();
    await settled();
  }
  assert.equal(store.sets, closed, "a closed one never");
});

test("a corrupt text is told once, left alone, and replaced by the next decision (R11)", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  store.texts.set("shared", "{");
  const { breaker, succeed, told } = memberOf(store, { clock });
  for (let i = 0; i < 5; i++) {
    await succeed();
    clock.advance(20_000);
    await settled();
  }
  assert.deepEqual([told, store.sets, store.texts.get("shared")], [["snapshot_unreadable"], 0, "{"]);
  breaker.force("open");
  await settled();
  assert.equal(store.texts.get("shared"), breaker.snapshot());
});

test("whoever knows of an open circuit replaces a corrupt text by it, also one it has seen before", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  const { breaker, open, succeed } = memberOf(store, { clock, policy: { openMs: 60_000 } });
  await open();
  await settled();
  store.texts.set("shared", "{");
  clock.advance(9_999);
  breaker.record("ignored");
  await settled();
  for (let i = 0; i < 2; i++) {
    clock.advance(10_000);
    await succeed();
    await settled();
  }
  const newcomer = memberOf(store, { clock, policy: { openMs: 60_000 } });
  assert.equal((await outcomeOf(newcomer.breaker.run(() => 1))).error.reason, "open");
});

test("an older text changes nothing (R10 c)", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  const one = memberOf(store, { clock });
  one.breaker.reset();
  await settled();
  const older = store.texts.get("shared");
  const two = memberOf(store, { clock, policy: { openMs: 60_000 } });
  clock.advance(5_000);
  await two.open();
  await settled();
  store.texts.set("shared", older);
  clock.advance(1_000);
  await two.breaker.flush();
  await two.succeed();
  assert.equal(two.breaker.state, "open");
});

// ---- writing

test("the time to live covers what is left of the open time, the lease and a margin (R15)", async () => {
  for (const openMs of [1_000, 59_000, 600_000, 30 * 86_400_000]) {
    const store = fakeStore();
    const { breaker } = memberOf(store, { policy: { openMs, maxOpenMs: Math.max(openMs, 300_000), probeLeaseMs: 5_000 } });
    breaker.force("open");
    await settled();
    assert.ok(store.ttls[0] >= openMs + 5_000 + 1_000 && Number.isFinite(store.ttls[0]), `${store.ttls}`);
  }
});

test("a verdict outlives the open ones it may have to beat, an operator's hold a month", async () => {
  const store = fakeStore();
  const { breaker } = memberOf(store);
  breaker.reset();
  await settled();
  assert.ok(store.ttls[0] >= 300_000);
  breaker.hold("open");
  await settled();
  assert.ok(store.ttls[1] >= 30 * 86_400_000);
});

test("a record that vanished makes nobody forget: who knew of it probes when it is due (R15)", async () => {
  const clock = fakeClock(T);
  const store = fakeStore();
  const { breaker, open } = memberOf(store, { clock });
  await open();
  await settled();
  store.texts.clear();
  clock.advance(1_000);
  assert.equal((await breaker.admit()).kind, "probe");
});

test("work for the store is handed to waitUntil: the call's, else the breaker's", async () => {
  const store = fakeStore();
  const [own, given] = [[], []];
  const { breaker } = memberOf(store, { policy: { failures: 1, failureRate: null }, waitUntil: (work) => own.push(work) });
  await breaker.run(() => 1);
  assert.equal(own.length, 1);
  await outcomeOf(breaker.run(() => { throw 1; }, { waitUntil: (work) => given.push(work) }));
  assert.equal(given.length, 1);
  await Promise.all([...own, ...given]);
  assert.equal(store.sets, 1);
});

test("a waitUntil that throws outside a request hurts nobody", async () => {
  const store = fakeStore();
  const { breaker, open } = memberOf(store, { waitUntil: () => { throw new Error("no request"); } });
  await open();
  await settled();
  assert.equal(breaker.state, "open");
  assert.equal(store.sets, 1);
});

test("without waitUntil no timer outlives a call", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  for (const failing of [undefined, ...Object.values(faults)]) {
    const store = fakeStore({ writeEveryMs: 1_000 });
    store.failing = failing;
    const { breaker, open } = memberOf(store, { storeTimeoutMs: 5 });
    await open();
    breaker.reset();
    breaker.force("open");
    await settled();
    assert.equal(timers(), before);
  }
});

test("flush writes what waits for its turn, and a store that hangs does not hold it up for ever", async () => {
  const store = fakeStore({ writeEveryMs: 30 });
  const { breaker } = memberOf(store);
  breaker.force("open");
  breaker.reset();
  breaker.force("open");
  await settled();
  await breaker.flush();
  assert.equal(store.texts.get("shared"), breaker.snapshot());
  store.failing = () => new Promise(() => {});
  breaker.reset();
  const hanging = memberOf(store, { storeTimeoutMs: 5 });
  hanging.breaker.force("open");
  await hanging.breaker.flush();
});

test("dispose writes what is not written yet", async () => {
  for (const sync of [true, false]) {
    const store = fakeStore({ sync });
    let down = true;
    store.failing = (work) => (down ? Promise.reject(new Error("down")) : Promise.resolve().then(work));
    const { breaker } = memberOf(store);
    breaker.force("open");
    await settled();
    const text = breaker.snapshot();
    down = false;
    breaker.dispose();
    await settled();
    assert.equal(store.texts.get("shared"), text);
  }
});

test("after dispose nothing is heard and nothing is written any more", async () => {
  const clock = fakeClock(T);
  const store = memoryStore({ clock });
  const one = memberOf(store, { clock });
  const two = memberOf(store, { clock });
  await one.succeed();
  await two.succeed();
  two.breaker.dispose();
  one.breaker.force("open");
  assert.deepEqual(two.moves, []);
  assert.equal(await two.breaker.run(() => "runs"), "runs");
});

// ---- a store that tells at once what it has

const localOf = (texts = new Map()) => {
  const store = fakeStore({ sync: true, local: true });
  for (const [key, text] of texts) store.texts.set(key, text);
  return store;
};

test("a local store is read before anything is told: inspect, force, snapshot", () => {
  const clock = fakeClock(T);
  const first = localOf();
  memberOf(first, { clock }).breaker.force("open");
  for (const read of [(breaker) => breaker.inspect().state, (breaker) => breaker.state, (breaker) => (breaker.snapshot(), breaker.state)]) {
    const { breaker, moves } = memberOf(localOf(first.texts), { clock });
    assert.equal(read(breaker), "open");
    assert.deepEqual(moves, ["open adopted"]);
  }
});

test("a tally survives a reload: three failures before it and two after it open a five-failure circuit", async () => {
  const clock = fakeClock(T);
  const policy = { failures: 5, failureRate: null };
  const before = localOf();
  const one = memberOf(before, { clock, policy });
  for (let i = 0; i < 3; i++) {
    await one.fail();
    clock.advance(1_000);
  }
  const after = localOf(before.texts);
  const two = memberOf(after, { clock, policy });
  assert.equal(two.breaker.inspect().counts.failures, 3);
  await two.fail();
  assert.equal(two.breaker.state, "closed");
  await two.fail();
  assert.equal(two.breaker.state, "open");
  assert.deepEqual(two.moves, ["open failure_count"]);
});

test("a tally is written after a failure, at most once a second, and when the page is left", async () => {
  const clock = fakeClock(T);
  const listeners = new Set();
  globalThis.addEventListener = (type, listener) => type === "pagehide" && listeners.add(listener);
  globalThis.removeEventListener = (_, listener) => listeners.delete(listener);
  try {
    const store = localOf();
    const { breaker, fail, succeed } = memberOf(store, { clock, policy: { failures: 50, failureRate: null } });
    await succeed(5);
    assert.equal(store.sets, 0);
    await fail(10);
    assert.equal(store.sets, 1);
    clock.advance(999);
    await fail();
    assert.equal(store.sets, 1);
    clock.advance(1);
    await succeed();
    assert.equal(store.sets, 2);
    await fail(3);
    for (const listener of listeners) listener();
    assert.equal(store.sets, 3);
    for (const listener of listeners) listener();
    assert.equal(store.sets, 3);
    assert.equal(memberOf(localOf(store.texts), { clock, policy: { failures: 50, failureRate: null } }).breaker.inspect().counts.failures, 14);
    breaker.dispose();
    assert.equal(listeners.size, 1);
  } finally {
    delete globalThis.addEventListener;
    delete globalThis.removeEventListener;
  }
});

test("a probe's slot survives a reload until its lease is over (R01)", async () => {
  const clock = fakeClock(T);
  const store = localOf();
  const one = memberOf(store, { clock });
  await one.open();
  clock.advance(1_000);
  void one.breaker.run(() => new Promise(() => {}));
  clock.advance(500);
  const two = memberOf(localOf(store.texts), { clock });
  assert.deepEqual(await two.breaker.admit(), { kind: "rejected", reason: "probes_busy", retryAt: T + 6_000 });
  clock.set(T + 6_000);
  assert.equal((await two.breaker.admit()).kind, "probe");
});

test("before a probe a local store is read again: another tab may have closed the circuit", async () => {
  const clock = fakeClock(T);
  const store = localOf();
  const one = memberOf(store, { clock });
  const two = memberOf(store, { clock });
  await one.open();
  await two.succeed();
  assert.equal(two.breaker.state, "open");
  clock.advance(1_000);
  await one.succeed();
  assert.equal(one.breaker.state, "closed");
  assert.equal((await two.breaker.admit()).kind, "allowed");
  assert.deepEqual(two.moves, ["open adopted", "closed adopted"]);
});

test("two tabs whose windows differ keep their own tallies", async () => {
  const clock = fakeClock(T);
  const store = localOf();
  const policy = { failures: 5, failureRate: null };
  const one = memberOf(store, { clock, policy });
  const two = memberOf(store, { clock, policy });
  await one.succeed();
  await two.succeed();
  for (const { fail } of [one, two]) {
    clock.advance(1_000);
    await fail(2);
  }
  assert.deepEqual([one, two].map(({ breaker }) => breaker.inspect().counts.failures), [2, 2]);
});

test("where the store has a clock, an own clock that is set back changes nothing: a probe of somebody else still holds its slot", async () => {
  const server = fakeClock(1_000_000);
  const inner = memoryStore({ clock: server });
  const store = { ...inner, subscribe: undefined, get: (key) => ({ ...(inner.get(key) ?? { snapshot: null, version: null }), now: server() }) };
  const own = fakeClock(1_000_000);
  const policy = { failures: 1, failureRate: null, openMs: 1_000, maxOpenMs: 1_000 };
  const options = { store, refreshMs: 1_000 };
  const [here, there] = [new CircuitBreaker("shared", policy, { ...options, clock: own }), new CircuitBreaker("shared", policy, { ...options, clock: server })];
  const passes = (ms) => (own.advance(ms), server.advance(ms));
  await here.run(() => Promise.reject(new Error("down"))).catch(() => {});
  await there.run(() => 1).catch(() => {});
  passes(600);
  const until = here.inspect().until;
  own.set(own() - 10_000);
  assert.deepEqual([here.state, here.inspect().until], ["open", until]);
  passes(400);
  const probe = await there.admit();
  assert.equal(probe.kind, "probe");
  for (let asked = 0; asked < 3; asked++, passes(150)) assert.equal((await here.admit()).reason, "probes_busy");
  probe.settle("success");
  passes(1_000);
  assert.equal((await here.admit()).kind, "allowed");
});
