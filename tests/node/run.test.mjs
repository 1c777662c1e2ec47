import assert from "node:assert/strict";
import test from "node:test";
import vm from "node:vm";
import { CircuitOpenError, isCircuitOpenError } from "tripcurve";
import { deferred, fixture, outcomeOf, repeat, reported, ticks, unhandled } from "./help.mjs";

// Every case is run on the quick way and, with an option that changes nothing, on the full one.
const ways = { "without options": undefined, "with options": { waitUntil: () => {} } };

for (const [way, options] of Object.entries(ways)) {
  const counts = (breaker) => breaker.inspect().counts;

  const values = { "a number": 5, undefined: undefined, null: null, "a function": () => {}, "an object": { then: 5 } };
  for (const [name, value] of Object.entries(values)) {
    test(`${name} answered at once is a success (${way}, R27)`, async () => {
      const { breaker } = fixture();
      const promise = breaker.run(() => value, options);
      assert.ok(promise instanceof Promise);
      assert.equal(await promise, value);
      assert.deepEqual(counts(breaker), { calls: 1, failures: 0, slow: 0 });
    });
  }

  const foreign = vm.runInNewContext("Promise.resolve(7)");
  const thenables = {
    "a promise": [Promise.resolve(7), { value: 7 }],
    "a promise of another realm": [foreign, { value: 7 }],
    "a thenable that answers twice": [{ then: (yes) => (yes(7), yes(8)) }, { value: 7 }],
    "a thenable that resolves and then throws": [{ then: (yes) => { yes(7); throw new Error("late"); } }, { value: 7 }],
    "a thenable that throws": [{ then: () => { throw "x"; } }, { error: "x" }],
    "a thenable whose getter throws": [{ get then() { throw "y"; } }, { error: "y" }],
    "a subclass of Promise": [(class extends Promise {}).resolve(7), { value: 7 }],
  };
  for (const [name, [thenable, expected]] of Object.entries(thenables)) {
    test(`${name} is one outcome (${way}, R27)`, async () => {
      const { breaker } = fixture();
      assert.deepEqual(await outcomeOf(breaker.run(() => thenable, options)), expected);
      await ticks();
      assert.deepEqual(counts(breaker), { calls: 1, failures: "error" in expected ? 1 : 0, slow: 0 });
    });
  }

  const reasons = { undefined: undefined, null: null, zero: 0, "a string": "x", "a frozen object": Object.freeze({}), "an error": new Error("e"), "an error of another realm": vm.runInNewContext("new Error('z')") };
  for (const [name, reason] of Object.entries(reasons)) {
    test(`${name} as reason comes back as it was and is a failure (${way}, R27)`, async () => {
      const { breaker } = fixture();
      for (const fn of [() => Promise.reject(reason), () => { throw reason; }]) {
        const { error } = await outcomeOf(breaker.run(fn, options));
        assert.equal(error, reason);
      }
      assert.deepEqual(counts(breaker), { calls: 2, failures: 2, slow: 0 });
      if (reason instanceof Error) assert.deepEqual(Object.getOwnPropertyNames(reason).sort(), ["message", "stack"]);
    });
  }

  test(`a throw at once gives a rejected promise (${way}, R27)`, () => {
    const { breaker } = fixture();
    const promise = breaker.run(() => { throw new Error("sync"); }, options);
    return assert.rejects(promise, { message: "sync" });
  });

  test(`what is no function is a TypeError before admission and counts nowhere (${way}, R27)`, async () => {
    const { breaker, open } = fixture();
    await assert.rejects(breaker.run("x", options), TypeError);
    assert.equal(counts(breaker).calls, 0);
    await open();
    await assert.rejects(breaker.run(undefined, options), TypeError);
    assert.equal(breaker.inspect().rejected, 0);
  });

  test(`a rejection that nobody awaits is the host's to see, once (${way})`, async () => {
    const { breaker } = fixture();
    const reason = new Error("nobody");
    const seen = await unhandled(() => void breaker.run(() => Promise.reject(reason), options));
    assert.deepEqual(seen, [reason]);
  });

  test(`the function is given no signal and no arguments of ours (${way})`, async () => {
    const { breaker } = fixture();
    assert.equal(await breaker.run((signal) => signal, options), undefined);
  });

  test(`a call that ends its own generation is not counted in the next (${way}, R04)`, async () => {
    const { breaker } = fixture();
    await outcomeOf(breaker.run(() => { breaker.reset(); throw new Error("old"); }, options));
    assert.deepEqual(counts(breaker), { calls: 0, failures: 0, slow: 0 });
  });
}

