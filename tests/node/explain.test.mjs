// What holds now and why, in one sentence: the same in `explain`, in an error, after a reload, and where somebody else decided.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, memoryStore } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { B0, fixture, outcomeOf, repeat } from "./help.mjs";

const T0 = Date.UTC(2026, 11, 1, 12, 4, 7);
const at = (policy) => {
  const all = fixture(policy);
  all.clock.set(T0);
  return all;
};

for (const [name, policy, make, expected] of [
  ["nothing counted yet", {}, () => {}, "closed: no call in the last 10 s"],
  ["too few to judge", {}, ({ fail }) => fail(1), "closed: 1 of 1 call in the last 10 s failed, limit 50 %, judged from 4 calls on"],
  ["some failed", {}, async ({ fail, succeed }) => { await succeed(3); await fail(1); }, "closed: 1 of 4 calls in the last 10 s failed, limit 50 %"],
  ["a count", { failures: 3, failureRate: undefined }, ({ fail }) => fail(2), "closed: 2 of 2 calls in the last 10 s failed, limit 3"],
  ["the last calls", { window: { kind: "calls", last: 20 }, failureRate: [1, 3] }, ({ succeed }) => succeed(5), "closed: 0 of 5 calls failed, limit 33.33 %"],
  ["in a row", { window: { kind: "consecutive" }, failureRate: undefined, minimumCalls: undefined }, ({ fail }) => fail(2), "closed: 2 failures in a row, limit 5"],
  ["in a row, none", { window: { kind: "consecutive" }, failureRate: undefined, minimumCalls: undefined }, ({ succeed }) => succeed(2), "closed: no failure since the last success"],
  ["slow ones", { slowMs: 2_000 }, async ({ breaker, clock }) => { await repeat(3, () => breaker.run(() => 1)); await breaker.run(() => clock.advance(2_001)); },
    "closed: 0 of 4 calls in the last 10 s failed, limit 50 %, 1 took longer than 2 s (limit 100 %)"],
  ["only slow ones count", { slowMs: 2_000, failureRate: null }, ({ fail }) => fail(4), "closed: 4 of 4 calls in the last 10 s failed, 0 took longer than 2 s (limit 100 %)"],
  ["open", {}, async ({ succeed, fail }) => { await succeed(1); await fail(3); }, "open since 12:04:07 UTC: 3 of 4 calls in the last 10 s failed, limit 50 %; next probe in 1 s"],
  ["open, a while", { openMs: 90_000 }, async ({ fail, clock }) => { await fail(4); clock.advance(1_500); }, "open since 12:04:07 UTC: 4 of 4 calls in the last 10 s failed, limit 50 %; next probe in 89 s"],
  ["open, until tomorrow", { openMs: 86_400_000 }, async ({ fail, clock }) => { await fail(4); clock.advance(80_000_000); },
    "open since 2026-12-01T12:04:07Z: 4 of 4 calls in the last 10 s failed, limit 50 %; next probe in 107 min"],
  ["open by count", { failures: 2, failureRate: undefined }, ({ fail }) => fail(2), "open since 12:04:07 UTC: 2 of 2 calls in the last 10 s failed, limit 2; next probe in 1 s"],
  ["open by a row", { window: { kind: "consecutive" }, failureRate: undefined, minimumCalls: undefined }, ({ fail }) => fail(5), "open since 12:04:07 UTC: 5 failures in a row; next probe in 1 s"],
  ["open by slow calls", { slowMs: 100, slowRate: 0.5, minimumCalls: 2 }, async ({ breaker, clock, succeed }) => { await succeed(1); await breaker.run(() => clock.advance(101)); },
    "open since 12:04:07 UTC: 1 of 2 calls in the last 10 s took longer than 100 ms, limit 50 %; next probe in 1 s"],
  ["by hand", {}, ({ breaker }) => breaker.force("open"), "open since 12:04:07 UTC: by hand; next probe in 1 s"],
  ["held open", {}, ({ breaker }) => breaker.hold("open"), "held open since 12:04:07 UTC: by hand, until it is released"],
  ["held closed", {}, ({ breaker }) => breaker.hold("closed"), "held closed since 12:04:07 UTC: by hand, until it is released"],
  ["due", {}, async ({ open, clock }) => { await open(); clock.advance(1_000); },
    "half-open since 12:04:08 UTC: the next call is a probe, 0 of 1 successes; it opened at 12:04:07 UTC: 4 of 4 calls in the last 10 s failed, limit 50 %"],
  ["probing", { probeLimit: 3, probeSuccesses: 2 }, async ({ open, clock, breaker }) => { await open(); clock.advance(1_000); await breaker.admit(); },
    "half-open since 12:04:08 UTC: 1 of 3 probes under way, 0 of 2 successes; it opened at 12:04:07 UTC: 4 of 4 calls in the last 10 s failed, limit 50 %"],
  ["a probe failed", { backoff: 2 }, async ({ open, clock, fail }) => { await open(); clock.advance(1_000); await fail(1); }, "open since 12:04:08 UTC: a probe failed; next probe in 2 s"],
  ["a slow probe", { slowMs: 100 }, async ({ breaker, clock }) => { breaker.force("half_open"); await breaker.run(() => clock.advance(200)); }, "open since 12:04:07 UTC: a probe took longer than 100 ms; next probe in 1 s"],
  ["shadow", { shadow: true }, ({ open }) => open(), "open since 12:04:07 UTC: 4 of 4 calls in the last 10 s failed, limit 50 %; next probe in 1 s (shadow mode: nothing is refused)"],
]) {
  test(`explained: ${name}`, async () => {
    const all = at(policy);
    await make(all);
    assert.equal(all.breaker.explain(), expected);
  });
}

