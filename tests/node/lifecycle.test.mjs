// Making, saving, restoring and giving up circuits; clocks that lie.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { CircuitBreaker, ready } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { B0, deferred, fixture, outcomeOf, reported } from "./help.mjs";

test("the module is there without being asked for", async () => {
  await ready();
  assert.equal(new CircuitBreaker("a").backend, process.execArgv.includes("--conditions=fastly") ? "js" : "wasm");
  await ready();
});

test("the import does no work: no module, no clock, no timer, no random number", () => {
  const script = `
    for (const name of ["Module", "Instance", "instantiate", "compile"]) WebAssembly[name] = () => { throw new Error(name) };
    Date.now = crypto.getRandomValues = globalThis.setTimeout = () => { throw new Error("worked at import") };
    globalThis.TextDecoder = globalThis.TextEncoder = globalThis.WeakRef = globalThis.FinalizationRegistry = undefined;
    await import("tripcurve"); await import("tripcurve/stores/local-storage"); await import("tripcurve/stores/kv"); await import("tripcurve/testing");`;
  execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: new URL("../..", import.meta.url) });
});

test("a program that opened a circuit ends: there is no timer (R38)", () => {
  const script = `
    import { CircuitBreaker } from "tripcurve";
    const breaker = new CircuitBreaker("a", { failures: 1, failureRate: null, openMs: 60_000 });
    await breaker.run(() => { throw 1 }).catch(() => {});
    await breaker.run(() => 1).catch(() => {});
    console.log(breaker.state, process.getActiveResourcesInfo().filter((name) => name === "Timeout").length);`;
  const out = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: new URL("../..", import.meta.url), encoding: "utf8", timeout: 20_000 });
  assert.equal(out, "open 0\n");
});

test("reading is pure: a due circuit reads half-open, and nothing is told (R38)", async () => {
  const { breaker, open, clock, moves } = fixture();
  await open();
  clock.set(999);
  assert.equal(breaker.state, "open");
  assert.equal(breaker.inspect(1_000).state, "half_open");
  clock.set(1_000);
  assert.equal(breaker.state, "half_open");
  assert.deepEqual([breaker.inspect().admits, breaker.inspect(999).admits], [true, false]);
  assert.equal(moves.length, 1);
  assert.equal(breaker.inspect().nextChangeAt, null);
  assert.equal(breaker.inspect(500).nextChangeAt, 1_000);
});

test("a held circuit is ended by command only, also after a restore (R38)", async () => {
  const { breaker, clock, moves } = fixture();
  const slow = deferred();
  const call = outcomeOf(breaker.run(() => slow.promise));
  breaker.hold("open");
  clock.set(1e9);
  slow.resolve();
  await call;
  assert.deepEqual([breaker.state, breaker.inspect().held, breaker.inspect().admits], ["open", "open", false]);
  const other = new CircuitBreaker("b", B0, { clock });
  other.restore(breaker.snapshot());
  assert.equal(other.inspect().held, "open");
  other.release();
  assert.deepEqual([other.state, other.inspect().held], ["closed", null]);
  breaker.force("closed");
  assert.equal(breaker.inspect().held, null);
  assert.deepEqual(moves, ["closed open held", "open closed forced"]);
  breaker.release();
  assert.equal(moves.length, 2);
});

test("openMs 0 is due at once and does not recurse (R38)", async () => {
  const { breaker, fail, succeed } = fixture({ openMs: 0 });
  breaker.on("transition", () => void breaker.run(() => 1).catch(() => {}));
  await fail(4);
  await fail();
  await succeed();
  assert.equal(breaker.state, "closed");
});

test("an open circuit restored elsewhere waits for what is left, at most openMs (R06)", async () => {
  for (const [at, expected] of [[25_000, 60_000], [-5_000 + 10_000, 60_000], [60_000, "probe"], [70_000, "probe"]]) {
    const clock = fakeClock();
    const policy = { ...B0, openMs: 60_000, maxOpenMs: 60_000 };
    const one = new CircuitBreaker("a", policy, { clock });
    one.force("open");
    clock.set(10_000);
    const text = one.snapshot();
    const two = new CircuitBreaker("a", policy, { clock });
    two.restore(text);
    assert.equal(two.snapshot(), text);
    clock.set(at);
    const admission = await two.admit();
    if (expected === "probe") assert.equal(admission.kind, "probe");
    else assert.equal(admission.retryAt, expected);
  }
});

