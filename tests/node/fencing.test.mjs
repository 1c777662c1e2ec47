// Late results, and what is counted at all.
import assert from "node:assert/strict";
import test from "node:test";
import { deferred, fixture, outcomeOf, repeat } from "./help.mjs";

for (const late of ["resolve", "reject"]) {
  test(`a probe of an earlier half-open period that ${late}s late decides nothing (R03)`, async () => {
    const { breaker, open, clock, moves } = fixture({ probeLimit: 2 });
    await open();
    const [p1, p2, p3] = [deferred(), deferred(), deferred()];
    clock.set(1_000);
    const first = outcomeOf(breaker.run(() => p1.promise));
    const second = outcomeOf(breaker.run(() => p2.promise));
    clock.set(1_010);
    p2.reject(new Error("down"));
    await second;
    assert.equal(breaker.inspect().until, 2_010);
    clock.set(2_010);
    const third = outcomeOf(breaker.run(() => p3.promise));
    const before = moves.length;
    clock.set(2_020);
    p1[late]("P1");
    assert.equal(Object.values(await first)[0], "P1");
    assert.deepEqual([breaker.state, breaker.inspect().probeSuccesses, breaker.inspect().probesInFlight], ["half_open", 0, 1]);
    clock.set(2_021);
    const fourth = deferred();
    const taken = outcomeOf(breaker.run(() => fourth.promise));
    assert.equal(breaker.inspect().probesInFlight, 2);
    clock.set(2_030);
    p3.reject(new Error("down"));
    await third;
    assert.equal(breaker.state, "open");
    assert.equal(moves.length, before + 1);
    fourth.resolve();
    await taken;
  });
}

const L = { "a success": "resolve", "a failure": "reject" };
for (const [name, end] of Object.entries(L)) {
  test(`${name} of a call that began while closed changes nothing while open (R04 a, b)`, async () => {
    const { breaker, fail, clock, moves } = fixture();
    const slow = deferred();
    const call = outcomeOf(breaker.run(() => slow.promise));
    await repeat(4, async (i) => (clock.set(i + 1), await fail()));
    assert.deepEqual([breaker.state, breaker.inspect().until], ["open", 1_004]);
    clock.set(500);
    slow[end]("L");
    assert.equal(Object.values(await call)[0], "L");
    assert.deepEqual([breaker.state, breaker.inspect().until, moves.length], ["open", 1_004, 1]);
  });

  test(`${name} of a call that began while closed does not decide for the probe (R04 c, d)`, async () => {
    const { breaker, fail, clock } = fixture();
    const [slow, probe] = [deferred(), deferred()];
    const call = outcomeOf(breaker.run(() => slow.promise));
    await fail(4);
    clock.set(1_004);
    const probing = outcomeOf(breaker.run(() => probe.promise));
    clock.set(1_100);
    slow[end]("L");
    await call;
    assert.deepEqual([breaker.state, breaker.inspect().probesInFlight], ["half_open", 1]);
    probe.resolve();
    await probing;
    assert.equal(breaker.state, "closed");
  });
}

test("a failure of an earlier closed episode does not enter the new window (R04 e)", async () => {
  const { breaker, fail, succeed, clock } = fixture();
  const slow = deferred();
  const call = outcomeOf(breaker.run(() => slow.promise));
  await fail(4);
  clock.set(1_200);
  await succeed();
  assert.equal(breaker.state, "closed");
  slow.reject(new Error("L"));
  await call;
  assert.deepEqual(breaker.inspect().counts, { calls: 0, failures: 0, slow: 0 });
});

test("a stale outcome is told as stale", async () => {
  const { breaker } = fixture();
  const outcomes = [];
  breaker.on("outcome", ({ verdict, stale, probe }) => outcomes.push({ verdict, stale, probe }));
  const slow = deferred();
  const call = outcomeOf(breaker.run(() => slow.promise));
  breaker.reset();
  slow.reject("x");
  await call;
  await breaker.run(() => 1);
  assert.deepEqual(outcomes, [
    { verdict: "failure", stale: true, probe: false },
    { verdict: "success", stale: false, probe: false },
  ]);
});

test("a success that completes the minimum is judged where the policy says so (R20)", async () => {
  for (const [judgeOn, state] of [["any", "open"], ["failure", "closed"]]) {
    const { breaker, fail, succeed } = fixture({ minimumCalls: 3, judgeOn });
    await fail(2);
    await succeed();
    assert.equal(breaker.state, state);
  }
});

