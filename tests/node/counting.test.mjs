// What is counted, how long, and where exactly the edge is, through the package.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { fixture, repeat } from "./help.mjs";

const record = (breaker, verdicts) => [...verdicts].forEach((letter) => breaker.record(letter === "F" ? "failure" : letter === "S" ? "success" : "ignored"));

test("after an idle time old failures are gone, and not before (R17)", async () => {
  const { clock, breaker, fail } = fixture();
  for (const at of [0, 1, 2]) {
    clock.set(at);
    await fail();
  }
  clock.set(300_000);
  await fail();
  assert.deepEqual([breaker.state, breaker.inspect().counts], ["closed", { calls: 1, failures: 1, slow: 0 }]);
  clock.set(1e13);
  await fail();
  assert.deepEqual(breaker.inspect().counts, { calls: 1, failures: 1, slow: 0 });

  const one = fixture();
  await one.fail();
  // Buckets of a second, aligned to the clock: of ten the last one that holds it ends after 10 s.
  const counts = [0, 9_999, 10_000, 10_999, 11_000].map((at) => one.breaker.inspect(at).counts.failures);
  assert.deepEqual(counts, [1, 1, 0, 0, 0]);
});

const edges = [
  [0.5, 2, 4, true], [1, 4, 4, true], [1, 3, 4, false], [0.29, 29, 100, true], [0.29, 28, 100, false], [0.58, 58, 100, true],
  [0.5, 99, 199, false], [0.5, 199, 399, false], [0.5, 200, 399, true], [0.33333, 1, 3, true], [[1, 3], 1, 3, true], [0.334, 1, 3, false],
];
for (const [failureRate, failures, calls, opens] of edges) {
  test(`${failures} of ${calls} failures ${opens ? "open" : "do not open"} a circuit of ${failureRate} (R19)`, () => {
    // A success may complete the minimum, so that the share is judged once, with the last call.
    const breaker = new CircuitBreaker("edge", { window: { kind: "calls", last: calls }, failureRate, minimumCalls: calls, judgeOn: "any" });
    record(breaker, "F".repeat(failures) + "S".repeat(calls - failures));
    assert.equal(breaker.state, opens ? "open" : "closed");
  });
}

test("failures in a row end with a success, whenever it comes, in the order in which calls end (R40)", async () => {
  const clock = fakeClock();
  const policy = { window: { kind: "consecutive" }, failures: 5 };
  const breaker = new CircuitBreaker("row", policy, { clock });
  for (let at = 0; at < 86_400_000; at += 10_000) {
    clock.set(at);
    record(breaker, "FS");
  }
  assert.equal(breaker.state, "closed");
  const permits = [];
  for (let i = 0; i < 6; i++) permits.push(await breaker.admit());
  for (const [i, verdict] of ["failure", "failure", "success", "failure", "failure", "failure"].entries()) permits[i].settle(verdict);
  assert.deepEqual([breaker.state, breaker.inspect().counts.failures], ["closed", 3]);
});

test("failures age: one each 20 s never opens five in a minute, five in 59 s do (R40)", () => {
  const clock = fakeClock();
  const breaker = new CircuitBreaker("aging", { window: { kind: "time", ms: 60_000, buckets: 60 }, failureRate: null, failures: 5 }, { clock });
  for (let at = 0; at < 3_600_000; at += 20_000) {
    clock.set(at);
    record(breaker, "F");
  }
  assert.equal(breaker.state, "closed");
  clock.advance(600_000);
  for (let i = 0; i < 5; i++) {
    record(breaker, "F");
    clock.advance(14_000);
  }
  assert.equal(breaker.state, "open");
});

test("a count alone trips a busy caller, the share does not (R40)", async () => {
  const busy = async (policy) => {
    const clock = fakeClock();
    const breaker = new CircuitBreaker("busy", { window: { kind: "time", ms: 60_000 }, ...policy }, { clock });
    await repeat(20_000, async (i) => {
      if (i % 10 === 0) clock.advance(1);
      breaker.record(i % 2_000 === 0 ? "failure" : "success");
    });
    return breaker.state;
  };
  assert.equal(await busy({ failures: 5, failureRate: null, minimumCalls: 1 }), "open");
  assert.equal(await busy({ failureRate: 0.5 }), "closed");
});
