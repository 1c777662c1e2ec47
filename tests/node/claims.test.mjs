// Probes where others have to agree: over all participants no more than the limit, and no store fault that a call has to pay for.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, InvalidCircuitError, memoryStore, StoreError } from "tripcurve";
import { faultyStore, fakeClock } from "tripcurve/testing";
import { B0, deferred, outcomeOf, repeat, ticks } from "./help.mjs";

const T = 1_700_000_000_000;
const settled = () => ticks(100);

/** Atomic, answers later, counts, and fails when told. `ahead`: by so much its own clock is ahead. */
function atomicStore({ clock, ahead } = {}) {
  const memory = memoryStore({ clock });
  const now = () => (ahead === undefined ? {} : { now: clock() + ahead });
  return faultyStore({
    consistency: "atomic",
    get: async (key) => ({ ...(memory.get(key) ?? { snapshot: null, version: null }), ...now() }),
    set: async (key, text, options) => memory.set(key, text, options),
  });
}

function memberOf(store, { policy = {}, clock, ...options }) {
  const breaker = new CircuitBreaker("shared", { ...B0, ...policy }, { store, clock, ...options });
  const moves = [];
  const told = [];
  breaker.on("transition", ({ to, reason }) => moves.push(`${to} ${reason}`));
  breaker.on("diagnostic", ({ code }) => told.push(code));
  const fail = (times = 1) => repeat(times, () => breaker.run(() => Promise.reject(new Error("down"))).catch(() => {}));
  return { breaker, moves, told, fail };
}

/** So many participants that know of an open circuit, which is due; and what makes it so again. */
async function due(count, { store, clock = fakeClock(T), policy, ...options } = {}) {
  store ??= atomicStore({ clock });
  const members = Array.from({ length: count }, () => memberOf(store, { policy, clock, ...options }));
  await members[0].fail(4);
  await settled();
  for (const { breaker } of members) await outcomeOf(breaker.run(() => 1));
  clock.advance(1_000);
  await settled();
  store.calls.length = 0;
  return { store, clock, members };
}

/** Asks for a call that goes on until `end`; `began` tells whether it was let in. */
function ask({ breaker }, options) {
  const work = deferred();
  const call = { began: false, end: work.resolve, fail: work.reject };
  call.outcome = outcomeOf(breaker.run(() => ((call.began = true), work.promise), options));
  return call;
}

test("of many participants at a due circuit as many probe as the limit says, and the others learn when a lease ends (R22)", async () => {
  for (const probeLimit of [1, 2, 3]) {
    const { clock, members } = await due(5, { policy: { probeLimit } });
    const calls = members.map((member) => ask(member));
    await settled();
    assert.equal(calls.filter(({ began }) => began).length, probeLimit);
    const refused = calls.find(({ began }) => !began);
    const { error } = await refused.outcome;
    assert.deepEqual([error.code, error.reason, error.retryAt], ["ERR_CIRCUIT_OPEN", "probes_busy", T + 1_000 + B0.probeLeaseMs]);
    for (const { end } of calls) end();
    await settled();
    clock.advance(1_000); // those who were refused read again
    for (const { breaker } of members) {
      await outcomeOf(breaker.run(() => 1));
      await settled();
      assert.equal(breaker.state, "closed");
    }
  }
});

test("a thousand calls in one tick are one probe and a handful of store operations (R22)", async () => {
  const { store, members } = await due(1);
  const calls = Array.from({ length: 1_000 }, () => ask(members[0]));
  await settled();
  assert.equal(calls.filter(({ began }) => began).length, 1);
  assert.ok(store.calls.length <= 4, `${store.calls.length} operations`);
  const reasons = await Promise.all(calls.filter(({ began }) => !began).map(async ({ outcome }) => (await outcome).error.reason));
  assert.deepEqual([...new Set(reasons)], ["probes_busy"]);
});

