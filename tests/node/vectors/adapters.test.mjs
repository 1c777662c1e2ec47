// Adapters that hold a rule of their own prove it here; the ways of making a call prove that they can tell.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { ByPermit, ByRun, OnObjects, WAYS } from "./circuit.mjs";
import { Forgetful, Fuse } from "./systems/fuse.mjs";
import { fixedSince } from "./systems/phil.mjs";
import { PeriodLease } from "./systems/rasuvaeff.mjs";
import { BucketClock, simplest } from "./systems/utopia.mjs";

test("the fraction of a ratio is the one that was meant", () => {
  for (const [ratio, fraction] of [[0.5, [1, 2]], [0.01, [1, 100]], [0.3, [3, 10]], [0.34, [17, 50]], [2 / 3, [2, 3]], [1, [1, 1]], [1e-9, [1, 1e9]]]) {
    assert.deepEqual(simplest(ratio), fraction);
  }
  assert.throws(() => simplest(Math.PI / 1e7), RangeError);
});

test("fraction and double judge every small window alike", () => {
  for (const ratio of [0.01, 0.1, 0.25, 0.3, 0.34, 0.5, 0.6, 2 / 3, 0.75, 1]) {
    const [numerator, denominator] = simplest(ratio);
    for (let calls = 1; calls <= 300; calls++) {
      for (let failures = 0; failures <= calls; failures++) {
        assert.equal(failures / calls >= ratio, failures * denominator >= calls * numerator, `${failures}/${calls} ${ratio}`);
      }
    }
  }
});

test("a clock that goes back by a bucket goes on two buckets later", () => {
  const clock = new BucketClock(10, 100);
  assert.deepEqual([100, 109, 105, 99, 100].map((t) => clock.at(t)), [100, 109, 105, 129, 130]);
});

test("the lease of a period frees all slots at once and starts over when none is taken", () => {
  const lease = new PeriodLease(1_000);
  lease.start(0);
  assert.deepEqual([lease.take(1, 2, 0), lease.take(2, 2, 900), lease.take(3, 2, 999)], [true, true, false]); // both slots until 1000
  assert.deepEqual([lease.take(4, 2, 1_000), lease.take(5, 2, 1_000), lease.take(6, 2, 1_000)], [true, true, false]); // both free again
  assert.deepEqual([lease.giveBack(2), lease.giveBack(4), lease.giveBack(5)], [false, true, true]);
  assert.deepEqual([lease.take(7, 1, 1_900), lease.take(8, 1, 2_899), lease.take(8, 1, 2_900)], [true, false, true]); // started over at 1900
});

test("the store forgets after its last second and a write renews it", () => {
  const clock = fakeClock();
  const store = new Forgetful(20, clock);
  const forgot = (second) => (clock.set(second * 1000), store.forgot());
  assert.equal(forgot(1_000), false); // nothing stored
  clock.set(100_000);
  store.write("a");
  assert.deepEqual([forgot(120), store.read(), store.lastSecond], [false, "a", 120]);
  clock.set(110_000);
  store.write("b");
  assert.deepEqual([forgot(130), forgot(131), forgot(132), store.lastSecond], [false, true, false, null]);
});

for (const way of [WAYS.permit, WAYS.run]) {
  test(`an outcome by hand while open closes fuse unless it is one too many (${way.name})`, async () => {
    const steps = [];
    const start = () => new Fuse({ threshold: 2, window_s: 10, open_s: 5, probes: 1 }, 0, (policy) => way.make(policy, { t0: 0, steps }));
    const forced = start();
    await forced.step({ t: 1_000, op: "force_open" });
    assert.equal((await forced.step({ t: 2_000, op: "rec", out: "failure" })).s[0], "C");

    const opened = start();
    await opened.step({ t: 1_000, op: "rec", out: "failure" });
    assert.deepEqual((await opened.step({ t: 2_000, op: "rec", out: "failure" })).tr, [["C", "O", "failure_threshold"]]);
    const { s, tr } = await opened.step({ t: 4_000, op: "rec", out: "failure" });
    assert.deepEqual([s[0], tr], ["O", undefined]); // three failures: open for another 5 s
    assert.equal((await opened.step({ t: 8_000, op: "retry" })).retry_s, 1);
    assert.deepEqual((await opened.step({ t: 8_000, op: "rec", out: "success" })).tr, [["O", "C", "success"]]);
  });
}

test("the stored text tells when a fixed window began", () => {
  const clock = fakeClock(1_000);
  const breaker = new CircuitBreaker("a", { window: { kind: "fixed", ms: 500 } }, { clock });
  const since = () => fixedSince(breaker.snapshot().split(";")[10]);
  breaker.record("failure");
  assert.equal(since(), 1_000);
  clock.set(1_500);
  breaker.record("failure");
  assert.equal(since(), 1_500);
});

const FAILS_ONCE = { failures: 1, openMs: 1_000 };
for (const way of [WAYS.permit, WAYS.run, WAYS.plain, WAYS.core, WAYS.json]) {
  test(`looking lets time pass and counts nothing (${way.name})`, async () => {
    const circuit = way.make({ ...FAILS_ONCE, window: { kind: "calls", last: 5 } }, { t0: 0, steps: [] });
    assert.equal(await circuit.look(), true);
    await circuit.begin(1);
    await circuit.end(1, "failure");
    assert.equal(await circuit.look(), false);
    circuit.clock.set(1_000);
    assert.equal(await circuit.look(), true);
    assert.deepEqual(circuit.takeMoved().map(({ to, at }) => [to, at]), [["open", 0], ["half_open", 1_000]]);
    assert.deepEqual([circuit.state, circuit.since, circuit.inspect().probesInFlight], ["half_open", 1_000, 0]);
  });
}

test("a permit that is given back late is seen to be stale, by permit and by run", async () => {
  for (const Way of [ByPermit, ByRun]) {
    const circuit = new Way(FAILS_ONCE, { t0: 0, steps: [] });
    await circuit.begin(1);
    await circuit.begin(2);
    assert.deepEqual((({ stale, counted }) => ({ stale, counted }))(await circuit.end(1, "failure")), { stale: false, counted: true });
    assert.deepEqual((({ stale, counted }) => ({ stale, counted }))(await circuit.end(2, "failure")), { stale: true, counted: false });
  }
});

test("what is thawed or replaced for nothing would be noticed", async () => {
  const circuit = new OnObjects(FAILS_ONCE, { t0: 0 });
  const before = circuit.snapshot;
  circuit.begin(1);
  assert.equal(circuit.snapshot, before);
  circuit.end(1, "failure");
  assert.notEqual(circuit.snapshot, before);
});
