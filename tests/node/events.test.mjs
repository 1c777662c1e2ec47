// What is told, to whom, and that nobody who listens can hurt a call.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, CircuitRegistry, memoryStore } from "tripcurve";
import { fakeClock, faultyStore } from "tripcurve/testing";
import { B0, deferred, fixture, outcomeOf, reported, ticks, unhandled } from "./help.mjs";

test("a transition tells what decided it", async () => {
  const { breaker, fail, succeed, clock } = fixture();
  const told = [];
  breaker.on("transition", (detail) => told.push(detail));
  await succeed();
  clock.set(5);
  await fail(3);
  assert.deepEqual(told, [
    {
      key: "test.circuit",
      from: "closed",
      to: "open",
      reason: "failure_rate",
      at: 5,
      generation: breaker.inspect().generation,
      counts: { calls: 4, failures: 3, slow: 0 },
      until: 1_005,
    },
  ]);
});

const reasons = [
  ["failure_count", { failures: 1, failureRate: null }, async ({ fail }) => fail()],
  ["slow_rate", { slowMs: 1, minimumCalls: 1 }, async ({ breaker, clock }) => breaker.run(() => clock.advance(5))],
  ["open_elapsed", {}, async ({ breaker, clock }) => { breaker.force("open"); clock.set(1_000); await breaker.admit(); }],
  ["probe_failed", {}, async ({ breaker, fail }) => { breaker.force("half_open"); await fail(); }],
  ["probe_slow", { slowMs: 1 }, async ({ breaker, clock }) => { breaker.force("half_open"); await breaker.run(() => clock.advance(5)); }],
  ["probes_succeeded", {}, async ({ breaker, succeed }) => { breaker.force("half_open"); await succeed(); }],
  ["forced", {}, async ({ breaker }) => breaker.force("open", 5_000)],
  ["held", {}, async ({ breaker }) => breaker.hold("open")],
  ["released", {}, async ({ breaker }) => { breaker.hold("open"); breaker.release(); }],
  ["reset", {}, async ({ breaker }) => { breaker.force("open"); breaker.reset(); }],
];
for (const [reason, policy, make] of reasons) {
  test(`the reason ${reason} is told`, async () => {
    const all = fixture(policy);
    const told = [];
    all.breaker.on("transition", (detail) => told.push(detail.reason));
    await make(all);
    assert.equal(told.at(-1), reason);
  });
}

test("refusals and outcomes are told, on the quick way as well once somebody listens", async () => {
  const { breaker, open, clock } = fixture();
  const told = [];
  await breaker.run(() => "before");
  const stop = breaker.on("outcome", (detail) => told.push(detail));
  breaker.on("rejected", (detail) => told.push(detail));
  await breaker.run(() => clock.advance(3));
  assert.deepEqual(told, [{ key: "test.circuit", verdict: "success", durationMs: 3, probe: false, stale: false, fallback: false, at: 3 }]);
  stop();
  await open();
  told.length = 0;
  await outcomeOf(breaker.run(() => 1));
  assert.deepEqual(told, [{ key: "test.circuit", reason: "open", retryAt: 1_003, shadow: false, fallback: false, at: 3 }]);
});

test("a listener is not asked twice, nor after it stopped, nor after its signal aborted", async () => {
  const { breaker } = fixture();
  const controller = new AbortController();
  const heard = [];
  const same = () => heard.push("same");
  const stop = [breaker.on("transition", same), breaker.on("transition", same)];
  breaker.on("transition", () => heard.push("signal"), { signal: controller.signal });
  breaker.on("transition", () => heard.push("never"), { signal: AbortSignal.abort() });
  breaker.force("open");
  assert.deepEqual(heard.splice(0), ["same", "same", "signal"]);
  controller.abort();
  stop[0]();
  stop[0]();
  breaker.reset();
  assert.deepEqual(heard, ["same"]);
});

