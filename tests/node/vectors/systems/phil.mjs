// phil: a fixed window, integer percentages, slow calls; outcomes are recorded without a permit, half-open has no limit.
//
// `run` has no way to hand in an outcome without a call: there `rec` is a call that begins and ends in one instant, which says the
// same, since an open circuit that would drop the outcome refuses the call. `at` is a call that is ignored at once: time passes, and
// nothing is counted.
import { ByRun, LETTERS } from "../circuit.mjs";

export const options = (policy) => ({
  window: { kind: "fixed", ms: policy.window_s * 1000 },
  failureRate: [policy.rate, 100],
  minimumCalls: policy.min,
  slowMs: policy.slow_ms,
  slowRate: [policy.slow_rate, 100],
  openMs: policy.open_s * 1000,
  probeLimit: null,
  probeSuccesses: policy.successes,
  probeLeaseMs: null,
});

export class Phil {
  static title = "phil";

  constructor(policy, _t0, make) {
    this.circuit = make(options(policy));
    this.calls = 0;
  }

  async step({ t, op, out, ms = null }) {
    const { circuit } = this;
    const reply = {};
    circuit.clock.set(t);
    if (op === "at") {
      reply.ok = await circuit.look();
    } else if (circuit instanceof ByRun) {
      const { kind } = await circuit.begin(++this.calls);
      if (kind !== "rejected") await circuit.end(this.calls, out, ms);
    } else {
      circuit.record(out, ms);
    }
    const moved = circuit.takeMoved();
    if (moved.length > 0) reply.tr = moved.map(({ from, to }) => [LETTERS[from], LETTERS[to]]);
    const now = circuit.inspect();
    const { calls, failures, slow } = now.counts;
    const since = now.state === "closed" ? fixedSince(circuit.window()) : now.since;
    reply.s = [LETTERS[now.state], calls, failures, slow, now.probeSuccesses, since];
    return reply;
  }
}

/** When a fixed window last began, which only the stored text tells: `F ms : start . counts`, in base 36. */
export const fixedSince = (window) => parseInt(/^F\w+:(\w+)/.exec(window)[1], 36);
