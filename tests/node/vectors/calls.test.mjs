// The call wrappers of three systems, each said in the options of `run`. Every row is called with a function that answers at once, and
// with one that answers later.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, CircuitOpenError } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { deferred, outcomeOf, reported } from "../help.mjs";
import { options as fuse } from "./systems/fuse.mjs";
import { options as rasuvaeff } from "./systems/rasuvaeff.mjs";
import { options as utopia } from "./systems/utopia.mjs";
import { rows } from "./trace.mjs";

const VALUE = { value: "of the call" };
const FALLBACK = { value: "of the fallback" };
const CALL_ERROR = new Error("of the call");
const FALLBACK_ERROR = new Error("of the fallback");
const CLASSIFIER_ERROR = new Error("of the classifier");

/** Who gave this? */
function origin({ value, error }) {
  if (value === VALUE) return "value";
  if (value === FALLBACK) return "fallback";
  return error === undefined ? `${value}` : blame(error);
}

function blame(error) {
  if (error === CALL_ERROR) return "call_error";
  if (error === FALLBACK_ERROR) return "fallback_error";
  if (error === CLASSIFIER_ERROR) return "classifier_error";
  return error instanceof CircuitOpenError ? "open_error" : `${error}`;
}

const give = (ok, value, error) => {
  if (ok) return value;
  throw error;
};
const DELIVERIES = {
  "at once": (work) => () => work(),
  later: (work) => async () => {
    await null;
    return work();
  },
};

/** Replays a table; rows in `differs` have to differ in exactly those keys. */
function table(system, call, differs = () => ({})) {
  for (const [when, deliver] of Object.entries(DELIVERIES)) {
    test(`calls of ${system} that answer ${when} go as there`, async (t) => {
      const counts = { table: `${system}/calls`, rows: 0, differ: 0 };
      for (const row of rows(system, "calls")) {
        const expected = { ...row, ...differs(row) };
        counts.rows++;
        if (Object.keys(differs(row)).length > 0) counts.differ++;
        const got = await call(row, deliver);
        for (const key of Object.keys(got)) assert.ok(key in row, key);
        assert.deepEqual({ ...row, ...got }, expected, JSON.stringify(row));
      }
      t.diagnostic(JSON.stringify(counts));
    });
  }
}

// ---- rasuvaeff: call(callback, fallback?), a classifier for results and one for errors -----------------------------------------

/** Theirs throws what a classifier throws; here the caller still gets what the function gave. Both count the call as ignored. */
const classifierRows = ({ outcome }) => ({ result_classifier_throws: { got: "value" }, error_classifier_throws: { got: "call_error" } })[outcome] ?? {};

async function callOfRasuvaeff({ admission, fallback, outcome }, deliver) {
  const clock = fakeClock(1_000);
  const policy = rasuvaeff({ failures: 1, window: 10, within_ms: 10_000, cooldown_ms: 1_000, successes: 1, probes: 1, probe_timeout_ms: null });
  const breaker = new CircuitBreaker("a", policy, { clock });
  if (admission !== "allowed") breaker.force("open");
  if (admission === "probe") clock.advance(1_000);
  let opened = { successes: 0, failures: 0 };
  breaker.on("transition", ({ reason, counts: { calls, failures } }) => {
    opened = reason === "failure_count" ? { successes: calls - failures, failures } : { successes: 0, failures: 0 };
  });

  let ran = false;
  let fallbackGot = null;
  const work = deliver(() => {
    ran = true;
    return give(/return|result/.test(outcome), VALUE, CALL_ERROR);
  });
  const classify = (result) => {
    assert.deepEqual(result, outcome.startsWith("return") || outcome.startsWith("result") ? { ok: true, value: VALUE } : { ok: false, error: CALL_ERROR });
    if (outcome.endsWith("classifier_throws")) throw CLASSIFIER_ERROR;
    return outcome.slice(outcome.indexOf("_") + 1);
  };
  const faults = [];
  breaker.on("diagnostic", ({ code, cause }) => faults.push(code, cause));
  let got;
  const seen = await reported(async () => {
    got = await outcomeOf(
      breaker.run(work, { classify, fallbackOn: "failure", fallback: fallback ? (error) => ((fallbackGot = blame(error)), FALLBACK) : undefined }),
    );
  });
  const classifierFails = outcome.endsWith("classifier_throws");
  assert.deepEqual(faults, classifierFails ? ["classify_failed", CLASSIFIER_ERROR] : []);
  assert.deepEqual(seen, classifierFails ? [CLASSIFIER_ERROR] : []);

  const { state, counts, probeSuccesses, probesInFlight } = breaker.inspect();
  assert.equal(probesInFlight, 0, "also an ignored probe frees its slot");
  const shown = {
    closed: { successes: counts.calls - counts.failures, failures: counts.failures },
    open: opened,
    half_open: { successes: probeSuccesses, failures: 0 },
  };
  return { callback_ran: ran, got: origin(got), fallback_got: fallbackGot, state_after: state, ...shown[state] };
}

