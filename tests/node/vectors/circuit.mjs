// One circuit of the package, driven in the ways there are: by permits, by `run`, and as plain objects of `tripcurve/core`. The
// adapters of the systems see the same few verbs, and what each step told.
import assert from "node:assert/strict";
import { CircuitBreaker, CircuitOpenError } from "tripcurve";
import * as core from "tripcurve/core";
import { fakeClock } from "tripcurve/testing";
import { deferred, outcomeOf } from "../help.mjs";

export const LETTERS = { closed: "C", open: "O", half_open: "H" };
/** `tr`: `[from, to, reason]` of each, nothing when there was none. */
export const arrows = (moved, reason) => (moved.length === 0 ? undefined : moved.map((m) => [LETTERS[m.from], LETTERS[m.to], reason(m)]));

/** What every way has: a clock, the state as of the last verb, the transitions of the step at hand. */
class Circuit {
  /** As of the last verb. A reading shows a due open circuit as half-open, the traces show the state as it was entered. */
  state = "closed";
  /** When this episode began. */
  since;
  /** Transitions since they were last taken. */
  moved = [];

  constructor(t0, clock = fakeClock(t0)) {
    this.clock = clock;
    this.since = t0;
  }

  takeMoved() {
    return this.moved.splice(0);
  }
}

/** A `CircuitBreaker`. What it tells about itself must agree with what it shows. */
class Guarded extends Circuit {
  #refusals = [];
  #outcomes = [];
  #fault;

  constructor(policy, trace, { clock, store, outcomes = true } = {}) {
    super(trace.t0, clock);
    this.breaker = new CircuitBreaker("trace.circuit", policy, { clock: this.clock, store });
    this.#listen("transition", (moved) => {
      assert.equal(moved.from, this.state, "a transition leaves the state that the last one entered");
      assert.equal(moved.at, this.clock());
      this.state = moved.to;
      this.since = moved.at;
      if (moved.reason !== "adopted") this.moved.push(moved);
    });
    this.#listen("rejected", ({ reason, retryAt }) => this.#refusals.push({ reason, retryAt }));
    this.#listen("diagnostic", ({ code, cause }) => assert.fail(`${code}: ${cause}`));
    if (outcomes) this.#listen("outcome", (outcome) => this.#outcomes.push(outcome));
  }

  inspect() {
    if (this.#fault) throw this.#fault;
    const now = this.breaker.inspect();
    if (now.state === this.state) this.since = now.since;
    else assert.deepEqual([this.state, now.state], ["open", "half_open"], "every move is reported");
    return now;
  }

  /** What a listener throws is reported and goes no further, so that it is kept for the next reading. */
  #listen(event, hear) {
    this.breaker.on(event, (detail) => {
      try {
        hear(detail);
      } catch (error) {
        this.#fault ??= error;
      }
    });
  }

  /** The window's part of the stored text. */
  window() {
    return this.breaker.snapshot().split(";")[10];
  }

  async begin(c) {
    this.#refusals.length = 0;
    const admission = await this.admit(c);
    const told = this.#refusals.splice(0);
    const { kind, reason, retryAt } = admission;
    assert.deepEqual(told, kind === "rejected" ? [{ reason, retryAt }] : [], "a refusal is told as it is given");
    return admission;
  }

  /** `durationMs` left out: as measured. */
  async end(c, verdict, durationMs) {
    const before = this.moved.length;
    this.#outcomes.length = 0;
    await this.settle(c, verdict, durationMs);
    const [outcome, more] = this.#outcomes;
    assert.equal(more, undefined, "one outcome for one call");
    return { stale: outcome?.stale, counted: outcome && !outcome.stale && verdict !== "ignored", durationMs: outcome?.durationMs, moved: this.moved[before] };
  }

  record(verdict, durationMs) {
    this.breaker.record({ verdict, durationMs });
  }

  force(state) {
    this.breaker.force(state);
  }

  hold(as) {
    this.breaker.hold(as);
  }

  release() {
    this.breaker.release();
  }

  reset() {
    this.breaker.reset();
  }
}

/** `admit` and `settle`. */
export class ByPermit extends Guarded {
  #permits = new Map();

  async admit(c) {
    const admission = await this.breaker.admit();
    if (admission.kind !== "rejected") this.#permits.set(c, admission);
    return admission;
  }

  settle(c, verdict, durationMs) {
    const permit = this.#permits.get(c);
    this.#permits.delete(c);
    permit.settle(durationMs === undefined ? verdict : { verdict, durationMs });
    permit.settle("failure"); // a permit is given back once
  }

  /** Lets time pass, and says whether a call would have been let in: asks for one and gives it back at once. */
  async look() {
    const admission = await this.breaker.admit();
    if (admission.kind !== "rejected") admission.settle("ignored");
    return admission.kind !== "rejected";
  }
}

/** `run` with functions that end when the trace says so. */
export class ByRun extends Guarded {
  #calls = new Map();

  options(_c, probe, classify) {
    return { probe, classify };
  }

