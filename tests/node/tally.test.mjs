// `share: "tally"`: several participants count together, in batches, each outcome exactly once.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, memoryStore } from "tripcurve";
import { faultyStore, fakeClock } from "tripcurve/testing";
import { B0, outcomeOf, repeat, ticks } from "./help.mjs";

const T = 1_700_000_000_000;
const settled = () => ticks(100);

function atomicStore(clock) {
  const memory = memoryStore({ clock });
  return faultyStore({ consistency: "atomic", get: async (key) => memory.get(key), set: async (...args) => memory.set(...args) });
}

function memberOf(store, { policy = {}, clock, share = "tally", ...options }) {
  const breaker = new CircuitBreaker("shared", { ...B0, ...policy }, { store, clock, share, ...options });
  const moves = [];
  breaker.on("transition", ({ to, reason, counts }) => moves.push([to, reason, counts.failures]));
  const fail = (times = 1) => repeat(times, () => breaker.run(() => Promise.reject(new Error("down"))).catch(() => {}));
  const succeed = (times = 1) => repeat(times, () => breaker.run(() => "fine"));
  const counts = () => breaker.inspect().counts;
  /** Exchanges with the store, as the next call after a second does. */
  const exchange = async () => {
    await settled();
    clock.advance(1_000);
    breaker.record("ignored");
    await settled();
  };
  return { breaker, moves, fail, succeed, counts, exchange };
}

const windows = {
  fixed: { kind: "fixed", ms: 60_000 },
  time: { kind: "time", ms: 60_000, buckets: 10 },
  calls: { kind: "calls", last: 100 },
  "calls of an age": { kind: "calls", last: 100, withinMs: 60_000 },
  "in a row": { kind: "consecutive" },
};
for (const [name, window] of Object.entries(windows)) {
  test(`two participants that each see half of the failures open at exactly the threshold, not later than one batch: ${name}`, async () => {
    const clock = fakeClock(T);
    const store = atomicStore(clock);
    const policy = { window, failureRate: null, failures: 10, minimumCalls: 1, openMs: 60_000 };
    const [one, two] = [memberOf(store, { clock, policy }), memberOf(store, { clock, policy })];
    for (let i = 0; i < 4; i++) {
      for (const member of [one, two]) {
        await member.fail();
        clock.advance(300);
        await member.succeed(name === "in a row" ? 0 : 1);
        await settled();
      }
    }
    await one.fail();
    for (const { exchange } of [one, two]) await exchange();
    assert.deepEqual([one.breaker.state, two.breaker.state, two.counts().failures], ["closed", "closed", 9]);
    await two.fail(); // the tenth
    for (const { exchange } of [two, one]) await exchange();
    assert.deepEqual([two.moves[0], one.moves[0]?.slice(0, 2)], [["open", "failure_count", 10], ["open", "adopted"]]);
  });
}

test("in a shared tally nine of ten healthy participants keep the circuit closed while one fails", async () => {
  const clock = fakeClock(T);
  const store = atomicStore(clock);
  const members = Array.from({ length: 10 }, () => memberOf(store, { clock, policy: { window: windows.time, minimumCalls: 20 } }));
  for (const member of members.slice(1)) await member.succeed(20);
  for (const { exchange } of members) await exchange();
  await members[0].succeed();
  await members[0].exchange();
  await members[0].fail(30);
  await members[0].exchange();
  assert.equal(members[0].breaker.state, "closed");
  await members[0].fail(200);
  assert.equal(members[0].breaker.state, "open");
});

test("a batch whose answer was lost is counted once", async () => {
  const clock = fakeClock(T);
  const store = atomicStore(clock);
  const policy = { window: { kind: "calls", last: 100 }, failureRate: null, failures: 100, minimumCalls: 1 };
  const [one, two] = [memberOf(store, { clock, policy }), memberOf(store, { clock, policy })];
  await one.succeed();
  await two.succeed();
  await one.fail(5);
  store.lose = true;
  clock.advance(2_000);
  await one.fail();
  await settled();
  store.lose = false;
  await two.fail(3);
  await two.exchange();
  await one.fail();
  for (const { exchange } of [one, two, one, two]) await exchange();
  assert.deepEqual([one.counts(), two.counts()], Array(2).fill({ calls: 12, failures: 10, slow: 0 }));
});

test("what is counted while the store is away is added when it is back", async () => {
  const clock = fakeClock(T);
  const store = atomicStore(clock);
  const policy = { window: { kind: "calls", last: 100 }, failureRate: null, failures: 100, minimumCalls: 1 };
  const [one, two] = [memberOf(store, { clock, policy }), memberOf(store, { clock, policy })];
  for (const member of [one, two]) await member.succeed();
  store.down = true;
  for (const member of [one, two]) await member.fail(7);
  clock.advance(5_000);
  store.down = false;
  for (const { exchange } of [one, two, one]) await exchange();
  assert.deepEqual([one.counts().failures, two.counts().failures], [14, 14]);
});

test("a store operation per second at most, however many calls there are; with failures four; refused calls write nothing", async () => {
  const clock = fakeClock(T);
  const store = atomicStore(clock);
  const { succeed, breaker, fail } = memberOf(store, { clock, policy: { openMs: 60_000 } });
  const during = async (seconds, work) => {
    store.calls.length = 0;
    await repeat(seconds * 20, async () => {
      await work();
      clock.advance(50);
      await settled();
    });
    return store.calls.filter(({ operation }) => operation === "set").length;
  };
  assert.ok((await during(10, () => succeed(10))) <= 11);
  const some = await during(10, () => succeed(9).then(() => fail()));
  assert.ok(some > 11 && some <= 41, `${some}`);
  await fail(2_000);
  await settled();
  assert.equal(breaker.state, "open");
  assert.equal(await during(10, () => outcomeOf(breaker.run(() => 1))), 0);
});

test("with waitUntil the last batch of a request is written within it", async () => {
  const clock = fakeClock(T);
  const store = atomicStore(clock);
  const { breaker } = memberOf(store, { clock });
  const work = [];
  const waitUntil = (promise) => work.push(promise);
  for (let i = 0; i < 20; i++) await breaker.run(() => 1, { waitUntil });
  await Promise.all(work);
  const other = memberOf(store, { clock });
  await other.succeed();
  assert.equal(other.counts().calls, 21);
});

test("a batch waits for its second once, however many calls come; what is decided meanwhile does not wait, and takes its place", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: T });
  const clock = () => Date.now();
  const store = atomicStore(clock);
  const { breaker, succeed } = memberOf(store, { clock, waitUntil: () => {} });
  const asked = () => store.calls.map(({ operation }) => operation).join();
  await succeed();
  await settled();
  assert.equal(asked(), "get,get,set", "the first reading, the first batch");
  for (let i = 0; i < 10; i++) {
    t.mock.timers.tick(10);
    await succeed();
    await settled();
  }
  assert.equal(asked(), "get,get,set");
  t.mock.timers.tick(10);
  breaker.force("open");
  await settled();
  assert.equal(asked(), "get,get,set,get,set", "the verdict is there at once");
  for (let i = 0; i < 30; i++) {
    t.mock.timers.tick(100);
    await settled();
  }
  assert.equal(asked(), "get,get,set,get,set", "what the batch waited for is done");
  assert.ok((await store.get("shared")).snapshot.startsWith(breaker.snapshot()), "with the mark of the batch behind it");
});
