// Workers KV with what the simulator lacks: stale copies, cached misses, one write a second (reports R10 and R15).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CircuitBreaker } from "tripcurve";
import { kvStore } from "tripcurve/stores/kv";
import { fakeClock, storeContract } from "tripcurve/testing";
import { B0, outcomeOf, repeat, ticks } from "./help.mjs";
import { LaggyKv } from "./laggy-kv.mjs";

const T = 1_700_000_000_000;
const KEY = "tripcurve:http.shop";
const DAY = 86_400_000;
const down = () => Promise.reject(new Error("down"));
const settled = () => ticks(50);

function world(clock = fakeClock(T)) {
  const kv = new LaggyKv(clock);
  return {
    ...{ clock, kv },
    stored: () => kv.value(KEY),
    isolate({ place = "here", policy = {}, ...options } = {}) {
      const breaker = new CircuitBreaker("http.shop", { ...B0, ...policy }, { clock, store: kvStore(kv.at(place)), ...options });
      const moves = [];
      const told = [];
      breaker.on("transition", ({ to, reason }) => moves.push(`${to} ${reason}`));
      breaker.on("diagnostic", ({ code, cause }) => told.push(`${code} ${cause?.message}`));
      const call = (work = () => "fine") => outcomeOf(breaker.run(work)).then(({ value, error }) => value ?? error.code ?? error.message);
      const fail = async (times = 4) => {
        await repeat(times, () => call(down));
        await settled();
      };
      return { breaker, moves, told, call, fail };
    },
  };
}

// At once: each check uses keys of its own, and waits for the second of each.
describe("what every store promises, in one place", { concurrency: true }, () => {
  for (const { name, run } of storeContract(() => kvStore(new LaggyKv(Date.now).at("here")))) test(name, run);
});

/** A hundred calls in a second; the service fails three times meanwhile. */
async function restless({ call }, pass) {
  for (let i = 0; i < 100; i++) {
    const answer = await call(() => (i % 33 < 8 ? down() : "fine"));
    assert.ok(["fine", "down", "ERR_CIRCUIT_OPEN"].includes(answer), answer);
    await ticks(20);
    pass(10);
  }
}
const OFTEN = { openMs: 100, minimumCalls: 2, failures: 2, failureRate: undefined, window: { kind: "consecutive" } };

test("a circuit that opens and closes all the time writes once a second, and the last write holds the final state (R10 a)", async () => {
  const { clock, kv, stored, isolate } = world();
  const here = isolate({ policy: OFTEN });
  await restless(here, clock.advance);
  assert.ok(here.moves.filter((move) => move === "closed probes_succeeded").length >= 2, here.moves.join());
  assert.ok(kv.puts.length <= 2, `${kv.puts.length} writes for ${here.moves.length} moves`);
  clock.advance(1_000);
  await here.call();
  await settled();
  assert.equal(stored(), here.breaker.snapshot());
  assert.deepEqual([kv.refused, here.told], [[], []]);
});

test("with waitUntil the last write comes by itself when its second is over (R10 a)", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: T });
  const { kv, stored, isolate } = world(() => Date.now());
  let kept = 0;
  const here = isolate({ policy: OFTEN, waitUntil: (work) => (kept++, work.finally(() => kept--)) });
  await restless(here, (ms) => t.mock.timers.tick(ms));
  for (let left = 100; left > 0 && kept > 0; left--) {
    t.mock.timers.tick(100);
    await settled();
  }
  assert.equal(kept, 0, "nothing is kept alive for long");
  assert.equal(stored(), here.breaker.snapshot());
  assert.deepEqual([kv.refused, here.told], [[], []]);
  for (let i = 1; i < kv.puts.length; i++) assert.ok(kv.puts[i].at - kv.puts[i - 1].at >= 1_000);
});

