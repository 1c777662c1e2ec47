// Two breakers written by hand in plain JavaScript: what they cost is what any package must be measured against.

/** What a person writes in an afternoon: an async function, and a fresh error with a stack for every refused call. */
export class Tiny {
  constructor(fn, options) {
    this.fn = fn;
    this.rate = options.rate;
    this.minimum = options.minimum;
    this.openMs = options.openMs;
    this.fallback = options.fallback;
    this.ring = options.kind === "calls" ? new Uint8Array(options.size) : null;
    this.windowMs = options.size;
    this.at = 0;
    this.state = "closed";
    this.since = Date.now();
    this.calls = 0;
    this.failures = 0;
  }

  async run() {
    if (this.state !== "closed") {
      if (this.refuses()) {
        if (this.fallback) return this.fallback();
        throw new Error("circuit open");
      }
      this.state = "half_open";
    }
    let value;
    try {
      value = await this.fn();
    } catch (error) {
      this.record(1);
      throw error;
    }
    this.record(0);
    return value;
  }

  refuses() {
    return this.state === "half_open" || Date.now() - this.since < this.openMs;
  }

  record(failed) {
    if (this.state === "open") return;
    if (this.state === "half_open") return this.enter(failed ? "open" : "closed");
    if (this.ring) this.slide(failed);
    else this.count();
    this.failures += failed;
    if (failed && this.calls >= this.minimum && this.failures * 100 >= this.rate * this.calls) this.enter("open");
  }

  slide(failed) {
    if (this.calls === this.ring.length) this.failures -= this.ring[this.at];
    else this.calls++;
    this.ring[this.at] = failed;
    this.at = this.at + 1 === this.ring.length ? 0 : this.at + 1;
  }

  count() {
    const now = Date.now();
    if (now - this.since >= this.windowMs) {
      this.since = now;
      this.calls = this.failures = 0;
    }
    this.calls++;
  }

  enter(state) {
    this.state = state;
    this.since = Date.now();
    this.calls = this.failures = 0;
    this.ring?.fill(0);
  }
}

/**
 * The least JavaScript that still keeps a window: the caller gets the function's own promise, two handlers made once
 * watch it, and the refused calls share one error. It cheats a little: watching hides a rejection that nobody handles.
 */
export class Floor extends Tiny {
  constructor(fn, options) {
    super(fn, options);
    this.ok = () => this.record(0);
    this.bad = () => this.record(1);
    this.refusal = null;
  }

  run() {
    if (this.state !== "closed") {
      if (this.refuses()) {
        return this.fallback ? Promise.resolve(this.fallback()) : this.refused();
      }
      this.state = "half_open";
      this.refusal = null;
    }
    const promise = this.fn();
    promise.then(this.ok, this.bad);
    return promise;
  }

  refused() {
    if (this.refusal === null) {
      this.refusal = Promise.reject(Object.create(Error.prototype, { message: { value: "circuit open" } }));
      this.refusal.catch(() => {});
    }
    return this.refusal.then();
  }
}