test("the slot of a participant that died is free when its lease ends, and not a millisecond before", async () => {
  const { clock, members: [dead, ...others] } = await due(2);
  assert.ok(await ask(dead).began || (await settled(), true));
  for (const [at, began] of [[B0.probeLeaseMs - 1, false], [B0.probeLeaseMs, true]]) {
    clock.set(T + 1_000 + at);
    const call = ask(others[0]);
    await settled();
    assert.equal(call.began, began, `after ${at} ms`);
  }
});

test("a probe that is ignored frees its slot for the others at once", async () => {
  const { members: [one, two] } = await due(2);
  const controller = new AbortController();
  const call = ask(one, { signal: controller.signal });
  await settled();
  controller.abort();
  call.fail(controller.signal.reason);
  await settled();
  const next = ask(two);
  await settled();
  assert.equal(next.began, true);
});

test("a signal that fires while others are asked runs nothing and frees the slot", async () => {
  const { members: [one, two] } = await due(2);
  const controller = new AbortController();
  const call = ask(one, { signal: controller.signal });
  controller.abort("gone");
  assert.deepEqual([(await call.outcome).error, call.began], ["gone", false]);
  await settled();
  const next = ask(two);
  await settled();
  assert.equal(next.began, true);
});

test("a probe's outcome that another write overtook is judged in the new text", async () => {
  const { store, clock, members: [one, two] } = await due(2, { policy: { probeLimit: 2, probeSuccesses: 2 } });
  const calls = [ask(one), ask(two)];
  await settled();
  assert.deepEqual(calls.map(({ began }) => began), [true, true]);
  for (const { end } of calls) end("fine");
  await settled();
  clock.advance(1_000);
  for (const { breaker } of [one, two]) {
    await outcomeOf(breaker.run(() => 1));
    await settled();
    assert.equal(breaker.state, "closed");
  }
  assert.ok(store.calls.length < 20, `${store.calls.length} operations`);
});

test("a closing that others decided meanwhile lets the call in as an ordinary one", async () => {
  const { members: [one, two] } = await due(2);
  const probe = ask(one);
  await settled();
  probe.end();
  await settled();
  const permit = await two.breaker.admit();
  assert.equal(permit.kind, "allowed");
  assert.deepEqual(two.moves.slice(-1), ["closed adopted"]);
});

test("a store that refuses every write lets no probe start, and is told as failing", async () => {
  const { store, members: [one] } = await due(1);
  const set = store.set;
  store.set = async () => ({ ok: false });
  const call = ask(one);
  assert.equal((await call.outcome).error.reason, "probes_busy");
  store.set = set;
  const next = ask(one);
  await settled();
  assert.equal(next.began, true);
});

// ---- outages

const outages = {
  "is down": (store) => (store.down = true),
  "hangs": (store) => (store.hang = true),
};
for (const [name, fault] of Object.entries(outages)) {
  test(`onStoreError: while the store ${name} a probe starts without it, or not at all, or the call is told`, async () => {
    for (const onStoreError of ["continue", "refuse", "throw"]) {
      const { store, members: [one] } = await due(1, { onStoreError, storeTimeoutMs: 10 });
      fault(store);
      const call = ask(one);
      const first = await Promise.race([call.outcome, new Promise((resolve) => setTimeout(resolve, 2_000, "began"))]);
      if (onStoreError === "continue") {
        assert.deepEqual([first, call.began], ["began", true]);
        call.end("fine");
        assert.equal((await call.outcome).value, "fine");
        assert.equal(one.breaker.state, "closed", "judged here");
      } else if (onStoreError === "refuse") {
        assert.deepEqual([first.error.code, first.error.reason, call.began], ["ERR_CIRCUIT_OPEN", "probes_busy", false]);
      } else {
        const { error } = first;
        assert.ok(error instanceof StoreError);
        assert.deepEqual([error.code, error.key, call.began], ["ERR_CIRCUIT_STORE", "shared", false]);
        assert.match(error.message, /^The store of circuit shared failed \((get|claim)\): .+/);
        assert.ok(error.cause instanceof Error);
      }
      assert.deepEqual(one.told, ["store_failed"]);
    }
  });
}