test("a refused call runs nothing and says until when", async () => {
  const { breaker, open, clock } = fixture();
  const down = new Error("down");
  await repeat(3, () => breaker.run(() => { throw new Error("earlier"); }).catch(() => {}));
  await breaker.run(() => Promise.reject(down)).catch(() => {});
  let ran = false;
  const { error } = await outcomeOf(breaker.run(() => (ran = true)));
  assert.equal(ran, false);
  assert.ok(error instanceof CircuitOpenError && error instanceof Error);
  assert.equal(error.name, "CircuitOpenError");
  assert.equal(error.message, "Circuit test.circuit is open since 1970-01-01T00:00:00Z: 4 of 4 calls in the last 10 s failed, limit 50 %; next probe at 1970-01-01T00:00:01Z");
  assert.deepEqual(
    { code: error.code, key: error.key, state: error.state, reason: error.reason, retryAt: error.retryAt },
    { code: "ERR_CIRCUIT_OPEN", key: "test.circuit", state: "open", reason: "open", retryAt: 1_000 },
  );
  assert.equal(error.cause, down);
  clock.advance(400);
  assert.equal(error.retryAfterMs, 600);
  clock.advance(4_000);
  assert.equal(error.retryAfterMs, 0);
  void open;
});

test("refused calls of one open period share one error, those of the next have another", async () => {
  const { breaker, open, clock, fail } = fixture();
  await open();
  const first = (await outcomeOf(breaker.run(() => 1))).error;
  clock.advance(500);
  assert.equal((await outcomeOf(breaker.run(() => 1))).error, first);
  assert.equal((await outcomeOf(breaker.run(() => 1, {}))).error, first);
  clock.advance(500);
  await fail();
  const second = (await outcomeOf(breaker.run(() => 1))).error;
  assert.notEqual(second, first);
  assert.equal(second.retryAt, 2_000);
});

test("refused calls that nobody awaits are still the host's to see", async () => {
  const { breaker, open } = fixture();
  await open();
  const seen = await unhandled(() => void breaker.run(() => 1));
  assert.equal(seen.length, 1);
  assert.ok(isCircuitOpenError(seen[0]));
});

test("a refusal costs no stack and leaves the host's stacks alone", async () => {
  const { breaker, open } = fixture();
  await open();
  const limit = Error.stackTraceLimit;
  const { error } = await outcomeOf(breaker.run(() => 1));
  assert.equal(error.stack, `CircuitOpenError: ${error.message}`);
  assert.equal(Error.stackTraceLimit, limit);
});

test("a busy probe refuses with a fresh error that names the end of the lease", async () => {
  const { breaker, open, clock } = fixture();
  await open();
  clock.set(1_000);
  const probe = deferred();
  const probing = breaker.run(() => probe.promise);
  const [one, two] = await Promise.all([outcomeOf(breaker.run(() => 1)), outcomeOf(breaker.run(() => 1))]);
  assert.notEqual(one.error, two.error);
  assert.deepEqual([one.error.reason, one.error.state, one.error.retryAt], ["probes_busy", "half_open", 6_000]);
  probe.resolve("up");
  assert.equal(await probing, "up");
  assert.equal(breaker.state, "closed");
});

test("a thousand calls in one tick start one probe (R22)", async () => {
  const { breaker, open, clock } = fixture();
  await open();
  clock.set(1_000);
  let started = 0;
  const calls = Array.from({ length: 1_000 }, () => outcomeOf(breaker.run(() => (started++, Promise.resolve()))));
  const results = await Promise.all(calls);
  assert.equal(started, 1);
  assert.equal(results.filter(({ error }) => error?.reason === "probes_busy").length, 999);
});

test("a held circuit says that nobody knows until when", async () => {
  const { breaker } = fixture();
  breaker.hold("open");
  const { error } = await outcomeOf(breaker.run(() => 1));
  assert.deepEqual([error.reason, error.retryAt, error.retryAfterMs], ["held_open", null, null]);
  assert.equal(error.message, "Circuit test.circuit is held open since 1970-01-01T00:00:00Z: by hand, until it is released");
});