test("a restored open circuit is capped by the new policy", async () => {
  const clock = fakeClock(1_000_000);
  const one = new CircuitBreaker("a", { ...B0, openMs: 200_000 }, { clock });
  one.force("open");
  const two = new CircuitBreaker("a", { ...B0, openMs: 20_000, maxOpenMs: 50_000 }, { clock });
  two.restore(one.snapshot());
  assert.equal((await two.admit()).retryAt, 1_050_000);
});

const hostile = {
  empty: "", brace: "{", "JSON null": "null", brackets: "[]", "a number": "5", "an unknown version": "999;C;;;;;;;;;", "lone surrogates": "\ud800\udfff",
  "a long text": "x".repeat(5_000_000), "polluting JSON": '{"__proto__":{"polluted":1}}', "no text": null, "an object": {}, "a cut text": "CUT",
};
for (const [name, text] of Object.entries(hostile)) {
  test(`restore of ${name} gives a fresh closed circuit and one diagnostic, quickly (R11)`, async () => {
    const { breaker, open } = fixture();
    const told = [];
    breaker.on("diagnostic", ({ code }) => told.push(code));
    await open();
    const given = text === "CUT" ? breaker.snapshot().slice(0, 7) : text;
    const began = performance.now();
    breaker.restore(given);
    assert.ok(performance.now() - began < 50);
    assert.equal(breaker.state, "closed");
    assert.equal(told.length, 1);
    assert.match(told[0], /^snapshot_(malformed|too_long|unknown_version)$/);
    assert.equal({}.polluted, undefined);
    assert.equal(await breaker.run(() => "goes on"), "goes on");
  });
}

test("a tally of another window is dropped, and told", async () => {
  const { breaker, fail } = fixture();
  await fail(2);
  const other = new CircuitBreaker("b", { window: { kind: "calls", last: 10 } }, { clock: fakeClock() });
  const told = [];
  other.on("diagnostic", ({ code }) => told.push(code));
  other.restore(breaker.snapshot());
  assert.deepEqual([other.inspect().counts.calls, told], [0, ["snapshot_other_window"]]);
});

test("a call in flight during a restore does not count in what was restored", async () => {
  const { breaker } = fixture();
  const slow = deferred();
  const call = outcomeOf(breaker.run(() => slow.promise));
  breaker.restore(breaker.snapshot());
  slow.reject("late");
  await call;
  assert.equal(breaker.inspect().counts.calls, 0);
});

test("what is stored holds no BigInt and survives JSON with the last instant there is (R35)", () => {
  const clock = fakeClock(2 ** 53 - 2);
  const breaker = new CircuitBreaker("a", B0, { clock });
  breaker.force("open");
  const text = JSON.parse(JSON.stringify({ text: breaker.snapshot(), inspection: breaker.inspect() }));
  assert.equal(text.inspection.until, 2 ** 53 - 1);
  breaker.restore(text.text);
  assert.equal(breaker.inspect().until, 2 ** 53 - 1);
});

// ---- dispose

test("after dispose run still runs, and the verbs throw (R35)", async () => {
  const { breaker, open, clock } = fixture();
  await open();
  breaker.dispose();
  breaker.dispose();
  assert.equal(await breaker.run(() => "ran"), "ran");
  assert.equal(await breaker.run(() => "ran", { timeoutMs: 1_000 }), "ran");
  await assert.rejects(breaker.run(() => { throw new Error("own"); }), { message: "own" });
  const verbs = [() => breaker.record("failure"), () => breaker.force("open"), () => breaker.hold("open"), () => breaker.release(), () => breaker.reset(), () => breaker.snapshot(), () => breaker.restore("")];
  for (const verb of verbs) assert.throws(verb, { name: "CircuitError", code: "ERR_CIRCUIT_DISPOSED", key: "test.circuit" });
  await assert.rejects(breaker.admit(), { code: "ERR_CIRCUIT_DISPOSED" });
  await breaker.flush();
  assert.equal(breaker.state, "closed");
  assert.deepEqual([breaker.inspect().admits, breaker.inspect().counts.calls], [true, 0]);
  void clock;
});