test("a listener that is taken away by another one is not asked any more, one that is added hears the next", () => {
  const { breaker } = fixture();
  const heard = [];
  let stop;
  breaker.on("transition", () => {
    stop();
    breaker.on("transition", () => heard.push("added"));
  });
  stop = breaker.on("transition", () => heard.push("taken"));
  breaker.force("open");
  assert.deepEqual(heard, []);
  breaker.reset();
  assert.deepEqual(heard, ["added"]);
});

test("unknown events and what is no function are refused", () => {
  const { breaker } = fixture();
  assert.throws(() => breaker.on("open", () => {}), { code: "ERR_INVALID_CIRCUIT", field: "event" });
  assert.throws(() => breaker.on("toString", () => {}), { code: "ERR_INVALID_CIRCUIT" });
  assert.throws(() => breaker.on("transition", 5), TypeError);
});

test("listeners that throw or reject change nothing, are reported, and the others still hear (R14)", async () => {
  const { breaker, clock } = fixture({ minimumCalls: 2 });
  const heard = [];
  const errors = new Set();
  const raise = () => {
    const error = new Error("listener");
    errors.add(error);
    throw error;
  };
  for (const event of ["transition", "rejected", "outcome"]) {
    breaker.on(event, raise);
    breaker.on(event, async () => raise());
    breaker.on(event, (detail) => heard.push(event, detail.at));
  }
  const error = new Error("own");
  let faults;
  const seen = await unhandled(async () => {
    faults = await reported(async () => {
      assert.equal(await breaker.run(() => "value"), "value");
      assert.equal((await outcomeOf(breaker.run(() => Promise.reject(error)))).error, error);
      assert.equal((await outcomeOf(breaker.run(() => "refused"))).error.code, "ERR_CIRCUIT_OPEN");
    });
  });
  assert.deepEqual(seen, []);
  assert.deepEqual(heard, ["outcome", 0, "outcome", 0, "transition", 0, "rejected", 0]);
  assert.equal(faults.length, 8);
  assert.deepEqual(new Set(faults), errors);
  assert.equal(breaker.state, "open");
  void clock;
});

test("state is committed before it is told", async () => {
  const { breaker, open } = fixture();
  breaker.on("transition", ({ to }) => assert.equal(breaker.state, to));
  const faults = await reported(open);
  assert.deepEqual(faults, []);
});

test("a verb from a listener waits until the event has been told to everybody (R08)", async () => {
  const { breaker, open } = fixture();
  const seen = [];
  breaker.on("transition", ({ to }) => {
    if (to === "open") breaker.force("closed");
    seen.push(`first ${to} ${breaker.state}`);
  });
  breaker.on("transition", ({ to }) => seen.push(`second ${to} ${breaker.state}`));
  await open();
  assert.deepEqual(seen, ["first open open", "second open open", "first closed closed", "second closed closed"]);
});

test("verbs from one listener are applied in order", () => {
  const { breaker, moves } = fixture();
  const stop = breaker.on("transition", () => {
    stop();
    breaker.reset();
    breaker.hold("open");
    breaker.release();
    breaker.record("failure");
  });
  breaker.force("open");
  assert.deepEqual(moves, ["closed open forced", "open closed reset", "closed open held", "open closed released"]);
  assert.equal(breaker.inspect().counts.failures, 1);
});

// R08: everything may be called from everywhere.
const everything = (breaker) => {
  breaker.snapshot();
  void breaker.state;
  breaker.inspect();
  breaker.run(() => 1).catch(() => {});
  breaker.admit().then((admission) => admission.settle?.("ignored"));
  breaker.record("ignored");
  breaker.hold("closed");
  breaker.release();
  breaker.restore(breaker.snapshot());
};
for (const place of ["a transition listener", "an outcome listener", "a rejected listener", "a classifier", "a clock", "a store", "a fallback", "the function"]) {
  test(`${place} may call everything (R08)`, async () => {
    let breaker;
    let calls = 0;
    const call = () => {
      if (breaker && calls++ < 50) everything(breaker);
    };
    const clock = fakeClock();
    const options = { clock };
    if (place === "a clock") options.clock = () => (call(), clock());
    if (place === "a classifier") options.classify = () => void call();
    if (place === "a store") options.store = { consistency: "last_write", get: () => (call(), null), set: () => (call(), { ok: true }) };
    breaker = new CircuitBreaker("test.circuit", B0, options);
    if (place === "a transition listener") breaker.on("transition", call);
    if (place === "an outcome listener") breaker.on("outcome", call);
    if (place === "a rejected listener") breaker.on("rejected", call);
    const faults = await reported(async () => {
      assert.equal(await breaker.run(() => (place === "the function" && call(), "value")), "value");
      breaker.force("open");
      await outcomeOf(breaker.run(() => 1, place === "a fallback" ? { fallback: call } : {}));
      clock.advance(1_000);
      await outcomeOf(breaker.run(() => 1));
    });
    assert.deepEqual(faults, []);
    assert.ok(calls > 0);
    breaker.reset();
    assert.equal(breaker.state, "closed");
  });
}

