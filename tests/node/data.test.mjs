// Policies as data: JSON Schema, Standard Schema, the environment, and what a person is told.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { createEnv } from "@t3-oss/env-core";
import Ajv from "ajv/dist/2020.js";
import fc from "fast-check";
import { CircuitBreaker, presets, wrapFetch } from "tripcurve";
import { explain, fetchOptionsSchema, parsePolicy, policyFromEnv, policySchema, snapshotSchema } from "tripcurve/core";
import { isCurrent, schemaPath } from "../../scripts/schema.mjs";

const ajv = new Ajv({ allErrors: true });
const agrees = ajv.compile(JSON.parse(readFileSync(schemaPath, "utf8")));
const accepted = (policy) => {
  try {
    parsePolicy(policy);
    return true;
  } catch (error) {
    assert.equal(error.code, "ERR_INVALID_CIRCUIT");
    return false;
  }
};

test("policy.schema.json is what the core says", async () => assert.equal(await isCurrent(), true, "run: npm run schema -- --update"));

const anything = fc.oneof(fc.integer({ min: -2, max: 12 }), fc.constantFrom(0.5, 0.25, 1.5, 100, 101, 1_000, 1_001, 10_000, 10_001, 1e16, NaN, null, "5", true, [1, 3], [1, 2], {}), fc.integer());
const sound = {
  failureRate: fc.constantFrom(0.1, 0.5, 1, null, [1, 3]), failures: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(null)), minimumCalls: fc.integer({ min: 1, max: 10 }),
  slowMs: fc.oneof(fc.integer({ min: 1 }), fc.constant(null)), slowRate: fc.constantFrom(0.5, 1, [1, 3]), judgeOn: fc.constantFrom("failure", "any"), openMs: fc.integer({ min: 0, max: 1e6 }),
  backoff: fc.constantFrom(1, 1.5, 10), jitter: fc.constantFrom(0, 0.5, 1), maxOpenMs: fc.integer({ min: 1e6, max: 1e9 }), probeLimit: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.constant(null)),
  probeSuccesses: fc.integer({ min: 1, max: 1_000 }), probeLeaseMs: fc.oneof(fc.integer({ min: 1 }), fc.constant(null)), shadow: fc.boolean(),
  window: fc.oneof(fc.record({ kind: fc.constant("time"), ms: fc.constant(1_000), buckets: fc.constantFrom(1, 10, 100) }), fc.record({ kind: fc.constant("calls"), last: fc.integer({ min: 10, max: 10_000 }) }), fc.record({ kind: fc.constant("consecutive") })),
};
const policies = fc.record(sound, { requiredKeys: [] });

test("what the core accepts agrees with the schema", () => {
  fc.assert(fc.property(policies, (policy) => !accepted(policy) || agrees(policy) || assert.fail(`${JSON.stringify(policy)}: ${ajv.errorsText(agrees.errors)}`)), { numRuns: 1_000 });
});

test("what disagrees with the schema the core refuses", () => {
  const spoiled = fc.tuple(policies, fc.constantFrom(...Object.keys(sound), "failureRte"), anything).map(([policy, name, value]) => ({ ...policy, [name]: value }));
  const seen = [0, 0];
  fc.assert(
    fc.property(spoiled, (policy) => {
      const [good, bad] = [accepted(policy), !agrees(policy)];
      seen[Number(bad)]++;
      assert.ok(!(good && bad), `${JSON.stringify(policy)}: ${ajv.errorsText(agrees.errors)}`);
    }),
    { numRuns: 2_000 },
  );
  assert.ok(seen[0] > 100 && seen[1] > 100, `${seen}`);
});

test("of one option alone the schema knows every bound", () => {
  const edges = fc.oneof(anything, fc.constantFrom(0, 1, 2, 10, 9_999, 999, 1_000, 1_001, 2 ** 53 - 1, 2 ** 53, 1e-9, 1.0000001, 10.5, "failure", false, [], [1], [1, 2, 3], [1.5, 2], [-1, 2]));
  const rest = { maxOpenMs: { openMs: 0 }, slowRate: { slowMs: 1 }, failureRate: { slowMs: 1 } };
  const names = fc.constantFrom(...Object.keys(sound).filter((name) => name !== "window"));
  const windows = fc.constantFrom(["fixed", "ms"], ["time", "ms"], ["calls", "last"], ["consecutive", "withinMs"]);
  const alone = fc.oneof(fc.tuple(names, edges).map(([name, value]) => ({ ...rest[name], [name]: value })), fc.tuple(windows, edges).map(([[kind, name], value]) => ({ window: { kind, [name]: value } })));
  // What a pair of numbers comes to, JSON Schema cannot be asked.
  const pair = (policy) => Object.values(policy).some((value) => Array.isArray(value) && value.length === 2);
  const seen = [0, 0];
  fc.assert(
    fc.property(alone, (policy) => {
      if (pair(policy)) return;
      seen[Number(accepted(policy))]++;
      assert.equal(agrees(policy), accepted(policy), JSON.stringify(policy));
    }),
    { numRuns: 3_000 },
  );
  assert.ok(seen[0] > 300 && seen[1] > 300, `${seen}`);
});