table("rasuvaeff", callOfRasuvaeff, classifierRows);

test("the rows of rasuvaeff that differ are the eight in which a classifier throws, and they differ in nothing but what the caller gets", () => {
  const all = rows("rasuvaeff", "calls");
  const differ = all.filter((row) => Object.keys(classifierRows(row)).length > 0);
  assert.equal(differ.length, 8);
  for (const row of differ) assert.deepEqual([row.got, row.fallback_got], ["classifier_error", null]);
  assert.ok(all.filter((row) => !differ.includes(row)).every(({ got }) => got !== "classifier_error"));
});

// ---- utopia: call(open, close, halfOpen?): the open callback stands in for every refusal and every failure -----------------------

/** A saturated half-open is one whose only slot is taken by a call that never ends while we look; its slot is free again afterwards. */
async function callOfUtopia({ admission, outcome, half_open_callback, fallback }, deliver) {
  const clock = fakeClock(1_000_000);
  const timeout_s = admission === "open" ? 9_999 : 0;
  const policy = { ...utopia({ timeout_s, successes: 1, window_s: 10, ratio: 0.5, min: 1 }), probeLimit: 1 };
  const breaker = new CircuitBreaker("a", policy, { clock });
  if (admission !== "closed") breaker.force("open");
  const hung = deferred();
  const other = admission === "half_open_saturated" ? outcomeOf(breaker.run(() => hung.promise, { classify: () => "ignored" })) : undefined;
  const moves = [];
  breaker.on("transition", ({ to }) => moves.push(to));

  let ran = "none";
  const callback = (name) => deliver(() => ((ran = name), give(outcome === "success", VALUE, CALL_ERROR)));
  const open = deliver(() => give(fallback === "fallback_ok", FALLBACK, FALLBACK_ERROR));
  const got = await outcomeOf(
    breaker.run(callback("close"), { probe: half_open_callback ? callback("half_open") : undefined, fallback: open, fallbackOn: "failure" }),
  );
  if (got.error) assert.ok(got.error.cause === CALL_ERROR || got.error.cause instanceof CircuitOpenError, "a failing fallback tells what it stood in for");
  delete FALLBACK_ERROR.cause;
  hung.resolve();
  await other;

  // With a timeout of 0 an open circuit reads half-open at once; theirs shows what was entered last.
  const entered = moves.at(-1) ?? { closed: "closed", open: "open", half_open_saturated: "half_open" }[admission];
  return { callback_ran: ran, got: origin(got), state_after: entered, probes_in_flight_after: breaker.inspect().probesInFlight };
}

table("utopia", callOfUtopia);

// ---- fuse: run(callback), a judge of results, a list of errors that count --------------------------------------------------------

async function callOfFuse({ admission, outcome }, deliver) {
  const clock = fakeClock(1_000_000);
  const breaker = new CircuitBreaker("a", fuse({ threshold: 1, window_s: 60, open_s: 30, probes: 1 }), { clock });
  if (admission !== "closed") breaker.force("open");
  if (admission === "half_open") clock.advance(30_000);

  let ran = false;
  const work = deliver(() => ((ran = true), give(outcome.startsWith("return"), VALUE, CALL_ERROR)));
  const classify = (result) => (result.ok ? (outcome === "return_judged_bad" ? "failure" : undefined) : outcome === "throw_ignored" ? "ignored" : "failure");
  const got = await outcomeOf(breaker.run(work, { classify }));
  return { callback_ran: ran, got: origin(got), state_after: breaker.state };
}

table("fuse", callOfFuse);