test("dispose from a listener waits for its turn", () => {
  const { breaker, moves } = fixture();
  breaker.on("transition", () => {
    breaker.dispose();
    assert.equal(breaker.state, "open");
  });
  breaker.on("transition", () => assert.equal(breaker.state, "open"));
  breaker.force("open");
  assert.deepEqual(moves, ["closed open forced"]);
  assert.throws(() => breaker.force("open"), { code: "ERR_CIRCUIT_DISPOSED" });
});

test("a permit given back in a listener counts after the step", async () => {
  const { breaker } = fixture();
  const permit = await breaker.admit();
  breaker.hold("closed");
  const held = await breaker.admit();
  breaker.on("transition", () => held.settle("failure"));
  breaker.release();
  permit.settle("failure");
  assert.equal(breaker.inspect().counts.calls, 0);
});

test("a call in flight when somebody begins to listen reaches its caller", async () => {
  const { breaker } = fixture();
  const call = deferred();
  const running = breaker.run(() => call.promise);
  breaker.on("outcome", () => {});
  call.resolve("fine");
  assert.equal(await running, "fine");
  assert.equal(breaker.inspect().counts.calls, 1);
});

test("a call is told when it is let in, when it ends, and what answered in its place, in order", async () => {
  const { breaker, clock } = fixture({ minimumCalls: 1 });
  const told = [];
  for (const event of ["admitted", "outcome", "transition", "state", "rejected", "fallback"]) breaker.on(event, (detail) => told.push([event, detail]));
  const say = () =>
    told.splice(0).map(([event, { state, probe, verdict, reason, fallback, after, error }]) =>
      [event, state ?? verdict ?? reason ?? after, probe && "probe", fallback && "fallback", error?.message].filter(Boolean).join(" "),
    );
  assert.deepEqual(say(), ["state closed"], "what holds is told at once");
  const down = () => Promise.reject(new Error("down"));
  await breaker.run(down, { fallback: () => "instead", fallbackOn: "failure" });
  assert.deepEqual(say(), ["admitted closed", "outcome failure fallback down", "transition failure_rate", "state open", "fallback failure"]);
  await breaker.run(down, { fallback: () => Promise.reject(new Error("too")) }).catch(() => {});
  assert.deepEqual(say(), ["rejected open fallback", "fallback refusal too"]);
  await outcomeOf(breaker.run(down));
  assert.deepEqual(say(), ["rejected open"]);
  clock.advance(1_000);
  await breaker.run(() => 1);
  assert.deepEqual(say(), ["transition open_elapsed", "state half_open", "admitted half_open probe", "outcome success probe", "transition probes_succeeded", "state closed"]);
});

test("a permit is told like a call, and so is a call that gave up before it ran", async () => {
  const { breaker } = fixture();
  const told = [];
  for (const event of ["admitted", "outcome"]) breaker.on(event, ({ verdict, error }) => told.push([event, verdict, error]));
  const permit = await breaker.admit();
  permit.settle("failure");
  permit.settle("success");
  assert.deepEqual(told, [["admitted", undefined, undefined], ["outcome", "failure", undefined]]);
});