test("an error of another copy or realm is known by its code", () => {
  assert.ok(isCircuitOpenError({ code: "ERR_CIRCUIT_OPEN" }));
  for (const other of [null, undefined, "ERR_CIRCUIT_OPEN", new Error("x"), { code: "ERR" }]) assert.equal(isCircuitOpenError(other), false);
});

// ---- signals and time-outs

const abortReasons = { none: [], "a string": ["gone"], null: [null], "a plain object": [{}], "an error": [new Error("x")], "a DOMException": [new DOMException("x", "AbortError")] };
for (const [name, args] of Object.entries(abortReasons)) {
  test(`a call its caller aborts is ignored, with ${name} as reason (R05)`, async () => {
    const { breaker } = fixture({ minimumCalls: 2 });
    for (let i = 0; i < 2; i++) {
      const controller = new AbortController();
      const call = outcomeOf(
        breaker.run((signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))), { signal: controller.signal }),
      );
      controller.abort(...args);
      assert.equal((await call).error, controller.signal.reason);
    }
    assert.deepEqual(breaker.inspect().counts, { calls: 0, failures: 0, slow: 0 });
  });
}

test("an AbortError is a failure while the caller's own signal has not fired (R05)", async () => {
  const { breaker } = fixture();
  const signal = new AbortController().signal;
  await outcomeOf(breaker.run(() => Promise.reject(new DOMException("x", "AbortError")), { signal }));
  await outcomeOf(breaker.run(() => Promise.reject(new DOMException("x", "AbortError"))));
  assert.equal(breaker.inspect().counts.failures, 2);
});

test("an aborted probe frees its slot and changes nothing else", async () => {
  const { breaker, open, clock } = fixture();
  await open();
  clock.set(1_000);
  const controller = new AbortController();
  const call = outcomeOf(breaker.run((signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))), { signal: controller.signal }));
  assert.equal(breaker.inspect().probesInFlight, 1);
  controller.abort();
  await call;
  assert.deepEqual([breaker.state, breaker.inspect().probesInFlight], ["half_open", 0]);
});

test("a deadline of the caller's is a failure (R24 b)", async () => {
  const { breaker } = fixture();
  const controller = new AbortController();
  const call = outcomeOf(breaker.run((signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))), { signal: controller.signal, timeoutMs: 60_000 }));
  const reason = new DOMException("too long", "TimeoutError");
  controller.abort(reason);
  assert.equal((await call).error, reason);
  assert.equal(breaker.inspect().counts.failures, 1);
});

test("a signal that had fired before runs nothing, also while open, and counts nowhere", async () => {
  const { breaker, open } = fixture();
  const reason = { why: "gone" };
  const run = () => outcomeOf(breaker.run(() => assert.fail("ran"), { signal: AbortSignal.abort(reason) }));
  assert.equal((await run()).error, reason);
  assert.equal(breaker.inspect().counts.calls, 0);
  await open();
  assert.equal((await run()).error, reason);
  assert.equal(breaker.inspect().rejected, 0);
});

test("a value counts although the caller's signal fired meanwhile", async () => {
  const { breaker } = fixture();
  const controller = new AbortController();
  assert.equal(await breaker.run(async () => (controller.abort(), "done"), { signal: controller.signal }), "done");
  assert.equal(breaker.inspect().counts.calls, 1);
});

test("a time-out aborts the signal given to the function and rejects with its reason (R24 a)", async () => {
  const { breaker } = fixture();
  let given;
  const { error } = await outcomeOf(breaker.run((signal) => ((given = signal), new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("own"))))), { timeoutMs: 5 }));
  assert.ok(error instanceof DOMException);
  assert.equal(error.name, "TimeoutError");
  assert.equal(given.reason, error);
  assert.deepEqual(breaker.inspect().counts, { calls: 1, failures: 1, slow: 0 });
});

test("a late value of a call that timed out is dropped, and so is a late error (R24 d)", async () => {
  const { breaker } = fixture();
  const [value, error] = [deferred(), deferred()];
  const seen = await unhandled(async () => {
    const calls = [value, error].map(({ promise }) => outcomeOf(breaker.run(() => promise, { timeoutMs: 2 })));
    for (const { error } of await Promise.all(calls)) assert.equal(error.name, "TimeoutError");
    value.resolve("late");
    error.reject(new Error("late"));
  });
  assert.deepEqual(seen, []);
  assert.deepEqual(breaker.inspect().counts, { calls: 2, failures: 2, slow: 0 });
});

