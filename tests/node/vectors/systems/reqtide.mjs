// reqtide: fenced permits, exact ratios over the last n calls or over buckets, probes with a lease each.
import { arrows, LETTERS, VERDICTS } from "../circuit.mjs";

export const options = ({ window, ...policy }) => ({
  window: "last" in window ? { kind: "calls", last: window.last } : { kind: "time", ms: window.total_ms, buckets: window.total_ms / window.bucket_ms },
  failureRate: policy.ratio,
  minimumCalls: policy.min,
  judgeOn: "any",
  openMs: policy.open_ms,
  probeLimit: policy.capacity,
  probeSuccesses: policy.successes,
  probeLeaseMs: policy.lease_ms,
});

const WHY = { open: "circuit_open", probes_busy: "circuit_probe_capacity_exhausted" };
const REASONS = { failure_rate: "threshold", open_elapsed: "open_elapsed", probe_failed: "probe_failed", probes_succeeded: "probes_succeeded" };

export class Reqtide {
  static title = "reqtide";
  /** It shows its last opening for ever; ours shows when the present state began. */
  openedAt = null;

  constructor(policy, _t0, make) {
    this.circuit = make(options(policy));
  }

  async step({ t, op, c, out }) {
    const { circuit } = this;
    const reply = {};
    circuit.clock.set(t);
    if (op === "begin") {
      const { kind, reason } = await circuit.begin(c);
      reply.adm = kind;
      if (kind === "rejected") reply.why = WHY[reason];
    } else {
      const { counted } = await circuit.end(c, VERDICTS[out]);
      reply.eff = counted ? "counted" : "ignored";
    }
    const moved = circuit.takeMoved();
    this.openedAt = moved.find(({ to }) => to === "open")?.at ?? this.openedAt;
    reply.tr = arrows(moved, ({ reason }) => REASONS[reason]);
    const { counts, probesInFlight, probeSuccesses } = circuit.inspect();
    reply.s = [LETTERS[circuit.state], counts.calls, counts.failures, probesInFlight, probeSuccesses, this.openedAt];
    return reply;
  }
}
