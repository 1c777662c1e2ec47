// `CircuitBreaker` and `tripcurve/core` are two builds of one machine: on any policy and any operations they agree step by step, and
// the text of either is read by the other.
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { CircuitBreaker } from "tripcurve";
import * as core from "tripcurve/core";
import { fakeClock } from "tripcurve/testing";
import { deferred, outcomeOf } from "../help.mjs";

const T0 = 1_700_000_000_000;
const small = (max) => fc.integer({ min: 1, max });
const maybe = (arbitrary) => fc.option(arbitrary, { nil: undefined });
const share = fc.oneof(fc.constantFrom(0.01, 0.25, 0.33, 0.5, 0.75, 1), fc.tuple(small(7), fc.constant(7)));

const window = fc.oneof(
  fc.record({ kind: fc.constant("fixed"), ms: small(500) }),
  fc.tuple(small(60), fc.option(small(8), { nil: undefined })).map(([unit, buckets]) => ({ kind: "time", ms: unit * (buckets ?? 1), buckets })),
  fc.record({ kind: fc.constant("calls"), last: small(8), withinMs: fc.option(small(300), { freq: 1 }) }),
  fc.record({ kind: fc.constant("consecutive"), withinMs: fc.option(small(300), { freq: 1 }) }),
);

const policies = fc
  .record({
    window,
    rule: fc.oneof(fc.record({ failureRate: share }), fc.record({ failures: small(4) })),
    minimumCalls: small(5),
    slow: fc.oneof(fc.constant({}), fc.record({ slowMs: small(40), slowRate: share })),
    judgeOn: fc.constantFrom("failure", "any"),
    openMs: fc.integer({ min: 0, max: 300 }),
    backoff: fc.constantFrom(1, 1.5, 2, 10),
    jitter: fc.constantFrom(0, 0.1, 0.5, 1),
    maxOpenMs: maybe(fc.integer({ min: 0, max: 2_000 })),
    probeLimit: fc.oneof(fc.constant(null), small(3)),
    probeSuccesses: small(3),
    probeLeaseMs: fc.oneof(fc.constant(null), fc.constant(undefined), small(200)),
    shadow: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  })
  .map(({ window, rule, minimumCalls, slow, maxOpenMs, ...rest }) => {
    // A window of N calls has room for N failures only, and for a minimum of N.
    const most = window.last ?? Infinity;
    const failures = rule.failures && Math.min(rule.failures, most);
    return {
      window,
      ...rule,
      ...(failures && { failures }),
      ...slow,
      ...rest,
      minimumCalls: Math.min(minimumCalls, most),
      maxOpenMs: maxOpenMs === undefined ? undefined : Math.max(maxOpenMs, rest.openMs),
    };
  });

/** Where nobody asks for durations a call may go the quick way. */
const unmeasured = policies.map(({ slowMs, slowRate, ...policy }) => policy);

const outcome = fc.record({
  verdict: fc.oneof({ weight: 4, arbitrary: fc.constantFrom("failure", "success") }, { weight: 1, arbitrary: fc.constant("ignored") }),
  durationMs: fc.oneof(fc.constant(null), fc.nat(80)),
  retryIn: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(3_000) }),
});

const op = (name, weight, parts = {}) => ({ weight, arbitrary: fc.record({ op: fc.constant(name), wait: fc.oneof(fc.constant(0), fc.nat(150)), ...parts }) });
const operations = fc.array(
  fc.oneof(
    op("begin", 30),
    op("end", 30, { pick: fc.nat(), outcome }),
    op("record", 2, { outcome }),
    op("wait", 3, { wait: fc.nat(3_000) }),
    op("force", 1, { state: fc.constantFrom("closed", "open", "half_open"), untilIn: fc.oneof(fc.constant(null), fc.nat(3_000)) }),
    op("hold", 1, { as: fc.constantFrom("open", "closed") }),
    op("release", 1),
    op("reset", 1),
    op("toCore", 1),
    op("toClass", 1),
  ),
  { minLength: 30, maxLength: 70 },
);