test("an abort first and a time-out later are one outcome, the caller's (R24 c)", async () => {
  const { breaker } = fixture();
  const controller = new AbortController();
  const call = outcomeOf(breaker.run(() => new Promise(() => {}), { signal: controller.signal, timeoutMs: 10 }));
  controller.abort("mine");
  assert.equal((await call).error, "mine");
  assert.deepEqual(breaker.inspect().counts, { calls: 0, failures: 0, slow: 0 });
});

test("the merged signal follows the caller's after the call as well, for a body that is still read", async () => {
  const { breaker } = fixture();
  const controller = new AbortController();
  const signal = await breaker.run((signal) => signal, { signal: controller.signal, timeoutMs: 1_000 });
  assert.equal(signal.aborted, false);
  controller.abort("later");
  assert.equal(signal.reason, "later");
});

test("a timer ends with its call, and one beyond 2^31 ms does not fire at once (R26)", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const { breaker } = fixture();
  const before = timers();
  const call = deferred();
  const running = outcomeOf(breaker.run(() => call.promise, { timeoutMs: 2 ** 31 + 5 }));
  assert.equal(timers(), before + 1);
  await new Promise((resolve) => setTimeout(resolve, 10));
  call.resolve("fine");
  assert.deepEqual(await running, { value: "fine" });
  assert.equal(timers(), before);
});

for (const timeoutMs of [0, -1, NaN, Infinity, 0.5, "5", null]) {
  test(`timeoutMs ${timeoutMs} is refused before admission`, async () => {
    const { breaker } = fixture();
    await assert.rejects(breaker.run(() => 1, { timeoutMs }), { code: "ERR_INVALID_CIRCUIT", field: "timeoutMs" });
    assert.equal(breaker.inspect().counts.calls, 0);
  });
}

// ---- fallbacks and probes

test("a fallback answers for a refused call and is given the error", async () => {
  const { breaker, open } = fixture();
  await open();
  const got = [];
  const answer = (value) => breaker.run(() => assert.fail("ran"), { fallback: (error) => (got.push(error), value) });
  assert.equal(await answer("cached"), "cached");
  assert.equal(await answer(undefined), undefined);
  assert.equal(await answer(Promise.resolve("later")), "later");
  assert.equal(await answer({ then: (yes) => yes("thenable") }), "thenable");
  assert.equal(got[0].code, "ERR_CIRCUIT_OPEN");
  assert.equal(new Set(got).size, 1);
});

test("a fallback on failure is given the error; without being asked for it is not", async () => {
  const { breaker } = fixture();
  const error = new Error("down");
  const fail = () => Promise.reject(error);
  assert.equal(await breaker.run(fail, { fallback: (got) => got, fallbackOn: "failure" }), error);
  await assert.rejects(breaker.run(fail, { fallback: () => assert.fail("asked") }), error);
  assert.equal(breaker.inspect().counts.failures, 2);
});

test("a fallback never replaces a value, an ignored error or a caller's abort", async () => {
  const { breaker } = fixture();
  const options = { fallback: () => assert.fail("asked"), fallbackOn: "failure" };
  assert.equal(await breaker.run(() => "bad", { ...options, classify: () => "failure" }), "bad");
  await assert.rejects(breaker.run(() => { throw new Error("mine"); }, { ...options, classify: () => "ignored" }), { message: "mine" });
  const controller = new AbortController();
  await assert.rejects(breaker.run(async () => { controller.abort(); throw new Error("aborted"); }, { ...options, signal: controller.signal }), { message: "aborted" });
});

test("a fallback runs once for a call that times out (R39)", async () => {
  const { breaker } = fixture();
  let asked = 0;
  const late = deferred();
  const seen = await unhandled(async () => {
    assert.equal(await breaker.run(() => late.promise, { timeoutMs: 2, fallbackOn: "failure", fallback: () => ++asked }), 1);
    late.reject(new Error("late"));
  });
  assert.deepEqual(seen, []);
  assert.equal(breaker.inspect().counts.failures, 1);
});