test("the state of a registry: of every circuit at once, of each new one, after every move", async () => {
  const registry = new CircuitRegistry(B0, { clock: fakeClock() });
  registry.get("one");
  registry.get("two");
  const told = [];
  const stop = registry.on("state", ({ key, state }) => told.push(`${key} ${state}`));
  registry.on("state", () => told.push("never"), { signal: AbortSignal.abort() });
  assert.deepEqual(told.splice(0), ["one closed", "two closed"]);
  registry.get("three").force("open");
  registry.get("three");
  assert.deepEqual(told.splice(0), ["three closed", "three open"]);
  stop();
  registry.get("four");
  assert.deepEqual(told, []);
});

test("a listener to what holds that throws at once is reported, and heard again", async () => {
  const { breaker } = fixture();
  let times = 0;
  const faults = await reported(() => {
    breaker.on("state", () => {
      throw new Error(`time ${++times}`);
    });
    breaker.force("open");
  });
  assert.deepEqual(faults.map(({ message }) => message), ["time 1", "time 2"]);
});

test("operations of the store are told with how long they took, failures each time, an outage once", async () => {
  const clock = fakeClock(1_000_000);
  const inner = memoryStore();
  let down = false;
  const via = (name) => async (...given) => {
    clock.advance(7);
    if (down) throw new Error("gone");
    return inner[name](...given);
  };
  const breaker = new CircuitBreaker("test.circuit", B0, { clock, store: { consistency: "atomic", get: via("get"), set: via("set") }, refreshMs: 1_000 });
  const told = [];
  for (const event of ["store_operation", "store_error", "diagnostic"]) {
    breaker.on(event, ({ operation, durationMs, ok, error, code }) => told.push([event, operation ?? code, durationMs, ok ?? error?.message].filter((part) => part !== undefined).join(" ")));
  }
  await breaker.run(() => 1);
  assert.deepEqual(told.splice(0), ["store_operation get 7 true"]);
  breaker.force("open");
  await ticks();
  assert.deepEqual(told.splice(0), ["store_operation get 7 true", "store_operation set 7 true"]);
  down = true;
  breaker.reset();
  await ticks();
  assert.deepEqual(told.splice(0), ["store_operation get 7 false", "store_error get gone", "diagnostic store_failed"]);
  clock.advance(2_000);
  await breaker.run(() => 1);
  await breaker.flush();
  assert.equal(told.filter((line) => line === "store_error get gone").length, told.filter((line) => line === "store_operation get 7 false").length);
  assert.ok(told.length > 0 && !told.includes("diagnostic store_failed"), told.join());
});

test("a call that is told to get a fallback is told how that ended, also where a store error comes before it", async () => {
  const store = faultyStore(memoryStore());
  const breaker = new CircuitBreaker("test.circuit", { ...B0, minimumCalls: 1 }, { store, onStoreError: "throw", clock: fakeClock(1_000) });
  const told = [];
  for (const event of ["outcome", "rejected", "fallback"]) breaker.on(event, ({ fallback, after, error }) => told.push([event, fallback ?? after, error?.name ?? "none"]));
  await breaker.run(() => 1);
  store.down = true;
  const { error } = await outcomeOf(breaker.run(() => Promise.reject(new TypeError("down")), { fallback: () => "instead", fallbackOn: "failure" }));
  assert.equal(error.code, "ERR_CIRCUIT_STORE");
  assert.deepEqual(told.splice(0), [["outcome", false, "none"], ["outcome", true, "TypeError"], ["fallback", "failure", "StoreError"]]);
  const again = () => breaker.run(() => 1, { fallback: again });
  await outcomeOf(again());
  const count = (event) => told.filter(([one]) => one === event).length;
  assert.ok(count("rejected") > 10);
  assert.equal(count("fallback"), count("rejected"));
});

test("a fallback for failures also answers where store errors are to be thrown", async () => {
  const breaker = new CircuitBreaker("test.circuit", B0, { store: memoryStore(), onStoreError: "throw" });
  assert.equal(await breaker.run(() => Promise.reject(new Error("down")), { fallback: ({ message }) => `instead of ${message}`, fallbackOn: "failure" }), "instead of down");
});
