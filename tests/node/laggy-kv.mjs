// Workers KV as it is in production and not in the simulator: every place reads copies of its own, also of there being nothing, and a key
// takes one write a second from all of them together. tests/workerd checks on the real runtime what both refuse.

const LAG_MS = 60_000;
const WRITE_EVERY_MS = 1_000;

export class LaggyKv {
  #clock;
  #values = new Map();
  #places = new Map();
  /** What was asked for: `gets` from all places, `puts` that were accepted, `refused` those that were not. */
  gets = [];
  puts = [];
  refused = [];

  constructor(clock) {
    this.#clock = clock;
  }

  /** What is there, whatever the places see of it. */
  value(key) {
    const found = this.#values.get(key);
    return found && this.#clock() < found.until ? found.value : null;
  }

  /** As if its time were over, and every place knew. */
  lose(key) {
    this.#values.delete(key);
    for (const copies of this.#places.values()) copies.delete(key);
  }

  /** The namespace as the isolates of one place have it. */
  at(place) {
    const copies = new Map();
    this.#places.set(place, copies);
    const copy = (key) => copies.set(key, { value: this.value(key), until: this.#clock() + LAG_MS });
    return {
      get: async (key) => {
        this.gets.push({ place, at: this.#clock() });
        if (!(this.#clock() < copies.get(key)?.until)) copy(key);
        return copies.get(key).value;
      },
      put: async (key, value, { expirationTtl = Infinity } = {}) => {
        const now = this.#clock();
        const wrong = !(expirationTtl >= 60) || (expirationTtl < Infinity && !Number.isInteger(expirationTtl));
        const soon = now - (this.#values.get(key)?.at ?? -Infinity) < WRITE_EVERY_MS;
        if (wrong || soon) {
          this.refused.push({ place, at: now });
          throw new Error(wrong ? `KV PUT failed: 400 Invalid expiration_ttl of ${expirationTtl}.` : "KV PUT failed: 429 Too Many Requests");
        }
        this.puts.push({ place, value, expirationTtl, at: now });
        this.#values.set(key, { value, at: now, until: now + expirationTtl * 1_000 });
        copy(key);
      },
      delete: async (key) => {
        this.#values.delete(key);
        copy(key);
      },
    };
  }
}