test("what a fallback throws has the first error as cause, and counts nowhere (R39)", async () => {
  const { breaker, open } = fixture();
  await open();
  const rejectedBefore = breaker.inspect().rejected;
  for (const throwing of [(error) => { throw error; }, (error) => Promise.reject(error)]) {
    const own = new Error("fallback");
    const { error } = await outcomeOf(breaker.run(() => 1, { fallback: () => throwing(own) }));
    assert.equal(error, own);
    assert.equal(error.cause.code, "ERR_CIRCUIT_OPEN");
    const caused = new Error("caused", { cause: "other" });
    assert.equal((await outcomeOf(breaker.run(() => 1, { fallback: () => throwing(caused) }))).error.cause, "other");
    const frozen = Object.freeze(new Error("frozen"));
    assert.equal((await outcomeOf(breaker.run(() => 1, { fallback: () => throwing(frozen) }))).error, frozen);
    assert.equal((await outcomeOf(breaker.run(() => 1, { fallback: () => throwing("text") }))).error, "text");
    const same = await outcomeOf(breaker.run(() => 1, { fallback: (open) => throwing(open) }));
    assert.equal(same.error.code, "ERR_CIRCUIT_OPEN");
    assert.notEqual(same.error.cause, same.error);
  }
  assert.equal(breaker.inspect().rejected, rejectedBefore + 10);
});

test("a fallback that asks the same open circuit again ends in a refusal, not in a stack overflow (R39)", async () => {
  const { breaker, open } = fixture();
  await open();
  const again = () => breaker.run(() => 1, { fallback: again });
  assert.ok(isCircuitOpenError((await outcomeOf(again())).error));
});

test("a probe runs its own function when there is one", async () => {
  const { breaker, open, clock } = fixture();
  const run = () => breaker.run(() => "call", { probe: (signal) => `probe ${signal}` });
  assert.equal(await run(), "call");
  await open();
  clock.set(1_000);
  assert.equal(await run(), "probe undefined");
  assert.equal(await run(), "call");
});

// ---- classification

test("a value judged a failure is still returned, and can open the circuit", async () => {
  const { breaker } = fixture({ failures: 1, failureRate: null });
  const value = { status: 503 };
  assert.equal(await breaker.run(() => value, { classify: () => "failure" }), value);
  assert.equal(breaker.state, "open");
  assert.equal((await outcomeOf(breaker.run(() => 1))).error.cause, value);
});

test("the call's classifier is asked before the breaker's, and undefined leaves it to the next", async () => {
  const asked = [];
  const { breaker } = fixture({}, { classify: (result) => (asked.push(["breaker", result]), result.ok ? "ignored" : undefined) });
  await breaker.run(() => 1);
  await outcomeOf(breaker.run(() => { throw 2; }));
  await breaker.run(() => 3, { classify: (result) => (asked.push(["call", result]), undefined) });
  await breaker.run(() => 4, { classify: () => "failure" });
  assert.deepEqual(asked, [
    ["breaker", { ok: true, value: 1 }],
    ["breaker", { ok: false, error: 2 }],
    ["call", { ok: true, value: 3 }],
    ["breaker", { ok: true, value: 3 }],
  ]);
  assert.deepEqual(breaker.inspect().counts, { calls: 2, failures: 2, slow: 0 });
});

test("a classifier is told how long the call took", async () => {
  const { breaker, clock } = fixture();
  let took;
  await breaker.run(() => clock.advance(7), { classify: (_, ms) => void (took = ms) });
  assert.equal(took, 7);
});

for (const [name, classify] of Object.entries({
  "throws": () => { throw new Error("classifier"); },
  "gives nonsense": () => "banana",
  "is async by mistake": async () => "failure",
  "gives a negative duration": () => ({ verdict: "failure", durationMs: -1 }),
})) {
  test(`a classifier that ${name} makes the outcome ignored; the caller gets its own result (R14)`, async () => {
    const { breaker } = fixture();
    const diagnostics = [];
    breaker.on("diagnostic", (detail) => diagnostics.push(detail.code));
    const error = new Error("own");
    const faults = await reported(async () => {
      assert.equal(await breaker.run(() => "value", { classify }), "value");
      assert.equal((await outcomeOf(breaker.run(() => Promise.reject(error), { classify }))).error, error);
    });
    assert.deepEqual(breaker.inspect().counts, { calls: 0, failures: 0, slow: 0 });
    assert.equal(faults.length, 1);
    assert.deepEqual(diagnostics, ["classify_failed"]);
  });
}

test("an outcome's retryAt decides when an opened circuit may be probed, within maxOpenMs", async () => {
  for (const [retryAt, until] of [[5_000, 5_000], [500, 1_000], [1e9, 300_000], [null, 1_000]]) {
    const { breaker } = fixture({ failures: 1, failureRate: null });
    await breaker.run(() => 1, { classify: () => ({ verdict: "failure", retryAt }) });
    assert.equal(breaker.inspect().until, until);
  }
});

