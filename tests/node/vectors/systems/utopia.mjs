// utopia: two buckets aligned to the epoch, a ratio in doubles, slots counted in the process, optionally a verdict shared by two.
import { memoryStore } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { LETTERS } from "../circuit.mjs";

export const options = (policy) => ({
  window: { kind: "time", ms: policy.window_s * 2000, buckets: 2 },
  failureRate: policy.ratio > 0 && policy.ratio <= 1 ? simplest(policy.ratio) : policy.ratio,
  minimumCalls: policy.min,
  openMs: policy.timeout_s * 1000,
  probeLimit: null, // the slots are those of a process, see `running`
  probeSuccesses: policy.successes,
  probeLeaseMs: null,
});

export class Utopia {
  static title = "utopia";
  static reportsTransitions = false;
  #beganAt = new Map();
  #joined = false;

  constructor(policy, t0, make) {
    this.clock = fakeClock(t0);
    this.buckets = new BucketClock(policy.window_s * 1000, t0);
    // Two instances are two breakers of one key over one store, as anybody would share a circuit.
    const store = policy.instances > 1 ? memoryStore({ clock: this.clock }) : undefined;
    const shared = { openedAt: null };
    this.instances = Array.from({ length: policy.instances ?? 1 }, () => {
      return new Instance(make(options(policy), { clock: this.clock, store }), policy.permitted, shared);
    });
  }

  async step({ t, op, c, out, i = 0 }) {
    if (!this.#joined) await this.#join();
    this.clock.set(this.buckets.at(t));
    // A call ends where it began.
    if (op === "begin") this.#beganAt.set(c, i);
    const instance = this.instances[op === "end" ? this.#beganAt.get(c) : i];
    instance.meet();
    const reply = {};
    if (op === "begin") await instance.begin(c, reply);
    else if (op === "end") await instance.end(c, out, reply);
    else if (op === "trip") instance.trip();
    else reply.get = await instance.get();
    await instance.leave();
    reply.s = instance.shown();
    return reply;
  }

  /** A circuit reads its store at its first call; one that is ignored while all are closed and empty is none. */
  async #join() {
    this.#joined = true;
    for (const { circuit } of this.instances) await circuit.look();
  }
}

class Instance {
  /** Failures and calls in the window as of the last outcome or the last move of its own. */
  tally = [0, 0];
  openedAt = null;
  /** Slots of one process: taken by running probes, never by time or by a transition given back. */
  running = new Set();

  constructor(circuit, permitted, shared) {
    Object.assign(this, { circuit, permitted, shared });
    this.generation = circuit.inspect().generation;
  }

  /** What the sibling decided has arrived through the store; when it opened is no part of it. */
  meet() {
    if (this.circuit.inspect().generation !== this.generation) this.openedAt = this.shared.openedAt;
  }

  async leave() {
    const { circuit } = this;
    for (const { to, at } of circuit.takeMoved()) {
      // Half-open and closed begin empty; what led to open stays readable.
      if (to === "open") this.openedAt = at;
      else this.tally = [0, 0];
      if (to === "closed") this.openedAt = null;
    }
    await circuit.breaker.flush();
    this.generation = circuit.inspect().generation;
    this.shared.openedAt = this.openedAt;
  }

  async begin(c, reply) {
    await this.circuit.look();
    if (this.circuit.state === "half_open" && this.running.size >= this.permitted) {
      Object.assign(reply, { adm: "fallback", why: "half_open_saturated" });
      return;
    }
    const { kind } = await this.circuit.begin(c);
    if (kind === "probe") this.running.add(c);
    reply.adm = { allowed: "run", probe: "probe", rejected: "fallback" }[kind];
    if (kind === "rejected") reply.why = "open";
  }

  async end(c, out, reply) {
    const { circuit } = this;
    reply.res = out === "success" ? "value" : "fallback";
    this.running.delete(c);
    const { stale, moved } = await circuit.end(c, out);
    if (stale) {
      reply.fenced = "dropped";
    } else if (moved?.from === "closed" || (!moved && circuit.state === "closed")) {
      const { calls, failures } = moved?.counts ?? circuit.inspect().counts;
      this.tally = [failures, calls];
    }
  }

  trip() {
    this.circuit.force("open");
    this.openedAt = this.circuit.clock(); // also when it was open already, which no transition tells
  }

  /** Reading moves an open circuit that is due. */
  async get() {
    await this.circuit.look();
    return LETTERS[this.circuit.state];
  }

  shown() {
    const { circuit, openedAt, running } = this;
    const [failures, calls] = this.tally;
    const { probeSuccesses } = circuit.inspect();
    // While half-open theirs counts failed probes: the first one reopens.
    const shown = circuit.state === "half_open" ? 0 : failures;
    return [LETTERS[circuit.state], shown, probeSuccesses, calls, openedAt === null ? null : Math.floor(openedAt / 1000), running.size];
  }
}

/**
 * Theirs drops both buckets when the clock goes back by a bucket; ours takes the last good instant. So a step back goes on here two
 * buckets later instead, which drops both as well.
 */
export class BucketClock {
  #ahead = 0;

  constructor(bucketMs, t0) {
    this.bucketMs = bucketMs;
    this.last = t0;
  }

  at(t) {
    const bucket = (at) => Math.floor(at / this.bucketMs);
    const back = bucket(this.last) - bucket(t);
    if (back > 0) this.#ahead += (back + 2) * this.bucketMs;
    this.last = t;
    return t + this.#ahead;
  }
}

/**
 * The simplest fraction that, divided in doubles, gives `ratio` again. Theirs tests `failures / calls >= ratio` in doubles: a quotient
 * equal to a simple fraction rounds to the same double, any other of counts this small is many roundings away. So the exact test of
 * the fraction decides alike.
 */
export function simplest(ratio) {
  let [before, last] = [[0, 1], [1, 0]];
  for (let rest = ratio; ; ) {
    const whole = Math.floor(rest);
    const next = [whole * last[0] + before[0], whole * last[1] + before[1]];
    if (next[1] > 1e9) throw new RangeError(`No fraction with nine digits is ${ratio}`);
    if (next[0] / next[1] === ratio) return next;
    [before, last] = [last, next];
    rest = 1 / (rest - whole);
  }
}