test("a policy speaks Standard Schema: its own value, or where it is wrong", () => {
  const { version, vendor, validate } = policySchema["~standard"];
  assert.deepEqual([version, vendor], [1, "tripcurve"]);
  const policy = { openMs: 5 };
  assert.equal(validate(policy).value, policy);
  const issues = (value) => validate(value).issues.map(({ path, message }) => [path.join("."), message]);
  assert.deepEqual(issues({ openMs: -1 }), [["openMs", "openMs must be a whole number from 0 to 9007199254740991 (got -1)"]]);
  assert.deepEqual(issues({ window: { kind: "calls", last: 0 } }), [["window.last", "window.last must be a whole number from 1 to 10000 (got 0)"]]);
  assert.deepEqual(issues({ failureRte: 1 }), [["failureRte", "failureRte is unknown: did you mean failureRate? (got 1)"]]);
  for (const value of [null, 5, "x", undefined, [], [1]]) assert.equal(issues(value)[0][0], "");
});

test("a library that takes schemas of anybody takes these, and tells what is wrong", () => {
  const read = (policy, text) => {
    const told = [];
    const env = () =>
      createEnv({
        server: { POLICY: policySchema, CIRCUIT: snapshotSchema },
        runtimeEnvStrict: { POLICY: policy, CIRCUIT: text },
        onValidationError: (issues) => {
          told.push(...issues.map(({ path, message }) => `${path.join(".")}: ${message}`));
          throw new Error("refused");
        },
      });
    return { env, told };
  };
  const text = new CircuitBreaker("a").snapshot();
  const good = read({ openMs: 5 }, text).env();
  assert.deepEqual([good.POLICY, good.CIRCUIT], [{ openMs: 5 }, text]);
  const bad = read({ openMs: -1 }, "rubbish");
  assert.throws(bad.env, /refused/);
  assert.deepEqual(bad.told, ["POLICY.openMs: openMs must be a whole number from 0 to 9007199254740991 (got -1)", 'CIRCUIT: is no stored circuit: unknown_version (got "rubbish")']);
});

test("names and values of a megabyte are no burden, and are not repeated", () => {
  const huge = "z".repeat(1_000_000);
  for (const policy of [{ [huge]: 1 }, { judgeOn: huge }, { window: { kind: huge } }, { window: { kind: "fixed", ms: 1, [huge]: 1 } }]) {
    const [{ message }] = policySchema["~standard"].validate(policy).issues;
    assert.ok(message.length < 500, message.slice(0, 99));
  }
  assert.throws(() => new CircuitBreaker(huge), ({ message }) => message.length < 500);
});

test("the options of wrapFetch speak it", () => {
  const { validate } = fetchOptionsSchema["~standard"];
  const options = { policy: { openMs: 5 }, timeoutMs: 5_000, failureStatus: [500], settleAt: "body", bodyTimeoutMs: 5, onOpen: "respond", share: "verdict", retryAfter: false };
  assert.equal(validate(options).value, options);
  for (const [path, bad] of [
    ["policy.openMs", { policy: { openMs: -1 } }], ["policy.failureRte", { policy: { failureRte: 1 } }], ["timeoutMs", { timeoutMs: 0 }], ["timoutMs", { timoutMs: 5 }], ["settleAt", { settleAt: "end" }],
    ["failureStatus", { failureStatus: ["x"] }], ["storeTimeoutMs", { storeTimeoutMs: 0 }], ["share", { share: "tally" }], ["key", { key: 5 }], ["retryAfter", { retryAfter: 1 }], ["", 5],
  ]) {
    assert.equal(validate(bad).issues[0].path.join("."), path, JSON.stringify(bad));
    if (typeof bad === "object") assert.throws(() => wrapFetch(fetch, bad), { code: "ERR_INVALID_CIRCUIT" });
  }
});