/** The two machines side by side; every verb is done on both. */
class Pair {
  moves = { class: [], core: [] };
  outcomes = [];
  rejections = [];
  /** Calls in flight: the breaker's permit (or call), the core's. */
  calls = [];

  constructor(policy, way, parsed) {
    this.clock = fakeClock(T0);
    this.policy = core.parsePolicy(policy);
    this.way = way;
    this.breaker = new CircuitBreaker("pair", parsed ? this.policy : policy, { clock: this.clock });
    this.breaker.on("transition", (moved) => this.moves.class.push(moved));
    if (way !== "run, no options") this.breaker.on("outcome", (outcome) => this.outcomes.push(outcome));
    this.breaker.on("rejected", (rejected) => this.rejections.push(rejected));
    this.breaker.inspect(); // draws the seed, which spreads the jitter
    const text = this.breaker.snapshot();
    this.snapshot = core.closed(this.policy, core.decode(this.policy, text, T0).snapshot.seed, T0);
    assert.equal(core.encode(this.snapshot), text, "a fresh circuit is the same text");
  }

  step(verb, ...args) {
    const step = verb(this.policy, this.snapshot, ...args, this.clock());
    this.snapshot = step.snapshot;
    this.moves.core.push(...step.transitions);
    return step;
  }

  async do(move, at) {
    this.clock.advance(move.wait);
    const now = this.clock();
    switch (move.op) {
      case "begin":
        return this.begin(at);
      case "end":
        return this.end(move);
      case "record": {
        const outcome = this.outcome(move.outcome);
        this.breaker.record(outcome);
        this.step(core.record, outcome);
        this.outcomes.length = 0;
        return;
      }
      case "force": {
        const until = move.untilIn === null ? null : now + move.untilIn;
        this.breaker.force(move.state, until ?? undefined);
        this.step(core.force, move.state, until);
        return;
      }
      case "hold":
        this.breaker.hold(move.as);
        this.step(core.hold, move.as);
        return;
      case "release":
      case "reset":
        this.breaker[move.op]();
        this.step(core[move.op]);
        return;
      case "toCore": {
        const text = this.breaker.snapshot();
        const { snapshot, problem } = core.decode(this.policy, text, now);
        assert.deepEqual([core.encode(snapshot), problem], [text, null]);
        this.snapshot = snapshot;
        return this.restored(text);
      }
      case "toClass": {
        const text = core.encode(this.snapshot);
        this.snapshot = core.decode(this.policy, text, now).snapshot;
        return this.restored(text);
      }
    }
  }

  /** A restored circuit has no calls in flight: the permits of before are void, and its probes are those of somebody else. */
  restored(text) {
    this.breaker.restore(text);
    assert.equal(this.breaker.snapshot(), text);
    this.calls = [];
  }

  outcome({ verdict, durationMs, retryIn }) {
    return { verdict, durationMs, retryAt: retryIn === null ? null : this.clock() + retryIn };
  }

  async begin(probeId) {
    const plain = this.plain();
    const { admission } = this.step(core.admit, probeId);
    const mine = await (this.way === "admit and settle" ? this.breaker.admit() : this.runs());
    const { kind, reason, retryAt } = mine;
    assert.equal(kind, admission.kind);
    if (kind === "rejected") assert.deepEqual({ kind, reason, retryAt }, { ...admission });
    else this.calls.push({ settle: mine.settle, permit: admission.permit, plain });
    const [rejection] = this.rejections.splice(0);
    assert.equal(rejection?.shadow, kind === "rejected" ? false : rejection && this.policy.shadow);
  }