test("while the last write waits for its second, calls ask KV for nothing", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: T });
  const { kv, stored, isolate } = world(() => Date.now());
  const works = [];
  const here = isolate({ policy: { openMs: 60_000 }, waitUntil: (work) => works.push(work) });
  here.breaker.force("open");
  await settled();
  here.breaker.reset();
  for (let i = 0; i < 90; i++) {
    t.mock.timers.tick(10);
    assert.equal(await here.call(), "fine");
    await ticks(20);
  }
  const before = [kv.gets.length, works.length];
  for (let i = 0; i < 10; i++) {
    t.mock.timers.tick(100);
    await settled();
  }
  assert.equal(stored(), here.breaker.snapshot());
  assert.deepEqual([before, kv.gets.length, kv.puts.length], [[1, 2], 2, 2]);
});

test("without waitUntil it comes with the next call, or with flush", async () => {
  for (const next of ["call", "flush"]) {
    const { clock, kv, stored, isolate } = world();
    const here = isolate({ policy: { openMs: 60_000 } });
    here.breaker.force("open");
    await settled();
    here.breaker.reset();
    await settled();
    assert.equal(kv.puts.length, 1);
    clock.advance(1_000);
    await (next === "call" ? here.call() : here.breaker.flush());
    await settled();
    assert.equal(stored(), here.breaker.snapshot(), next);
  }
});

test("a write that another place made impossible (429) is made later, and no call hears of it", async () => {
  const { clock, kv, stored, isolate } = world();
  const [here, there] = [isolate(), isolate({ place: "there", policy: { openMs: 60_000 } })];
  here.breaker.reset();
  await settled();
  clock.advance(10);
  await repeat(4, async () => assert.equal(await there.call(down), "down"));
  await settled();
  assert.deepEqual([kv.refused.length, there.told.length], [1, 1]);
  clock.advance(2_000);
  assert.equal(await there.call(), "ERR_CIRCUIT_OPEN");
  await settled();
  assert.equal(stored(), there.breaker.snapshot());
});

test("KV is told a time to live that it accepts and that outlasts the circuit's own (R10 b, R15)", async () => {
  for (const openMs of [1, 1_000, 59_000, 600_000, 7_200_000, 30 * DAY]) {
    const { kv, isolate } = world();
    await isolate({ policy: { openMs, maxOpenMs: Math.max(openMs, 300_000) } }).fail();
    const [{ expirationTtl }] = kv.puts;
    assert.ok(Number.isInteger(expirationTtl) && expirationTtl >= 60, `${expirationTtl} s`);
    assert.ok(expirationTtl * 1_000 >= openMs + B0.probeLeaseMs, `${expirationTtl} s for ${openMs} ms`);
  }
});

test("a Retry-After of two hours is outlasted as well (R15)", async () => {
  const { kv, isolate } = world();
  const classify = () => ({ verdict: "failure", retryAt: T + 7_200_000 });
  await isolate({ policy: { maxOpenMs: DAY }, classify }).fail();
  assert.ok(kv.puts[0].expirationTtl * 1_000 >= 7_200_000 + B0.probeLeaseMs, `${kv.puts[0].expirationTtl} s`);
});

test("a circuit that opens again is stored for its new time (R15)", async () => {
  const { clock, kv, stored, isolate } = world();
  const here = isolate({ policy: { openMs: 60_000, backoff: 10, maxOpenMs: DAY } });
  await here.fail();
  clock.advance(60_000);
  await here.fail(1);
  assert.ok(kv.puts.at(-1).expirationTtl >= 600, `${kv.puts.at(-1).expirationTtl} s`);
  clock.advance(599_999);
  assert.ok(stored());
  assert.equal(await isolate({ place: "there" }).call(), "ERR_CIRCUIT_OPEN");
});

test("a record that is gone before its time is forgotten by nobody who knew it: at its end comes a probe (R15)", async () => {
  const { clock, kv, isolate } = world();
  const policy = { openMs: 600_000, maxOpenMs: 600_000 };
  const here = isolate({ policy });
  await here.fail();
  const there = isolate({ place: "there", policy });
  assert.equal(await there.call(), "ERR_CIRCUIT_OPEN");
  clock.advance(599_999);
  kv.lose(KEY);
  for (const knows of [here, there]) assert.equal(await knows.call(), "ERR_CIRCUIT_OPEN");
  clock.advance(1);
  for (const knows of [here, there]) {
    assert.equal(knows.breaker.state, "half_open");
    assert.equal(await knows.call(), "fine");
    assert.equal(knows.breaker.state, "closed");
  }
});