test("while a store hangs a closed call does not wait for it, and an open circuit still refuses at once", async () => {
  const clock = fakeClock(T);
  const store = atomicStore({ clock });
  const { breaker, fail } = memberOf(store, { clock, storeTimeoutMs: 60_000 });
  await breaker.run(() => 1);
  store.hang = true;
  clock.advance(100_000);
  let ended = 0;
  for (let i = 0; i < 10; i++) void breaker.run(() => 1).then(() => ended++);
  await ticks(5);
  assert.equal(ended, 10);
  await fail(20);
  assert.equal((await outcomeOf(breaker.run(() => 1))).error.reason, "open");
});

test("throw: the call's own error is kept, a value is not lost, the outcome is counted (rasuvaeff)", async () => {
  const clock = fakeClock(T);
  const store = atomicStore({ clock });
  const { breaker } = memberOf(store, { clock, onStoreError: "throw", storeTimeoutMs: 20, policy: { window: { kind: "consecutive" }, failureRate: null, failures: 1 } });
  assert.equal(await breaker.run(() => "fine"), "fine");
  store.down = true;
  const own = new Error("own");
  const { error } = await outcomeOf(breaker.run(() => Promise.reject(own)));
  assert.ok(error instanceof StoreError);
  assert.deepEqual([error.operation, error.key, error.callError, error.cause.message], ["get", "shared", own, "The store is down"]);
  assert.equal(breaker.state, "open");
});

test("throw: a first reading that fails rejects the call, and runs nothing", async () => {
  const clock = fakeClock(T);
  const store = atomicStore({ clock });
  store.down = true;
  const { breaker } = memberOf(store, { clock, onStoreError: "throw" });
  const { error } = await outcomeOf(breaker.run(() => assert.fail("ran")));
  assert.deepEqual([error.code, error.operation], ["ERR_CIRCUIT_STORE", "get"]);
});

// ---- locks

/** Last write with locks, as localStorage has them. */
function lockStore(texts, held, clock) {
  return {
    consistency: "last_write",
    get: async () => (texts.has("k") ? { snapshot: texts.get("k"), version: null } : null),
    set: async (_, text) => (texts.set("k", text), { ok: true }),
    claim: async (_, slot, leaseMs) => {
      if ((held.get(slot) ?? 0) > clock()) return null;
      held.set(slot, clock() + leaseMs);
      return () => held.delete(slot);
    },
  };
}