  /** A call by `run`, with the same form as a permit. */
  async runs() {
    const call = deferred();
    let kind;
    let said;
    const start = (of) => () => ((kind = of), call.promise);
    const options = this.plain() ? undefined : { probe: start("probe"), classify: () => said };
    const answer = outcomeOf(this.breaker.run(start("allowed"), options));
    if (kind === undefined) {
      const { reason, retryAt } = (await answer).error;
      return { kind: "rejected", reason, retryAt };
    }
    const settle = (outcome) => {
      said = outcome;
      if (outcome.verdict === "failure") call.reject(new Error("down"));
      else call.resolve();
      return answer;
    };
    return { kind, settle };
  }

  /** Without options nobody says how a call went but its function, and only a closed circuit tells no probe from another call. */
  plain() {
    return this.way === "run, no options" && this.breaker.state === "closed";
  }

  async end({ pick, outcome: given }) {
    if (this.calls.length === 0) return;
    const [{ settle, permit, plain }] = this.calls.splice(pick % this.calls.length, 1);
    const outcome = plain ? { verdict: given.verdict === "failure" ? "failure" : "success", durationMs: this.clock() - permit.admittedAt } : this.outcome(given);
    const { counted } = this.step(core.settle, permit, outcome);
    await settle(outcome);
    // A call let in by shadow alone has no outcome to be told.
    const [told] = this.outcomes.splice(0);
    if (told) assert.deepEqual([told.verdict !== "ignored" && !told.stale, told.durationMs], [counted, outcome.durationMs]);
    else assert.ok(this.way === "run, no options" || (this.policy.shadow && !counted));
  }

  /**
   * What a stored text says. Each machine draws ids of its own for probes, and lists them in their order. What is too old to count may
   * still be there: a lease that is over, and in the window what only the next outcome or admission would drop.
   */
  said(text, state) {
    const now = this.clock();
    const rolled = () => core.encode(core.at(this.policy, core.decode(this.policy, text, now).snapshot, now).snapshot);
    const fields = (state === "closed" ? rolled() : text).split(";");
    const [successes, ...probes] = fields[9].split(",");
    const leases = probes.map((probe) => probe.split(".")[1]).filter((lease) => !(parseInt(lease.replace("X", ""), 36) <= now));
    fields[9] = [successes, ...leases.sort()].join(",");
    if (state !== "closed") fields[10] = "";
    return fields.join(";");
  }

  compare() {
    const { key, ...mine } = this.breaker.inspect();
    assert.deepEqual(mine, { ...core.inspect(this.policy, this.snapshot, this.clock()) });
    assert.deepEqual(this.moves.class.splice(0).map(({ key, ...moved }) => moved), this.moves.core.splice(0));
    const [here, there] = [this.breaker.snapshot(), core.encode(this.snapshot)].map((text) => this.said(text, mine.state));
    assert.equal(here, there, "the texts say the same");
    const later = this.clock() + 1_000;
    const { key: _, ...then } = this.breaker.inspect(later);
    assert.deepEqual(then, { ...core.inspect(this.policy, this.snapshot, later) });
  }
}

for (const way of ["admit and settle", "run", "run, no options"]) {
  test(`class and core agree on any policy and any operations (${way})`, async (t) => {
    let steps = 0;
    const seen = {};
    await fc.assert(
      fc.asyncProperty(way === "run, no options" ? unmeasured : policies, operations, fc.boolean(), async (policy, moves, parsed) => {
        const pair = new Pair(policy, way, parsed);
        for (const [at, move] of moves.entries()) {
          await pair.do(move, at + 1);
          for (const { reason } of pair.moves.core) seen[reason] = (seen[reason] ?? 0) + 1;
          pair.compare();
          steps++;
        }
        pair.breaker.dispose();
      }),
      { numRuns: 200 },
    );
    t.diagnostic(JSON.stringify({ property: "class and core agree", way, steps, transitions: seen }));
    const reasons = ["failure_rate", "failure_count", "open_elapsed", "probe_failed", "probes_succeeded", "forced", "held", "released", "reset"];
    if (way !== "run, no options") reasons.push("slow_rate", "probe_slow");
    for (const reason of reasons) assert.ok(seen[reason] > 0, `the operations reach ${reason}`);
  });
}