test("ignored calls, refused calls and calls in flight do not dilute the rate (R20)", async () => {
  const { breaker, fail, succeed, clock } = fixture();
  const ignored = { classify: () => "ignored" };
  await repeat(7, () => breaker.run(() => 1, ignored));
  await fail(4);
  assert.equal(breaker.state, "open");
  await repeat(100, () => outcomeOf(breaker.run(() => 1)));
  assert.equal(breaker.inspect().rejected, 100);
  clock.set(1_000);
  await succeed();
  await fail(2);
  await succeed(2);
  assert.deepEqual(breaker.inspect().counts, { calls: 4, failures: 2, slow: 0 });
  breaker.reset();
  const pending = Array.from({ length: 8 }, deferred);
  const calls = pending.map(({ promise }) => outcomeOf(breaker.run(() => promise)));
  for (const { reject } of pending.slice(0, 4)) reject(new Error("down"));
  await Promise.all(calls.slice(0, 4));
  assert.equal(breaker.state, "open");
  for (const { resolve } of pending.slice(4)) resolve();
  await Promise.all(calls);
});

test("an ignored probe keeps the state, the level and the successes (R02)", async () => {
  const { breaker, open, fail, clock } = fixture({ backoff: 2 });
  await open();
  clock.set(1_000);
  await fail();
  assert.equal(breaker.inspect().until, 3_000);
  clock.set(3_000);
  await breaker.run(() => 404, { classify: () => "ignored" });
  assert.deepEqual([breaker.state, breaker.inspect().probesInFlight], ["half_open", 0]);
  clock.set(3_001);
  await fail();
  assert.equal(breaker.inspect().until, 7_001);
});

test("a probe that never settles holds its slot until its lease is over (R01)", async () => {
  const { breaker, open, clock } = fixture();
  await open();
  clock.set(1_000);
  void breaker.run(() => new Promise(() => {}));
  for (const [at, state] of [[1_001, "rejected"], [5_999, "rejected"], [6_000, "probe"]]) {
    clock.set(at);
    const admission = await breaker.admit();
    assert.equal(admission.kind, state);
    if (state === "rejected") assert.equal(admission.retryAt, 6_000);
  }
});

const longs = [2 ** 31 - 1, 2 ** 31, 30 * 86_400_000, 1e15];
for (const openMs of longs) {
  test(`an open time of ${openMs} ms ends at its end (R26)`, async () => {
    const { breaker, clock } = fixture({ openMs, maxOpenMs: openMs });
    breaker.force("open");
    for (const [at, kind] of [[1, "rejected"], [openMs / 2, "rejected"], [openMs - 1, "rejected"], [openMs, "probe"]]) {
      clock.set(at);
      assert.equal((await breaker.admit()).kind, kind);
    }
  });
}

test("the backoff ends at the cap, however often a probe fails (R26)", async () => {
  const { breaker, clock, fail } = fixture({ backoff: 2 });
  breaker.force("open");
  for (let i = 0; i < 200; i++) {
    clock.set(breaker.inspect().until);
    await fail();
  }
  assert.equal(breaker.inspect().until - clock(), 300_000);
});

test("an error can name an instant that no date can", async () => {
  const { breaker } = fixture({ openMs: 2 ** 53 - 1, maxOpenMs: 2 ** 53 - 1 });
  breaker.force("open");
  assert.match((await outcomeOf(breaker.run(() => 1))).error.message, /next probe at 9007199254740991$/);
});

for (const window of [
  { kind: "fixed", ms: 10_000 },
  { kind: "calls", last: 10 },
  { kind: "calls", last: 10, withinMs: 10_000 },
  { kind: "consecutive" },
  { kind: "consecutive", withinMs: 10_000 },
]) {
  test(`the class counts in a window ${JSON.stringify(window)}`, async () => {
    const consecutive = window.kind === "consecutive";
    const { breaker, fail, succeed, clock } = fixture({ window, ...(consecutive ? { failureRate: null, failures: 2 } : { minimumCalls: 2 }) });
    await fail();
    clock.advance(10_001);
    await fail();
    assert.equal(breaker.state, window.withinMs || window.kind === "fixed" ? "closed" : "open");
    if (breaker.state === "closed") await fail();
    assert.equal(breaker.state, "open");
    clock.advance(1_000);
    await succeed();
    assert.equal(breaker.state, "closed");
  });
}