test("a stored text speaks it as well", () => {
  const { validate } = snapshotSchema["~standard"];
  const text = new CircuitBreaker("a").snapshot();
  assert.equal(validate(text).value, text);
  for (const value of ["", "{", "2;C", 5, null, "x".repeat(50_000)]) assert.equal(validate(value).issues.length, 1, String(value).slice(0, 9));
});

test("a policy from the environment: numbers, fractions, words, null; other variables are none of its business", () => {
  const env = {
    PAY_FAILURE_RATE: "1/3", PAY_WINDOW_KIND: "calls", PAY_WINDOW_LAST: " 20 ", PAY_WINDOW_WITHIN_MS: "null", PAY_OPEN_MS: "5000", PAY_PROBE_LEASE_MS: "null",
    PAY_BACKOFF: "1.5", PAY_SHADOW: "true", PAY_JUDGE_ON: "any", PAY_JITTER: "", PAYMENT: "x", PATH: "/bin", OTHER_OPEN_MS: "7",
  };
  assert.deepEqual(policyFromEnv("PAY", env), {
    failureRate: [1, 3], window: { kind: "calls", last: 20, withinMs: null }, openMs: 5_000, probeLeaseMs: null, backoff: 1.5, shadow: true, judgeOn: "any",
  });
  assert.deepEqual(policyFromEnv("PAY", {}), {});
  for (const [name, value, message] of [
    ["PAY_OPN_MS", "5", /^PAY_OPN_MS is unknown: did you mean PAY_OPEN_MS\? \(got "…"\)$/],
    ["PAY_API_KEY", "5e3cret", /^PAY_API_KEY is unknown: there are PAY_WINDOW_KIND, (?!.*5e3cret)/],
    ["PAY_MINIMUM_CALLS", "0", /^PAY_MINIMUM_CALLS must be a whole number from 1 to 10000 \(got "0"\)$/],
    ["PAY_JUDGE_ON", "all", /^PAY_JUDGE_ON must be one of failure, any \(got "all"\)$/],
    ["PAY_OPEN_MS", "soon", /^PAY_OPEN_MS must be a whole number/],
  ]) {
    assert.throws(() => policyFromEnv("PAY", { [name]: value }), (error) => error.code === "ERR_INVALID_CIRCUIT" && error.field === name && message.test(error.message), name);
  }
});

test("explain says what opens it, how long it stays, when it is probed, what closes it", () => {
  assert.equal(
    explain({}).text,
    "The circuit remembers the calls of the last 30 seconds. It opens when 50 % of the calls failed, once there are 10 calls. It then refuses every call for 30 seconds; " +
      "never for longer than 5 minutes, whatever is asked for. After that calls are let in as probes, 1 at a time, each holding its place for at most 30 seconds. One that succeeds closes it; one that fails opens it again.",
  );
  const { opens, stays, probes, closes } = explain({ failureRate: [1, 3], slowMs: 2_000, slowRate: 0.5, backoff: 2, jitter: 0.2, probeLimit: 3, probeSuccesses: 2 });
  assert.deepEqual(opens, ["1 in 3 of the calls failed, once there are 10 calls", "50 % of the calls took longer than 2 seconds, once there are 10 calls"]);
  assert.match(stays, /2 times longer after each half-open period that failed, with up to 20 % added at random/);
  assert.match(probes, /3 at a time/);
  assert.match(closes, /^2 that succeed close it; one that fails or is slow opens it again\.$/);
  assert.match(explain({ window: { kind: "consecutive" }, shadow: true }).text, /5 calls in a row failed.*shadow mode/s);
  assert.deepEqual(explain({ judgeOn: "any", failureRate: [1, 1_000_000_000] }).opens, ["1 in 1000000000 of the calls failed, once there are 10 calls, even if the last of them succeeded"]);
  assert.match(explain({ failureRate: [999_999_999, 1_000_000_000], jitter: 0.07 }).text, /999999999 in 1000000000 of.*up to 7 %/s);
  assert.equal(explain({ openMs: 0 }).stays, "It then refuses calls only as long as an answer asks for, never for longer than 5 minutes.");
  assert.equal(explain({ window: { kind: "calls", last: 5, withinMs: 60_000 } }).remembers, "The circuit remembers the last 5 calls, none older than 1 minute.");
  for (const preset of Object.values(presets)) assert.doesNotMatch(explain(preset).text, /undefined|NaN|null/);
  fc.assert(fc.property(policies, (policy) => !accepted(policy) || !/undefined|NaN|null|\[object/.test(explain(policy).text)), { numRuns: 300 });
  assert.throws(() => explain({ openMs: -1 }), { code: "ERR_INVALID_CIRCUIT" });
});
