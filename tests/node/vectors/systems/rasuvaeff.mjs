// rasuvaeff: N failures among the last M outcomes, a counter of refusals, forcing, and counts that stay readable while open.
import assert from "node:assert/strict";
import { arrows, LETTERS } from "../circuit.mjs";

const lease = (policy) => policy.probe_timeout_ms ?? policy.cooldown_ms;

export const options = (policy) => ({
  window: { kind: "calls", last: policy.window, withinMs: policy.within_ms },
  failures: policy.failures,
  openMs: policy.cooldown_ms,
  probeLimit: policy.probes,
  probeSuccesses: policy.successes,
  probeLeaseMs: lease(policy),
});

const REASONS = {
  failure_count: "failure-threshold-reached",
  open_elapsed: "cooldown-elapsed",
  probes_succeeded: "probe-succeeded",
  probe_failed: "probe-failed",
};
const reason = ({ reason, to }) => (reason === "forced" ? `forced-${to.replace("_", "-")}` : REASONS[reason]);

export class Rasuvaeff {
  static title = "rasuvaeff";
  /** Successes and failures in the closed window as of its last change; kept while open, shown as 0 while half-open. */
  window = [0, 0];
  /** The last opening or forcing. */
  openedAt = null;

  /** The retry time of a saturated half-open is "one lease from now" there, the end of the earliest lease here. */
  static leavesOut(step, key) {
    return key === "retry" && step.s[0] === "H";
  }

  constructor(policy, _t0, make) {
    this.circuit = make(options(policy));
    this.probes = policy.probes;
    this.lease = new PeriodLease(lease(policy));
  }

  async step({ t, op, c, out, to }) {
    const { circuit } = this;
    const reply = {};
    circuit.clock.set(t);
    if (op === "begin") {
      await this.#begin(c, t, reply);
    } else if (op === "end") {
      await this.#end(c, out, reply);
    } else if (op === "can") {
      reply.can = circuit.inspect().state !== "open"; // theirs asks about the cooldown only, not about free slots
    } else {
      circuit.force(to);
      this.window = [0, 0];
      this.openedAt = t;
      this.lease.start(t);
    }
    const moved = circuit.takeMoved();
    if (moved.some(({ to }) => to === "open")) this.openedAt = t;
    reply.tr = arrows(moved, reason);
    const shown = this.#shown();
    if (moved.length === 1) reply.rec = [...shown, moved[0].at];
    reply.s = [LETTERS[circuit.state], ...shown, this.openedAt];
    return reply;
  }

  async #begin(c, t, reply) {
    const { circuit, lease } = this;
    const { kind, reason, retryAt } = await circuit.begin(c);
    if (circuit.state === "half_open") {
      if (circuit.moved[0]?.reason === "open_elapsed") lease.start(t);
      if (lease.take(c, this.probes, t) !== (kind === "probe")) reply.fenced = "lease";
    }
    reply.adm = kind;
    if (kind !== "rejected") return;
    reply.retry = retryAt;
    if (reason === "probes_busy") assert.ok(retryAt > t, "the earliest live lease ends later");
  }

  async #end(c, out, reply) {
    const { circuit } = this;
    const before = circuit.state;
    const { stale, moved } = await circuit.end(c, out);
    const heldThere = this.lease.giveBack(c);
    if (stale) {
      reply.fenced = "dropped";
    } else if (before === "closed" && out !== "ignored") {
      const { calls, failures } = moved?.counts ?? circuit.inspect().counts;
      this.window = [calls - failures, failures];
    } else if (before === "half_open") {
      if (!heldThere) reply.fenced = "lease";
      if (circuit.state === "closed") this.window = [0, 0];
    }
  }

  #shown() {
    const { probeSuccesses, rejected } = this.circuit.inspect();
    return this.circuit.state === "half_open" ? [probeSuccesses, 0, rejected] : [...this.window, rejected];
  }
}

/**
 * Their slots: one lease for a whole half-open period, that starts over when no slot is taken. It decides nothing here; it only tells
 * where it and one lease per probe must part.
 */
export class PeriodLease {
  #since = 0;
  /** The calls that hold a slot. */
  #taken = [];

  constructor(ms) {
    this.ms = ms;
  }

  start(t) {
    this.#since = t;
    this.#taken = [];
  }

  take(c, limit, t) {
    if (this.#taken.length === 0 || t >= this.#since + this.ms) this.start(t);
    const free = this.#taken.length < limit;
    if (free) this.#taken.push(c);
    return free;
  }

  /** Did it still hold its slot? */
  giveBack(c) {
    const at = this.#taken.indexOf(c);
    if (at >= 0) this.#taken.splice(at, 1);
    return at >= 0;
  }
}