test("calls are measured where the policy has slowMs", async () => {
  const { breaker, clock } = fixture({ slowMs: 100, slowRate: 1, minimumCalls: 2, failureRate: null });
  await breaker.run(() => clock.advance(101));
  await breaker.run(() => clock.advance(100));
  assert.deepEqual([breaker.state, breaker.inspect().counts.slow], ["closed", 1]);
  await breaker.run(() => 1, { classify: () => ({ verdict: "success", durationMs: null }) });
  assert.equal(breaker.inspect().counts.slow, 1);
});

test("in shadow nothing is refused, and what would have been is told", async () => {
  const { breaker, open, clock } = fixture({ shadow: true });
  const told = [];
  breaker.on("rejected", ({ reason, shadow, retryAt }) => told.push({ reason, shadow, retryAt }));
  await open();
  assert.equal(breaker.state, "open");
  assert.equal(await breaker.run(() => "ran"), "ran");
  assert.deepEqual(told, [{ reason: "open", shadow: true, retryAt: 1_000 }]);
  clock.set(1_000);
  const probe = deferred();
  const probing = breaker.run(() => probe.promise);
  assert.equal(await breaker.run(() => "ran"), "ran");
  assert.equal(told[1].reason, "probes_busy");
  probe.resolve();
  await probing;
  assert.equal(breaker.state, "closed");
});

// ---- the two-step form

test("a permit is given back once", async () => {
  const { breaker } = fixture();
  const permit = await breaker.admit();
  assert.equal(permit.kind, "allowed");
  permit.settle("failure");
  permit.settle("failure");
  assert.deepEqual(breaker.inspect().counts, { calls: 1, failures: 1, slow: 0 });
});

test("a permit takes no nonsense, and is still good after it", async () => {
  const { breaker } = fixture();
  const permit = await breaker.admit();
  for (const outcome of ["banana", undefined, {}, { verdict: "failure", durationMs: -1 }, { verdict: "failure", retryAt: NaN }]) {
    assert.throws(() => permit.settle(outcome), { code: "ERR_INVALID_CIRCUIT" });
  }
  permit.settle({ verdict: "failure", durationMs: 3 });
  assert.equal(breaker.inspect().counts.failures, 1);
});

test("admit gives a probe, then a refusal with the end of the lease", async () => {
  const { breaker, open, clock } = fixture();
  await open();
  assert.deepEqual(await breaker.admit(), { kind: "rejected", reason: "open", retryAt: 1_000 });
  clock.set(1_000);
  const probe = await breaker.admit();
  assert.equal(probe.kind, "probe");
  assert.deepEqual(await breaker.admit(), { kind: "rejected", reason: "probes_busy", retryAt: 6_000 });
  probe.settle("success");
  assert.equal(breaker.state, "closed");
});

test("a permit measures from its admission unless it is told", async () => {
  const { breaker, clock } = fixture({ slowMs: 100 });
  const outcomes = [];
  breaker.on("outcome", ({ durationMs }) => outcomes.push(durationMs));
  for (const durationMs of [undefined, null, 5]) {
    const permit = await breaker.admit();
    clock.advance(200);
    permit.settle({ verdict: "success", durationMs });
  }
  assert.deepEqual(outcomes, [200, null, 5]);
  assert.equal(breaker.inspect().counts.slow, 1);
});

test("record judges without a permit, in whatever state the circuit is (phil)", async () => {
  const { breaker, clock } = fixture();
  for (let i = 0; i < 4; i++) breaker.record("failure");
  assert.equal(breaker.state, "open");
  clock.set(1_000);
  breaker.record("success");
  assert.equal(breaker.state, "closed");
  assert.throws(() => breaker.record("banana"), { field: "verdict" });
  assert.throws(() => breaker.record({ verdict: "success", durationMs: -5 }), { field: "durationMs" });
});

test("a success that opens the circuit opens it now, not when somebody last looked at the clock", async () => {
  const { breaker, clock, fail } = fixture({ window: { kind: "calls", last: 10 }, minimumCalls: 3, judgeOn: "any" });
  await fail(2);
  clock.set(500);
  await breaker.run(() => 1);
  assert.deepEqual([breaker.state, breaker.inspect().until], ["open", 1_500]);
});