test("calls in flight at dispose reach their callers and nobody else's circuit (R35)", async () => {
  const clock = fakeClock();
  const one = new CircuitBreaker("one", B0, { clock });
  const pending = Array.from({ length: 4 }, deferred);
  const calls = pending.map(({ promise }, i) => outcomeOf(one.run(() => promise, i % 2 ? {} : undefined)));
  const permit = await one.admit();
  one.dispose();
  const next = new CircuitBreaker("next", B0, { clock });
  for (const { reject } of pending) reject("late");
  assert.deepEqual(await Promise.all(calls), Array(4).fill({ error: "late" }));
  permit.settle("failure");
  assert.equal(next.inspect().counts.calls, 0);
});

test("a breaker can be used with `using`", async () => {
  const { breaker } = fixture();
  breaker[Symbol.dispose]();
  assert.throws(() => breaker.reset(), { code: "ERR_CIRCUIT_DISPOSED" });
  const { breaker: other } = fixture();
  await other[Symbol.asyncDispose]();
  assert.throws(() => other.reset(), { code: "ERR_CIRCUIT_DISPOSED" });
});

test("making and disposing a hundred thousand breakers leaves the memory flat (R35)", () => {
  const policy = { window: { kind: "calls", last: 100 } };
  const cycle = (times) => {
    for (let i = 0; i < times; i++) {
      const breaker = new CircuitBreaker("a", policy);
      breaker.record("failure");
      breaker.dispose();
    }
  };
  cycle(1_000);
  const before = process.memoryUsage().external;
  cycle(100_000);
  assert.ok(process.memoryUsage().external - before < 2_000_000);
});

// ---- clocks

for (const [name, bad] of Object.entries({ "throws": () => { throw new Error("clock"); }, "gives NaN": () => NaN, "gives Infinity": () => Infinity, "gives text": () => "5", "gives nothing": () => {} })) {
  test(`a clock that ${name} never reaches a call, and the last good time holds`, async () => {
    let good = true;
    const breaker = new CircuitBreaker("a", B0, { clock: () => (good ? 5_000 : bad()) });
    breaker.force("open");
    good = false;
    let results;
    const faults = await reported(async () => {
      results = [await outcomeOf(breaker.run(() => 1)), await outcomeOf(breaker.run(() => 1, { timeoutMs: 50, fallback: () => "fallback" }))];
      breaker.reset();
      results.push(await outcomeOf(breaker.run(() => 2)), await outcomeOf(breaker.run(() => { throw 3; })));
    });
    assert.equal(results[0].error.retryAt, 6_000);
    assert.equal(results[0].error.retryAfterMs, 1_000);
    assert.deepEqual(results.slice(1), [{ value: "fallback" }, { value: 2 }, { error: 3 }]);
    assert.equal(faults.length, name === "throws" ? 1 : 0);
    assert.equal(breaker.inspect().counts.calls, 2);
  });
}

test("a clock that goes back expires nothing", async () => {
  const { breaker, open, clock } = fixture();
  clock.set(10_000);
  await open();
  clock.set(9_000);
  assert.deepEqual([breaker.state, (await breaker.admit()).retryAt], ["open", 11_000]);
});

test("an edge clock that is zero at module scope does not end what is restored there (R09)", async () => {
  const T = 1_760_000_000_000;
  const clock = fakeClock(T);
  const one = new CircuitBreaker("a", { openMs: 30_000 }, { clock });
  one.force("open");
  clock.set(0);
  const two = new CircuitBreaker("a", { openMs: 30_000 }, { clock });
  two.restore(one.snapshot());
  clock.set(T);
  assert.equal((await two.admit()).retryAt, T + 30_000);
});

test("without options the clock is the host's", async () => {
  const breaker = new CircuitBreaker("a", { failures: 1, failureRate: null, openMs: 5_000 });
  const before = Date.now();
  breaker.record("failure");
  const { until } = breaker.inspect();
  assert.ok(until >= before + 5_000 && until <= Date.now() + 5_000);
});