test("an isolate that finds no record is closed, and judges anew (R15)", async () => {
  const { clock, kv, isolate } = world();
  await isolate({ policy: { openMs: 600_000, maxOpenMs: 600_000 } }).fail();
  clock.advance(599_999);
  kv.lose(KEY);
  const fresh = isolate({ place: "there" });
  assert.equal(await fresh.call(), "fine");
  await fresh.fail(3);
  assert.equal(fresh.breaker.state, "open");
});

test("an older closed record is ignored by who is open, and is replaced (R10 c)", async () => {
  const { clock, kv, stored, isolate } = world();
  const policy = { openMs: 300_000 };
  const there = isolate({ place: "there", policy });
  there.breaker.reset();
  await settled();
  const old = stored();
  clock.advance(5_000);
  const here = isolate({ policy });
  await here.fail();
  await kv.at("elsewhere").put(KEY, old, { expirationTtl: 600 }).catch(() => {});
  clock.advance(1_000);
  await kv.at("elsewhere").put(KEY, old, { expirationTtl: 600 });
  for (let i = 0; i < 30; i++) {
    clock.advance(5_000);
    assert.equal(await here.call(), "ERR_CIRCUIT_OPEN");
    await settled();
  }
  assert.deepEqual(here.moves, ["open failure_rate"]);
  assert.equal(await isolate({ place: "new" }).call(), "ERR_CIRCUIT_OPEN", "whoever comes next finds the open one");
});

test("a place that has cached that there is nothing learns of an outage when its copy is a minute old", async () => {
  const { clock, isolate } = world();
  const policy = { openMs: 300_000 };
  const there = isolate({ place: "there", policy });
  assert.equal(await there.call(), "fine");
  await isolate({ policy }).fail();
  let learnt;
  for (let second = 1; second <= 180 && !learnt; second++) {
    clock.advance(1_000);
    if ((await there.call()) === "ERR_CIRCUIT_OPEN") learnt = second;
    await settled();
  }
  assert.ok(learnt > 1 && learnt <= 121, `after ${learnt} s`);
  assert.deepEqual(there.moves, ["open adopted"]);
});

test("a stale open record does not bring an outage back that is over", async () => {
  const { clock, kv, isolate } = world();
  const policy = { openMs: 30_000 };
  const here = isolate({ policy });
  await here.fail();
  const there = isolate({ place: "there", policy });
  assert.equal(await there.call(), "ERR_CIRCUIT_OPEN");
  clock.advance(30_000);
  assert.equal(await here.call(), "fine");
  await settled();
  const late = isolate({ place: "there", policy }); // with the copy that was made while it was open
  assert.equal(await late.call(), "fine", "at its end a stale record allows a probe");
  await settled();
  for (let i = 0; i < 30; i++) {
    clock.advance(5_000);
    for (const isolate of [here, there, late]) assert.equal(await isolate.call(), "fine");
    await settled();
  }
  assert.ok(kv.puts.length <= 4, `${kv.puts.length} writes`);
  assert.deepEqual(here.moves, ["open failure_rate", "half_open open_elapsed", "closed probes_succeeded"]);
});

test("a healthy circuit reads KV once a minute in the background and never writes", async () => {
  const { clock, kv, isolate } = world();
  const here = isolate();
  for (let i = 0; i < 1_000; i++) {
    assert.equal(await here.call(), "fine");
    await ticks(20);
    clock.advance(300);
  }
  assert.deepEqual(kv.gets.map(({ at }) => Math.floor((at - T) / 60_000)), [0, 1, 2, 3, 4]);
  assert.deepEqual(kv.puts, []);
});