test("where a probe's claim is a lock, as many probe as there are slots; a slot is free again when the verdict is written", async () => {
  for (const probeLimit of [1, 2]) {
    const clock = fakeClock(T);
    const [texts, held] = [new Map(), new Map()];
    const store = Object.assign(lockStore(texts, held, clock), { calls: [] });
    const { members } = await due(4, { store, clock, policy: { probeLimit } });
    const calls = members.map((member) => ask(member));
    await settled();
    assert.equal(calls.filter(({ began }) => began).length, probeLimit);
    assert.equal(held.size, probeLimit);
    for (const { end } of calls) end();
    await settled();
    const end = Date.now() + 5_000;
    while (held.size > 0 && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(held.size, 0);
    clock.advance(10_000);
    for (const { breaker } of members) {
      await breaker.run(() => 1).catch(() => {});
      await settled();
      assert.equal(breaker.state, "closed");
    }
  }
});

test("where a probe's claim is a lock the next probe of the same participant follows at once", async () => {
  const clock = fakeClock(T);
  const [texts, held] = [new Map(), new Map()];
  const store = Object.assign(lockStore(texts, held, clock), { calls: [] });
  const { members: [one, two] } = await due(2, { store, clock, policy: { probeSuccesses: 3 } });
  for (let probe = 1; probe <= 3; probe++) {
    assert.equal(await one.breaker.run(() => "fine"), "fine");
    if (probe < 3) assert.equal((await outcomeOf(two.breaker.run(() => 1))).error.reason, "probes_busy");
  }
  assert.equal(one.breaker.state, "closed");
});

test("the lock of a participant that does not answer is out of date when its lease ends", async () => {
  const clock = fakeClock(T);
  const [texts, held] = [new Map(), new Map()];
  const store = Object.assign(lockStore(texts, held, clock), { calls: [] });
  const { members: [frozen, other] } = await due(2, { store, clock });
  ask(frozen);
  await settled();
  clock.set(T + 1_000 + B0.probeLeaseMs - 1);
  const early = ask(other);
  await settled();
  clock.advance(1);
  const timely = ask(other);
  await settled();
  assert.deepEqual([early.began, timely.began], [false, true]);
});

// ---- whose clock, whose verdict

test("by a store's own clock participants agree, whatever theirs show", async () => {
  const real = fakeClock(T);
  const clockOf = (ahead) => () => real() + ahead;
  const store = atomicStore({ clock: real, ahead: 0 });
  const members = [-3_600_000, 0, 3_600_000].map((ahead) => memberOf(store, { clock: clockOf(ahead), policy: { openMs: 60_000 } }));
  for (const { breaker } of members) await breaker.run(() => 1);
  await members[2].fail(4);
  await settled();
  assert.equal(members[2].breaker.inspect().until, T + 60_000);
  real.advance(10_000);
  for (const { breaker } of members) {
    await outcomeOf(breaker.run(() => 1)); // reads meanwhile
    await settled();
    const { error } = await outcomeOf(breaker.run(() => 1));
    assert.deepEqual([error.reason, error.retryAt, error.retryAfterMs], ["open", T + 60_000, 50_000]);
  }
});

test("what was decided before the store's clock was known moves to it", async () => {
  const real = fakeClock(T);
  const store = atomicStore({ clock: real, ahead: 0 });
  store.down = true;
  const fast = memberOf(store, { clock: () => real() + 7_200_000, policy: { openMs: 60_000 } });
  await fast.fail(4);
  store.down = false;
  real.advance(30_000);
  await outcomeOf(fast.breaker.run(() => 1));
  await settled();
  assert.equal(fast.breaker.inspect().until, T + 60_000);
  const other = memberOf(store, { clock: real, policy: { openMs: 60_000 } });
  const { error } = await outcomeOf(other.breaker.run(() => 1));
  assert.deepEqual([error.reason, error.retryAfterMs], ["open", 30_000]);
});

test('adopt: "never" tells of others\' verdicts and follows none; its own are written', async () => {
  const clock = fakeClock(T);
  const store = atomicStore({ clock });
  const [sick, well] = [memberOf(store, { clock }), memberOf(store, { clock, adopt: "never" })];
  await well.breaker.run(() => 1);
  await sick.fail(4);
  await settled();
  clock.advance(10_000);
  assert.equal(await well.breaker.run(() => "fine"), "fine");
  await settled();
  assert.equal(await well.breaker.run(() => "fine"), "fine");
  assert.deepEqual([well.told, well.moves], [["remote_verdict"], []]);
  clock.advance(20_000);
  well.breaker.force("open");
  await settled();
  assert.match((await store.get("shared")).snapshot, /./);
  const third = memberOf(store, { clock });
  assert.equal((await outcomeOf(third.breaker.run(() => 1))).error.reason, "open");
});

test("options of sharing that cannot work are refused at construction", () => {
  const make = (options) => () => new CircuitBreaker("shared", {}, options);
  const lastWrite = { consistency: "last_write", get: () => null, set: () => ({ ok: true }) };
  for (const [field, options] of [
    ["share", { store: memoryStore(), share: "all" }],
    ["share", { store: lastWrite, share: "tally" }],
    ["share", { share: "tally" }],
    ["adopt", { store: lastWrite, adopt: "always" }],
    ["onStoreError", { store: lastWrite, onStoreError: "ignore" }],
    ["storeTimeoutMs", { store: lastWrite, storeTimeoutMs: 0 }],
  ]) {
    assert.throws(make(options), (error) => error instanceof InvalidCircuitError && error.field === field, JSON.stringify(options));
  }
});
