// fenced: our own rules. The adapter only translates names.
import assert from "node:assert/strict";
import { LETTERS } from "../circuit.mjs";

export const options = ({ window: { kind, span_ms, bucket_ms, last, within_ms }, ...policy }) => ({
  window: {
    fixed: { kind, ms: span_ms },
    time: { kind, ms: span_ms, buckets: span_ms / bucket_ms },
    calls: { kind, last, withinMs: within_ms },
    consecutive: { kind, withinMs: within_ms },
  }[kind],
  failureRate: policy.trip.rate ?? null,
  failures: policy.trip.count ?? null,
  minimumCalls: policy.min,
  slowMs: policy.slow_ms,
  slowRate: policy.slow_rate ?? 1,
  judgeOn: policy.judge_on,
  openMs: policy.open_ms,
  probeLimit: policy.probes,
  probeSuccesses: policy.successes,
  probeLeaseMs: policy.lease_ms,
});

const WHY = { open: "circuit_open", held_open: "forced_open", probes_busy: "probe_capacity" };
const REASONS = { probes_succeeded: "probe_succeeded" };

export class Fenced {
  static title = "fenced";
  /** One of the five states: a transition tells the state but not the hold. */
  stands = "C";

  constructor(policy, _t0, make) {
    this.circuit = make(options(policy));
  }

  async step({ t, op, c, out, ms }) {
    const { circuit } = this;
    const reply = {};
    circuit.clock.set(t);
    if (op === "begin") {
      const { kind, reason, retryAt } = await circuit.begin(c);
      reply.adm = kind;
      if (kind === "rejected") [reply.why, reply.retry] = [WHY[reason], retryAt];
    } else if (op === "end") {
      const { stale, durationMs } = await circuit.end(c, out);
      if (stale) reply.fenced = "dropped";
      if (ms !== undefined && durationMs !== undefined) assert.equal(durationMs, ms, "the time between begin and end is measured");
    } else if (op === "force_open") {
      circuit.hold("open");
    } else if (op === "force_closed") {
      circuit.hold("closed");
    } else {
      circuit[op](); // release, reset
    }
    const moved = circuit.takeMoved();
    if (moved.length > 0) reply.tr = moved.map((move) => this.#move(move));

    const { held, counts, probeSuccesses, probesInFlight } = circuit.inspect();
    const stands = held === null ? LETTERS[circuit.state] : `F${LETTERS[held]}`;
    assert.equal(stands, this.stands, "every move is reported");
    reply.s = [stands, counts.calls, counts.failures, counts.slow, probeSuccesses, probesInFlight, circuit.since];
    return reply;
  }

  #move({ to, reason }) {
    const from = this.stands;
    const held = reason === "held";
    this.stands = `${held ? "F" : ""}${LETTERS[to]}`;
    return [from, this.stands, held ? `forced_${to}` : (REASONS[reason] ?? reason)];
  }
}