test("an error keeps the same reason, and instants instead of what passes", async () => {
  const { breaker, open, clock } = at();
  await open();
  clock.advance(400);
  const { error } = await outcomeOf(breaker.run(() => 1));
  assert.equal(error.message, "Circuit test.circuit is open since 2026-12-01T12:04:07Z: 4 of 4 calls in the last 10 s failed, limit 50 %; next probe at 2026-12-01T12:04:08Z");
});

test("an instant in an error is rounded up: nobody comes too early", async () => {
  const { breaker, open } = at({ openMs: 1_001 });
  await open();
  assert.match((await outcomeOf(breaker.run(() => 1))).error.message, /next probe at 2026-12-01T12:04:09Z$/);
});

test("why it opened survives a restart, and is known to whoever adopts it", async () => {
  const clock = fakeClock(T0);
  const store = memoryStore();
  const first = new CircuitBreaker("test.circuit", B0, { clock, store });
  await repeat(4, () => first.run(() => Promise.reject(new Error("down"))).catch(() => {}));
  await first.flush();
  const said = "open since 12:04:07 UTC: 4 of 4 calls in the last 10 s failed, limit 50 %; next probe in 1 s";
  assert.equal(first.explain(), said);
  const again = new CircuitBreaker("test.circuit", B0, { clock });
  again.restore(first.snapshot());
  assert.equal(again.explain(), said);

  const second = new CircuitBreaker("test.circuit", B0, { clock, store });
  const told = [];
  second.on("transition", ({ reason, counts }) => told.push([reason, counts]));
  await outcomeOf(second.run(() => 1));
  assert.equal(second.explain(), said);
  assert.deepEqual(told, [["adopted", { calls: 4, failures: 4, slow: 0 }]], "the move tells what decided it, too");
  assert.deepEqual(second.inspect().why, { reason: "failure_rate", at: T0, counts: { calls: 4, failures: 4, slow: 0 } });
});

test("a circuit nobody has decided about has no reason", () => {
  const { breaker } = at();
  assert.equal(breaker.inspect().why, null);
  breaker.reset();
  assert.equal(breaker.inspect().why.reason, "reset");
});
