// Circuits by key, bounded. An idle circuit is a number in a map; its breaker is made when somebody asks, and kept only while it matters.

import { breakerAt, type CircuitBreaker, isIdle, place } from "./breaker.js";
import { whole } from "./errors.js";
import { type BreakerEvents, hear, listen, noListeners, tell } from "./events.js";
import { type Inspection, inspection } from "./inspection.js";
import { parseKey } from "./key.js";
import { type BreakerOptions, type Config, type Home, OPTIONS, parseOptions } from "./options.js";
import { type CircuitPolicy, known, parsePolicy, type Rules } from "./policy.js";
import { core, inspect } from "./runtime.js";

/** Circuits a full registry looks at for a call. */
const FEW = 8;

/** A circuit that somebody may hold a breaker of. */
interface Live extends Home {
  ref: { deref(): CircuitBreaker | undefined } | undefined;
}

/**
 * Circuits by key, which share options and listeners. `get` makes the circuit at its first call and gives the same breaker as long as
 * somebody holds it. At most `maxCircuits` (default 500): a new one takes the place of the least recently used circuit that is closed,
 * not held and has no call in flight. Where there is none, calls of the new one pass uncounted and a diagnostic says so. Where the host
 * has no WeakRef, at most as many breakers that lost their circuit are remembered as there may be circuits.
 *
 * The policy may be a function of the key; give back the same object for the same policy. Throws InvalidCircuitError.
 */
export class CircuitRegistry {
  readonly #policy: CircuitPolicy | ((key: string) => CircuitPolicy);
  readonly #config: Config;
  readonly #max: number;
  readonly #listeners = noListeners();
  /** In order of use once it is half full. A number: the handle of an idle circuit. */
  readonly #circuits = new Map<string, number | Live>();
  /** Breakers that have lost their circuit, or never had one. */
  readonly #outside = new Map<string, Live>();
  readonly #configs = new WeakMap<object, Config>();
  readonly #collected: FinalizationRegistry<[key: string, live: Live]> | undefined;
  #latest = "";
  /** The last look through all of them found none to evict. */
  #full = false;
  #told = false;
  #disposed = false;