  async admit(c) {
    const call = { ...deferred(), classify: () => undefined };
    const start = (kind) => (signal) => {
      assert.equal(signal, undefined);
      call.kind = kind;
      return call.promise;
    };
    const classify = (result, durationMs) => call.classify(result, durationMs);
    call.answer = outcomeOf(this.breaker.run(start("allowed"), this.options(c, start("probe"), classify)));
    if (call.kind === undefined) {
      const { error } = await call.answer;
      assert.ok(error instanceof CircuitOpenError, String(error));
      return { kind: "rejected", reason: error.reason, retryAt: error.retryAt };
    }
    this.#calls.set(c, call);
    return { kind: call.kind };
  }

  async settle(c, verdict, durationMs) {
    const { resolve, reject, answer, ...call } = this.#calls.get(c);
    if (verdict === "ignored" || durationMs !== undefined) {
      this.#calls.get(c).classify = () => (durationMs === undefined ? verdict : { verdict, durationMs });
    }
    this.#calls.delete(c);
    // What is ignored may be a value or an error.
    const end = verdict === "success" || (verdict === "ignored" && c % 2 === 0) ? { value: { c } } : { error: new Error(`call ${c}`) };
    if (end.value) resolve(end.value);
    else reject(end.error);
    const got = await answer;
    assert.ok(got.value === end.value && got.error === end.error, `${call.kind} call ${c} gives what its function gave`);
  }

  async look() {
    let ran = false;
    await outcomeOf(this.breaker.run(() => void (ran = true), { classify: () => "ignored" }));
    return ran;
  }
}

/** `run` without options and without anybody who listens to outcomes, wherever that says enough: the quick way through a closed circuit. */
export class ByPlainRun extends ByRun {
  #ignored;

  constructor(policy, trace, options) {
    super(policy, trace, { ...options, outcomes: false });
    this.#ignored = new Set(trace.steps.filter(({ op, out }) => op === "end" && VERDICTS[out] === "ignored").map(({ c }) => c));
  }

  options(c, probe, classify) {
    return this.breaker.state === "closed" && !this.#ignored.has(c) ? undefined : super.options(c, probe, classify);
  }
}

/** `tripcurve/core`: every step is checked to be frozen, and to be a new object exactly when something changed. */
export class OnObjects extends Circuit {
  #permits = new Map();

  /** `keep`: what becomes of the snapshot between two steps. */
  constructor(policy, trace, keep = (snapshot) => snapshot) {
    super(trace.t0);
    this.policy = core.parsePolicy(policy);
    this.keep = keep;
    this.snapshot = keep(core.closed(this.policy, 1, trace.t0));
  }

  #step(verb, ...args) {
    const before = this.snapshot;
    const text = core.encode(before);
    const frozen = Object.isFrozen(before);
    const step = verb(this.policy, before, ...args, this.clock());
    assertFrozen(step, step.snapshot === before ? ["snapshot"] : []);
    assert.equal(core.encode(before), text, "a step changes nothing it was given");
    assert.equal(Object.isFrozen(before), frozen);
    assert.equal(step.snapshot === before, core.encode(step.snapshot) === text, "a step that changes nothing gives the same object back");
    this.snapshot = this.keep(step.snapshot);
    this.state = step.snapshot.state;
    this.since = step.snapshot.since;
    this.moved.push(...step.transitions);
    return step;
  }

  inspect() {
    const now = core.inspect(this.policy, this.snapshot, this.clock());
    assertFrozen(now);
    return now;
  }

  window() {
    return this.snapshot.window;
  }

  begin(c) {
    const { admission } = this.#step(core.admit, c);
    if (admission.permit) this.#permits.set(c, this.keep(admission.permit));
    return admission;
  }

  end(c, verdict, durationMs = this.clock() - this.#permits.get(c).admittedAt) {
    const before = this.moved.length;
    const { counted } = this.#step(core.settle, this.#permits.get(c), { verdict, durationMs });
    return { stale: !counted && verdict !== "ignored", counted, durationMs, moved: this.moved[before] };
  }

  look() {
    this.#step(core.at);
    return this.inspect().admits;
  }

  record(verdict, durationMs) {
    this.#step(core.record, { verdict, durationMs });
  }

  force(state) {
    this.#step(core.force, state, null);
  }

  hold(as) {
    this.#step(core.hold, as);
  }

  release() {
    this.#step(core.release);
  }

  reset() {
    this.#step(core.reset);
  }
}

function assertFrozen(value, except = []) {
  if (typeof value !== "object" || value === null) return;
  assert.ok(Object.isFrozen(value), `frozen: ${JSON.stringify(value)}`);
  for (const [name, part] of Object.entries(value)) if (!except.includes(name)) assertFrozen(part);
}

/** What the systems call an outcome. */
export const VERDICTS = { success: "success", failure: "failure", ignored: "ignored", neutral: "ignored" };

const json = (value) => JSON.parse(JSON.stringify(value));
const way = (name, make, more) => ({ name, make, ...more });

/** `cannotTell`: expected keys that this way has no word for. `mustOnly`: it does not tell which results were late. */
export const WAYS = {
  permit: way("admit and settle", (policy, trace, options) => new ByPermit(policy, trace, options)),
  run: way("run", (policy, trace, options) => new ByRun(policy, trace, options)),
  plain: way("run, no options", (policy, trace, options) => new ByPlainRun(policy, trace, options), { cannotTell: ["eff"], mustOnly: true }),
  core: way("core", (policy, trace) => new OnObjects(policy, trace)),
  json: way("core through JSON", (policy, trace) => new OnObjects(policy, trace, json)),
};
