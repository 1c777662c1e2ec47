// The flat tables of phil that concern a circuit: when it trips, what is slow, what is restored.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, InvalidCircuitError } from "tripcurve";
import * as core from "tripcurve/core";
import { fakeClock } from "tripcurve/testing";
import { LETTERS } from "./circuit.mjs";
import { options } from "./systems/phil.mjs";
import { rows } from "./trace.mjs";

const WINDOW = { kind: "fixed", ms: 60_000 };
const base36 = (number) => number.toString(36);

/** A stored text: one episode that began at 0, with these fields. */
const stored = (phase, probing, { calls = 0, failures = 0, slow = 0 } = {}) =>
  `1;${phase};0;1;1;0;0;1.1;;${probing};F1aao:0.${[calls, failures, slow].map(base36).join(".")}`;

function restored(policy, text) {
  const clock = fakeClock(1);
  const breaker = new CircuitBreaker("a", policy, { clock });
  const problems = [];
  breaker.on("diagnostic", ({ code }) => problems.push(code));
  breaker.restore(text);
  return { breaker, problems };
}

// All but the last outcome are in the window already; the last one is judged.
test("the trip test is phil's", (t) => {
  for (const { policy, calls, failures, slow, trips } of rows("phil", "trips")) {
    const ours = options(policy);
    const last = { verdict: failures > 0 ? "failure" : "success", durationMs: slow > 0 ? (policy.slow_ms ?? 0) + 1 : null };
    const before = { calls: calls - 1, failures: Math.max(failures - 1, 0), slow: Math.max(slow - 1, 0) };
    const text = stored("C", "", before);
    const { breaker } = restored(ours, text);
    assert.deepEqual(breaker.inspect().counts, before);
    breaker.record(last);
    assert.equal(breaker.state, trips ? "open" : "closed", JSON.stringify({ policy, calls, failures, slow }));

    const parsed = core.parsePolicy(ours);
    const { snapshot } = core.record(parsed, core.decode(parsed, text, 1).snapshot, last, 1);
    assert.equal(snapshot.state, trips ? "open" : "closed");
  }
  t.diagnostic(JSON.stringify({ table: "phil/trips", rows: rows("phil", "trips").length }));
});

test("durations are refused and slow as in phil", (t) => {
  for (const { ms, slow_ms: slowMs, ok, slow } of rows("phil", "outcomes")) {
    const breaker = new CircuitBreaker("a", { slowMs });
    const record = () => breaker.record({ verdict: "success", durationMs: ms });
    if (ok) {
      record();
      assert.deepEqual(breaker.inspect().counts, { calls: 1, failures: 0, slow: Number(slow) }, `${ms} of ${slowMs}`);
    } else {
      assert.throws(record, (error) => error instanceof InvalidCircuitError && error.field === "durationMs");
      assert.equal(breaker.inspect().counts.calls, 0);
    }
  }
  t.diagnostic(JSON.stringify({ table: "phil/outcomes", rows: rows("phil", "outcomes").length }));
});

// Through the stored text, which has no negative numbers: those are 0 here.
test("stored counters of phil are clamped alike", (t) => {
  const policy = { window: WINDOW, probeLimit: null, probeSuccesses: 10, probeLeaseMs: null };
  for (const { state, s, ...row } of rows("phil", "restore")) {
    const counts = Object.fromEntries(["calls", "failures", "slow"].map((name) => [name, Math.max(row[name], 0)]));
    const successes = Math.max(row.half_open_successes, 0);
    const text = { C: stored("C", "", counts), O: stored("Oz", "", counts), H: stored("H0", base36(successes), counts) }[state];
    const { breaker, problems } = restored(policy, text);
    assert.ok(problems.every((code) => code === "snapshot_clamped"), String(problems));
    const now = breaker.inspect(1);
    assert.deepEqual([LETTERS[now.state], now.counts.calls, now.counts.failures, now.counts.slow, now.probeSuccesses], s, text);
  }
  t.diagnostic(JSON.stringify({ table: "phil/restore", rows: rows("phil", "restore").length }));
});