  constructor(policy: CircuitPolicy | ((key: string) => CircuitPolicy) = {}, options: BreakerOptions & { maxCircuits?: number } = {}) {
    known(options, [...OPTIONS, "maxCircuits"]);
    this.#policy = policy;
    this.#max = whole("maxCircuits", options.maxCircuits ?? 500, 1, 2 ** 31);
    const rules = typeof policy === "function" ? undefined : parsePolicy(policy);
    const enter = (breaker: CircuitBreaker, live: Home): void => {
      if (this.#circuits.has(breaker.key)) return; // another breaker has taken the key since this one was forgotten
      if ((live.handle = this.#make(this.#configOf(breaker.key))) < 0) return;
      this.#outside.delete(breaker.key);
      this.#circuits.set(breaker.key, live as Live);
      place(breaker);
    };
    const leave = ({ key }: CircuitBreaker, live: Home): void => {
      core.drop(live.handle);
      for (const map of [this.#circuits, this.#outside]) if (map.get(key) === live) map.delete(key);
    };
    this.#config = { ...parseOptions(options, rules), registry: { listeners: this.#listeners, enter, leave } };
    if (typeof WeakRef !== "undefined" && typeof FinalizationRegistry !== "undefined") {
      this.#collected = new FinalizationRegistry(([key, live]) => {
        if (this.#outside.get(key) === live) this.#outside.delete(key);
        if (this.#circuits.get(key) === live) this.#circuits.set(key, live.handle);
      });
    }
  }

  /** Circuits that are kept. */
  get size(): number {
    return this.#circuits.size;
  }

  /** The breaker of a key. Throws InvalidCircuitError for a key, or a policy of the function, that cannot work. */
  get(key: string): CircuitBreaker {
    const found = this.#circuits.get(key) ?? this.#outside.get(key);
    const held = breakerOf(found);
    if (held) {
      this.#used(key);
      return held;
    }
    const config = this.#configOf(found === undefined ? parseKey(key) : key);
    const kept = found === undefined ? -1 : handleOf(found);
    const handle = kept < 0 ? this.#make(config) : kept;
    const live: Live = { handle, keep: undefined, ref: undefined };
    const breaker = breakerAt(key, config, live);
    live.ref = this.#collected ? new WeakRef(breaker) : strongRef(breaker);
    this.#collected?.register(breaker, [key, live]);
    if (this.#disposed) breaker.dispose();
    else if (handle < 0) this.#leave(key, live);
    else this.#circuits.set(key, live);
    if (found === undefined && this.#listeners.state.size > 0) tell(this.#listeners.state, breaker.inspect());
    if (found !== undefined) this.#used(key);
    return breaker;
  }

  /** The policy of a key, as it was given. Makes no circuit. */
  policyOf(key: string): Readonly<CircuitPolicy> {
    return this.#configOf(key).given;
  }

  /** What holds now in every circuit. */
  inspect(): Inspection[] {
    const now = this.#config.clock();
    return [...this.#circuits].map(([key, circuit]) => inspection(key, handleOf(circuit), now));
  }

  /** Hears of all circuits; see `on` of CircuitBreaker. */
  on<E extends keyof BreakerEvents>(event: E, listener: (detail: BreakerEvents[E]) => void, options?: { signal?: AbortSignal }): () => void {
    const stop = listen(this.#listeners, event, listener, options?.signal, () => {
      if (event === "outcome" || event === "admitted") for (const breaker of this.#live()) place(breaker);
    });
    if (event === "state" && !options?.signal?.aborted) for (const found of this.inspect()) hear(listener, found);
    return stop;
  }

  /** Writes what the store lacks, of every circuit. */
  async flush(): Promise<void> {
    await Promise.all([...this.#live()].map((breaker) => breaker.flush()));
  }

  /** Gives up all circuits; see `dispose` of CircuitBreaker. */
  dispose(): void {
    this.#disposed = true;
    const breakers = [...this.#live()];
    for (const circuit of this.#circuits.values()) if (!breakerOf(circuit)) core.drop(handleOf(circuit));
    this.#circuits.clear();
    for (const breaker of breakers) breaker.dispose();
  }

  *#live(): Generator<CircuitBreaker> {
    for (const map of [this.#circuits, this.#outside]) {
      for (const circuit of map.values()) {
        const breaker = breakerOf(circuit);
        if (breaker) yield breaker;
      }
    }
  }

  #configOf(key: string): Config {
    if (typeof this.#policy !== "function") return this.#config;
    const policy = this.#policy(key);
    let config = this.#configs.get(policy);
    if (!config) {
      const rules: Rules = parsePolicy(policy);
      config = { ...this.#config, ...rules };
      this.#configs.set(policy, config);
    }
    return config;
  }

  /** A new circuit's handle, or −1: there is no room. */
  #make(config: Config): number {
    if (this.#disposed || (this.#circuits.size >= this.#max && !this.#evict())) return -1;
    return core.create(config.policy, config.clock());
  }

  /**
   * Takes the place of the least recently used circuit that is idle. What is in use goes to the back, so that nobody looks at it again soon;
   * once all were looked at in vain, a call looks at a few only: in an outage every call of a new key comes here.
   */
  #evict(): boolean {
    const now = this.#config.clock();
    let looks = this.#full ? Math.min(FEW, this.#circuits.size) : this.#circuits.size;
    for (const [key, circuit] of this.#circuits) {
      if (looks-- === 0) break;
      const handle = handleOf(circuit);
      const [state, held] = inspect(handle, now);
      const breaker = breakerOf(circuit);
      this.#circuits.delete(key);
      if (state !== 0 || held !== 0 || (breaker && !isIdle(breaker))) {
        this.#circuits.set(key, circuit);
        continue;
      }
      if (breaker) {
        (circuit as Live).handle = -1;
        this.#leave(key, circuit as Live);
        place(breaker);
      }
      core.drop(handle);
      this.#full = false;
      return true;
    }
    this.#full = true;
    if (!this.#told) {
      this.#told = true;
      const message = `The registry is full (maxCircuits: ${this.#max}) and no circuit is idle: calls of others pass uncounted`;
      tell(this.#listeners.diagnostic, { key: "", code: "registry_full", message, at: now });
    }
    return false;
  }

  /** Remembers a breaker without a circuit as long as somebody holds it; where nobody can know that, as many of them as there may be circuits. */
  #leave(key: string, live: Live): void {
    this.#outside.set(key, live);
    if (this.#collected || this.#outside.size <= this.#max) return;
    for (const [oldest] of this.#outside) return void this.#outside.delete(oldest);
  }

  /** Keeps the order of use. Before it is half full nothing will be evicted soon, so it is not paid for. */
  #used(key: string): void {
    if (this.#circuits.size * 2 <= this.#max || key === this.#latest) return;
    this.#latest = key;
    const circuit = this.#circuits.get(key);
    if (circuit === undefined) return;
    this.#circuits.delete(key);
    this.#circuits.set(key, circuit);
  }
}

/** Where there are no weak ones. Not inline: what is made beside it must not hold the breaker as well. */
const strongRef = (breaker: CircuitBreaker): Live["ref"] => ({ deref: () => breaker });

const handleOf = (circuit: number | Live): number => (typeof circuit === "object" ? circuit.handle : circuit);
const breakerOf = (circuit: number | Live | undefined): CircuitBreaker | undefined => (typeof circuit === "object" ? circuit.ref?.deref() : undefined);
