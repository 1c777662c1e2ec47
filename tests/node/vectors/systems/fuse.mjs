// fuse: consecutive failures in whole seconds. The circuit lives as a stored text, in a store that forgets.
//
// An outcome recorded by hand has no call, so `rec` is `record` also where calls go by `run`.
import assert from "node:assert/strict";
import { memoryStore } from "tripcurve";
import { arrows, LETTERS } from "../circuit.mjs";

export const options = (policy) => ({
  window: { kind: "consecutive", withinMs: policy.window_s * 1000 },
  failures: policy.threshold,
  openMs: policy.open_s * 1000,
  probeLimit: policy.probes,
  probeSuccesses: policy.probes,
  probeLeaseMs: null,
});

const REASONS = {
  failure_count: "failure_threshold",
  open_elapsed: "cooldown_elapsed",
  probes_succeeded: "probes_succeeded",
  probe_failed: "probe_failed",
  forced: "forced",
  reset: "reset",
};

export class Fuse {
  static title = "fuse";
  /** Instants of failures in seconds: of the closed window as of its last change, or what led to open. */
  failures = [];
  openedAt = null;
  /** The generation in which each call in flight was let in. */
  #calls = new Map();

  constructor(policy, _t0, make) {
    this.circuit = make(options(policy));
    this.store = new Forgetful(2 * Math.max(policy.window_s, policy.open_s), this.circuit.clock);
    this.threshold = policy.threshold;
    this.windowS = policy.window_s;
  }

  async step({ t, op, c, out }) {
    const { circuit, store } = this;
    const nowS = t / 1000;
    const reply = {};
    circuit.clock.set(t);
    this.#read();
    let writes = false;
    if (op === "begin") {
      writes = await this.#begin(c, t, reply);
    } else if (op === "end") {
      const before = circuit.state;
      const { stale, counted } = await circuit.end(c, out);
      this.#calls.delete(c);
      if (stale) reply.fenced = "dropped";
      this.#note(out, counted && before === "closed", nowS);
      writes = counted || (!stale && before === "half_open");
    } else if (op === "rec") {
      writes = this.#record(out, nowS, reply);
    } else if (op === "force_open" || op === "force_closed") {
      circuit.force(op.slice("force_".length));
      this.failures = [];
      this.openedAt = op === "force_open" ? nowS : null;
      writes = true;
    } else if (op === "reset") {
      circuit.reset();
      store.delete();
      [this.failures, this.openedAt] = [[], null];
    } else if (op === "retry") {
      const { until } = circuit.inspect();
      reply.retry_s = circuit.state === "closed" ? null : until === null ? 0 : Math.floor((until - t) / 1000);
    }
    this.#noteMoves(op, nowS, reply);
    if (writes) store.write(circuit.breaker.snapshot());
    const { probeSuccesses, probesInFlight } = circuit.inspect();
    reply.failures = [...this.failures];
    reply.s = [LETTERS[circuit.state], this.failures.length, probeSuccesses, probesInFlight, this.openedAt, store.lastSecond];
    return reply;
  }

  /** Every operation starts from the stored text; while calls of this generation are in flight it cannot, since their permits would be void. */
  #read() {
    const { circuit, store } = this;
    if (store.forgot()) {
      // Closed and empty, without an event. A closed circuit needs nothing for that: what it held is too old to count.
      if (circuit.state !== "closed") {
        circuit.reset();
        circuit.takeMoved();
      }
      [this.failures, this.openedAt] = [[], null];
      return;
    }
    const text = store.read();
    const { generation } = circuit.inspect();
    if (text === undefined || [...this.#calls.values()].includes(generation)) return;
    circuit.breaker.restore(text);
    assert.equal(circuit.breaker.snapshot(), text, "text to circuit to text");
  }

  async #begin(c, t, reply) {
    const { circuit } = this;
    const { kind, reason, retryAt } = await circuit.begin(c);
    reply.ok = kind !== "rejected";
    if (!reply.ok) {
      reply.retry_s = reason === "probes_busy" ? 0 : Math.ceil((retryAt - t) / 1000);
      return false;
    }
    this.#calls.set(c, circuit.inspect().generation);
    return circuit.state === "half_open";
  }

  /** By hand, without a call. While open theirs treats it as if the circuit were closed: below the threshold it closes. */
  #record(out, nowS, reply) {
    const { circuit } = this;
    const { state } = circuit;
    if (state !== "open") {
      circuit.record(out);
      this.#note(out, state === "closed", nowS);
      return out !== "ignored";
    }
    this.#note(out, true, nowS);
    if (out === "ignored") return false;
    if (out === "failure" && this.failures.length >= this.threshold) {
      circuit.force("open");
      this.openedAt = nowS;
      return true;
    }
    reply.tr = [["O", "C", out === "failure" ? "failure_recorded" : "success"]];
    circuit.force("closed");
    for (const _ of this.failures) circuit.record("failure");
    circuit.takeMoved();
    this.openedAt = null;
    return true;
  }

  /** Keeps the instants of the failures a closed circuit counted. */
  #note(out, counted, nowS) {
    if (!counted || out === "ignored") return;
    this.failures = out === "success" ? [] : [...this.#young(nowS), nowS];
  }

  #young(nowS) {
    return this.failures.filter((failedAt) => failedAt + this.windowS >= nowS);
  }

  #noteMoves(op, nowS, reply) {
    const { circuit } = this;
    const moved = circuit.takeMoved();
    for (const { to, reason } of moved) {
      if (to === "open") this.openedAt = nowS;
      if (to === "open" && reason === "probe_failed") this.failures = [nowS];
      if (to !== "open") this.failures = [];
      if (to === "closed") this.openedAt = null;
    }
    reply.tr ??= arrows(moved, ({ reason }) => REASONS[reason]);
    if (circuit.state === "closed" && (op === "end" || op === "rec")) {
      assert.equal(circuit.inspect().counts.failures, this.#young(nowS).length, "the core counts the failures that are shown");
    }
  }
}

/** One text with a lifetime that every write renews; alive up to and including its last second. */
export class Forgetful {
  /** The last second in which the text exists; null: nothing is stored. */
  lastSecond = null;
  #store;

  constructor(ttlS, clock) {
    this.ttlS = ttlS;
    this.clock = clock;
    this.#store = memoryStore({ clock });
  }

  write(text) {
    this.#store.set("circuit", text, { ttlMs: (this.ttlS + 1) * 1000 });
    this.lastSecond = this.clock() / 1000 + this.ttlS;
  }

  read() {
    return this.#store.get("circuit")?.snapshot;
  }

  delete() {
    this.#store.delete("circuit");
    this.lastSecond = null;
  }

  /** Did it just end? */
  forgot() {
    const over = this.lastSecond !== null && this.read() === undefined;
    if (over) this.lastSecond = null;
    return over;
  }
}
