/// <reference lib="esnext.disposable" preserve="true" />
// One circuit and the calls it guards. The core decides; here a call is let in or refused, its outcome is handed over, and what
// happened is told. A closed circuit that nobody watches costs one crossing a call, after the function has answered.

import { type Awaitable, isThenable, type WaitUntil } from "./awaitable.js";
import { either, started, timer } from "./calls.js";
import { type CallOutcome, FAILURE, IGNORED, isDeadline, parseOutcome, SUCCESS, VERDICTS, type Verdict } from "./classify.js";
import { CircuitError, CircuitOpenError, InvalidCircuitError, StoreError, whole, withoutStack } from "./errors.js";
import { type BreakerEvents, type CircuitState, hear, REASONS, type RefusalReason } from "./events.js";
import { explanation } from "./explain.js";
import { report } from "./host.js";
import { HELD, type Inspection, inspection, orNull, STATES } from "./inspection.js";
import { parseKey } from "./key.js";
import { type BreakerOptions, type CallOptions, type Config, type Home, OPTIONS, parseOptions, type RunOptions } from "./options.js";
import { type CircuitPolicy, known, parsePolicy } from "./policy.js";
import * as runtime from "./runtime.js";
import { block, core, isProbe } from "./runtime.js";
import { type ProbeOutcome, share, type Shared } from "./sharing.js";
import type { CircuitStore } from "./store.js";
import { Teller } from "./teller.js";

/** A permit of `admit`. Give it back once, with how it went; later calls do nothing. */
export interface Permit {
  readonly kind: "allowed" | "probe";
  settle(outcome: Verdict | CallOutcome): void;
}
export interface Refusal {
  readonly kind: "rejected";
  readonly reason: RefusalReason;
  readonly retryAt: number | null;
}
export type Admission = Permit | Refusal;

const REFUSALS = ["open", "held_open", "probes_busy"] as const;
/** Refused; anything lower is let through uncounted. */
const isRefusal = (token: number): boolean => token < 0 && token > -4;
const PROBLEMS = ["too_long", "unknown_version", "malformed", "clamped", "other_window"];
const NO_OPTIONS: CallOptions<never> = {};

interface Call {
  readonly token: number;
  /** By the own clock, which never changes to a store's meanwhile. */
  readonly began: number;
  readonly options: CallOptions<unknown>;
  late: boolean;
}

/** What `new CircuitBreaker` is handed by a registry. */
let handed: { config: Config; home: Home } | undefined;
/** Gives back what a collected breaker left in the module. */
let reaper: FinalizationRegistry<number> | undefined;

/** A breaker for a circuit that a registry keeps. */
export function breakerAt(key: string, config: Config, home: Home): CircuitBreaker {
  handed = { config, home };
  return new CircuitBreaker(key);
}

/** What registries may do to their breakers. `place`: the handle has changed, to −1 perhaps, or who listens has. */
export let place: (breaker: CircuitBreaker) => void;
export let isIdle: (breaker: CircuitBreaker) => boolean;

/**
 * Guards calls to one service. Refuses them while the service fails, and lets a probe through from time to time.
 *
 * ```js
 * const payments = new CircuitBreaker("http.payments", { failureRate: 0.5, minimumCalls: 10 });
 * const receipt = await payments.run((signal) => pay(order, signal), { timeoutMs: 2_000, fallback: () => queued(order) });
 * ```
 *
 * Throws InvalidCircuitError for a key, policy or option that cannot work. Keys: a-z and 0-9 joined by single `.`, `_` or `-`.
 */
export class CircuitBreaker {
  readonly key: string;
  readonly #config: Config;
  readonly #home: Home | undefined;
  #shared: Shared | undefined;
  /** The store's, where it has one. */
  #clock: () => number;
  /** The circuit in the module, −1: none. */
  #handle = -1;
  /** The token of every call while the quick way may be taken, else −1. */
  #token = -1;
  #ok!: <T>(value: T) => T;
  #bad!: (reason: unknown) => never;
  #running = 0;
  #rescuing = 0;
  #disposed = false;
  readonly #teller: Teller;
  /** The failure that opened the circuit. */
  #cause: { cause: unknown } | undefined;
  #error: CircuitOpenError | undefined;
  #refused: Promise<never> | undefined;

  static {
    place = (breaker) => {
      const { handle } = breaker.#home!;
      const { store } = breaker.#config;
      if (store && handle !== breaker.#handle) {
        if (handle < 0) breaker.#shared?.close();
        else breaker.#join(store);
      }
      breaker.#handle = handle;
      breaker.#arm();
    };
    isIdle = (breaker) => breaker.#running === 0 && !breaker.#teller.asked;
  }

  constructor(key: string, policy: CircuitPolicy = {}, options: BreakerOptions = {}) {
    const given = handed;
    handed = undefined;
    if (given) {
      this.key = key;
      this.#config = given.config;
      this.#home = given.home;
      this.#handle = given.home.handle;
    } else {
      this.key = parseKey(key);
      known(options, OPTIONS);
      this.#config = parseOptions(options, parsePolicy(policy));
      this.#make();
    }
    this.#teller = new Teller(key, this.#config);
    this.#clock = this.#config.clock;
    if (this.#config.store) this.#join(this.#config.store);
    this.#arm();
  }

  /** What runs the circuit. `"js"`: the host refuses WebAssembly, its translation does the same. `"none"`: not yet, or not even that; calls pass uncounted. */
  get backend(): runtime.Backend {
    return runtime.backend;
  }

  /**
   * Runs `fn` if the circuit lets it. Resolves or rejects with exactly what it gave; a refused call runs nothing and rejects with a
   * CircuitOpenError. `fn` may answer with a value, a promise or a thenable, and may throw. Its signal is undefined unless `signal` or
   * `timeoutMs` is given. What is not a function rejects with a TypeError.
   */
  run<T>(fn: (signal: AbortSignal | undefined) => Awaitable<T>, options?: RunOptions<T>): Promise<T> {
    if (options !== undefined || this.#token < 0 || typeof fn !== "function") return this.#slow(fn, options ?? NO_OPTIONS);
    // A closed circuit changes only in a settle or a verb of this object, never by time, so nobody has to be asked before `fn`.
    // The handlers carry the token of this generation: taken before `fn`, which may end it.
    const ok = this.#ok;
    const bad = this.#bad;
    this.#running++;
    return started(fn, undefined).then(ok, bad);
  }

  /** Asks for one call, for work that is not one function. Rejects with ERR_CIRCUIT_DISPOSED after `dispose`. */
  admit(): Promise<Admission> {
    try {
      this.#live();
    } catch (error) {
      return Promise.reject(error);
    }
    const permit = (): Awaitable<Admission> => {
      const token = this.#admit();
      return isThenable(token) ? token.then((token) => this.#permit(token)) : this.#permit(token);
    };
    const reading = this.#read(undefined, true);
    return reading ? reading.then(permit) : Promise.resolve(permit());
  }

  /** Counts an outcome without a permit, judged in whatever state the circuit is now, also if the call began in another one (phil). */
  record(outcome: Verdict | CallOutcome): void {
    const { verdict, duration = NaN, until = NaN } = parseOutcome(outcome);
    this.#write((at) => {
      const bits = core.record(this.#handle, verdict, duration, until, at);
      this.#settled(bits, { token: -1, verdict, duration, at, waitUntil: undefined, cause: undefined, fallback: false });
      this.#shared?.settled(verdict === FAILURE);
    });
  }

  /** The policy, as it was given. */
  get policy(): Readonly<CircuitPolicy> {
    return this.#config.given;
  }

  /** What holds at `now`, default: the clock's. Reading changes nothing and tells nothing. */
  inspect(now?: number): Inspection {
    if (this.#shared?.local) this.#read();
    return inspection(this.key, this.#handle, now ?? this.#clock());
  }

  /** An open circuit that is due reads `half_open`. A disposed one reads `closed`: it refuses nothing. */
  get state(): CircuitState {
    return this.inspect().state;
  }

  /** Moves the circuit by hand. What was forced open cools down as usual, at `until` if that is given (capped by `maxOpenMs`). */
  force(state: CircuitState, until?: number): void {
    const to = choose("state", state, STATES);
    this.#command((at) => core.force(this.#handle, to, until ?? NaN, at));
  }

  /** An operator's override that time does not end, until `release`, `force` or `reset`. */
  hold(as: "open" | "closed"): void {
    const held = choose("as", as, HELD);
    this.#command((at) => core.hold(this.#handle, held, at));
  }

  /** Ends a hold: closed and empty. Without a hold it does nothing. */
  release(): void {
    this.#command((at) => core.release(this.#handle, at));
  }

  /** Closed and empty, whatever was. */
  reset(): void {
    this.#command((at) => core.reset(this.#handle, at));
  }

  /** Everything that must survive, as text of at most 32 kB. */
  snapshot(): string {
    this.#live();
    if (this.#shared?.local) this.#read();
    return runtime.textOf(core.encode(this.#handle));
  }

  /** Replaces the circuit by a stored one. Takes any text and blocks nothing: what cannot be is replaced, and told as a diagnostic. */
  restore(text: string): void {
    this.#write((at) => this.#restore(text, at));
  }

  /**
   * Calls `listener` for every such event, until the returned function is called or `options.signal` aborts. Events come in order, after
   * the circuit has moved. A listener may call anything: reads see what the event told, verbs wait until it has been told to everybody.
   * What a listener throws is reported to the host. Nothing is told about the past, but `state` begins with what holds.
   */
  on<E extends keyof BreakerEvents>(event: E, listener: (detail: BreakerEvents[E]) => void, options?: { signal?: AbortSignal }): () => void {
    const stop = this.#teller.on(event, listener, options?.signal, () => this.#arm());
    if (event === "state" && !options?.signal?.aborted) hear(listener, this.inspect());
    return stop;
  }

  /**
   * What holds now and why, in one sentence for a log or a screen: "open since 12:04:07 UTC: 9 of 12 calls in the last 30 s failed, limit
   * 50 %; next probe in 8 s". The wording may change; for programs there is `inspect`.
   */
  explain(now = this.#clock()): string {
    return explanation(this.inspect(now), this.#config.given, now);
  }

  /** Writes what the store lacks. Resolves, also when the store fails. */
  flush(): Promise<void> {
    return Promise.resolve(this.#shared?.flush());
  }

  /** Like `dispose`. */
  [(Symbol.dispose ?? "dispose") as PropertyKey as string](): void {
    this.dispose();
  }

  /** Like `flush`, then `dispose`. */
  async [(Symbol.asyncDispose ?? "dispose") as PropertyKey as string](): Promise<void> {
    await this.flush();
    this.dispose();
  }

  /**
   * Gives up the circuit: what is not yet in the store is written, listeners and memory are released. Calls in flight reach their callers.
   * `run` goes on to run functions, uncounted; the other verbs throw ERR_CIRCUIT_DISPOSED. A second time it does nothing.
   */
  dispose(): void {
    this.#teller.step(() => {
      if (this.#disposed) return;
      this.#disposed = true;
      this.#teller.silence();
      const leave = (): void => {
        reaper?.unregister(this);
        if (this.#home) this.#config.registry!.leave(this, this.#home);
        else core.drop(this.#handle);
        this.#handle = -1;
      };
      const closing = this.#shared?.close();
      this.#arm();
      if (closing) void closing.then(leave);
      else leave();
    });
  }

  /** The way for every call that is not the quick one. */
  #slow<T>(fn: (signal: AbortSignal | undefined) => Awaitable<T>, options: CallOptions<T>): Promise<T> {
    if (typeof fn !== "function") return Promise.reject(new TypeError("run takes a function"));
    if (options.timeoutMs !== undefined) {
      try {
        whole("timeoutMs", options.timeoutMs, 1);
      } catch (error) {
        return Promise.reject(error);
      }
    }
    const reading = options.signal?.aborted ? undefined : this.#read(options.waitUntil, true);
    return reading ? reading.then(() => this.#enter(fn, options)) : this.#enter(fn, options);
  }

  #enter<T>(fn: (signal: AbortSignal | undefined) => Awaitable<T>, options: CallOptions<T>): Promise<T> {
    if (options.signal?.aborted) return Promise.reject(options.signal.reason);
    const token = this.#admit(options.waitUntil);
    return isThenable(token) ? Promise.resolve(token).then((token) => this.#start(fn, options, token)) : this.#start(fn, options, token);
  }

  #start<T>(fn: (signal: AbortSignal | undefined) => Awaitable<T>, options: CallOptions<T>, token: number): Promise<T> {
    const { signal, timeoutMs, probe } = options;
    if (isRefusal(token)) return this.#refuse(token, this.#clock(), options.fallback);
    if (isProbe(token) || !signal?.aborted) this.#admitted(token);
    if (signal?.aborted) {
      // While others were asked.
      if (isProbe(token)) this.#settle(token, IGNORED, NaN, NaN, options.waitUntil);
      return Promise.reject(signal.reason);
    }

    const call: Call = { token, began: this.#config.clock(), options: options as CallOptions<unknown>, late: false };
    const work = isProbe(token) && probe ? probe : fn;
    this.#running++;
    if (timeoutMs === undefined) {
      return started(work, signal).then(
        (value) => this.#end(call, true, value),
        (error) => this.#end(call, false, error),
      );
    }

    const controller = new AbortController();
    return new Promise((resolve, reject) => {
      const end = (ok: boolean, value: unknown): void => {
        if (stop === undefined) return; // the late end of a call that timed out
        stop();
        stop = undefined;
        try {
          resolve(this.#end<T>(call, ok, value));
        } catch (error) {
          reject(error);
        }
      };
      let stop: (() => void) | undefined = timer(timeoutMs, () => {
        call.late = !signal?.aborted;
        const reason: unknown = call.late ? new DOMException(`The call took longer than ${timeoutMs} ms`, "TimeoutError") : signal?.reason;
        end(false, reason);
        controller.abort(reason);
      });
      started(work, signal ? either(signal, controller) : controller.signal).then(
        (value) => end(true, value),
        (error) => end(false, error),
      );
    });
  }

  /** A token from 0; −1 to −3: refused; anything else: let it through uncounted. A promise where others have to agree to a probe. */
  #admit(waitUntil?: WaitUntil): Awaitable<number> {
    if (this.#disposed) return -100;
    this.#placed();
    const shared = this.#shared;
    // One instant for all: what is not due when others would have to agree is not due a millisecond later.
    const at = this.#clock();
    shared?.refresh(at, waitUntil);
    const claimed = shared?.claim(at);
    if (claimed !== undefined) return claimed;
    const token = this.#ask(at);
    if (isProbe(token)) shared?.probing(waitUntil);
    return token;
  }

  #ask(at = this.#clock()): number {
    const token = core.admit(this.#handle, at);
    if (isProbe(token)) {
      this.#teller.step(() => this.#drain());
    } else if (token < -16 && token > -20) {
      this.#rejected(token + 16, at, true, false);
    } else if (token < -20 && runtime.backend === "none") {
      this.#teller.diagnose("no_wasm", "This host refuses WebAssembly: calls pass uncounted", runtime.refusal, true);
    }
    return token;
  }

  #refuse<T>(token: number, at: number, fallback: ((error: unknown) => Awaitable<T>) | undefined): Promise<T> {
    this.#rejected(token, at, false, fallback !== undefined);
    if (fallback) return this.#rescue(fallback, this.#openError(token, at), "refusal");
    if (token === -3) return Promise.reject(this.#openError(token, at));
    if (this.#refused === undefined) {
      this.#refused = Promise.reject(this.#openError(token, at));
      this.#refused.catch(() => {});
    }
    return this.#refused.then();
  }

  /** One for all calls that an open period refuses; what is busy now may be free at the next call, so that one is made each time. */
  #openError(token: number, at: number): CircuitOpenError {
    if (this.#error && token !== -3) return this.#error;
    const told = token === -3 ? undefined : explanation(inspection(this.key, this.#handle, at), this.#config.given);
    const make = (): CircuitOpenError =>
      new CircuitOpenError(this.key, REFUSALS[-1 - token]!, orNull(core.retry_at(this.#handle, at)), this.#clock, { ...this.#cause, told });
    const error = withoutStack(make);
    if (token !== -3) this.#error = error;
    return error;
  }

  #rejected(token: number, at: number, shadow: boolean, fallback: boolean): void {
    if (!this.#teller.heard("rejected")) return;
    const retryAt = orNull(core.retry_at(this.#handle, at));
    this.#teller.emit("rejected", { key: this.key, reason: REFUSALS[-1 - token]!, retryAt, shadow, fallback, at });
  }

  #admitted(token: number): void {
    if (token < 0 || !this.#teller.heard("admitted")) return;
    const at = this.#clock();
    this.#teller.emit("admitted", { key: this.key, state: isProbe(token) ? "half_open" : "closed", probe: isProbe(token), at });
  }

  #end<T>(call: Call, ok: boolean, value: unknown): Awaitable<T> {
    const { token, options } = call;
    const { signal, judge, rest, fallback } = options;
    const config = this.#config;
    const took = Math.max(0, config.clock() - call.began);
    this.#running--;

    let verdict: number = ok ? SUCCESS : FAILURE;
    let duration = took;
    let until = NaN;
    if (!ok && signal?.aborted && !call.late) {
      // Decided by whose signal it was, never by the error's name, and before anybody is asked: it says nothing about the service.
      if (!isDeadline(signal.reason)) verdict = IGNORED;
    } else if (!call.late) {
      try {
        const judged = judge?.(ok, value, this.#clock) ?? verdict;
        if (typeof judged === "number") verdict = judged;
        else ({ verdict, until } = judged);
        const result = ok ? { ok, value } : { ok, error: value };
        const said = options.classify?.(result, took) ?? config.classify?.(result, took);
        if (said !== undefined) {
          const outcome = parseOutcome(said);
          ({ verdict, duration = took } = outcome);
          until = outcome.until ?? (verdict === FAILURE ? until : NaN);
        }
      } catch (error) {
        verdict = IGNORED;
        if (this.#teller.diagnose("classify_failed", "A classifier failed: the outcome is ignored", error, true)) report(error);
      }
    }

    const rescue = !ok && verdict === FAILURE && options.fallbackOn === "failure" ? fallback : undefined;
    if (token >= 0) {
      const settle = (verdict: number, duration: number, cause: unknown): void =>
        this.#settle(token, verdict, duration, until, options.waitUntil, verdict === FAILURE ? { cause } : undefined, rescue !== undefined);
      const later = (final: number, error: unknown): void =>
        this.#teller.step(() => settle(final, Math.max(0, config.clock() - call.began), error));
      if (!(verdict === SUCCESS && rest?.(value, later))) settle(verdict, duration, ok && judge ? `HTTP status ${(value as Response).status}` : value);
    }
    const answer = (): Awaitable<T> => {
      if (ok) return value as T;
      if (rescue) return this.#rescue(rescue, value, "failure") as Promise<T>;
      throw value;
    };
    if (config.onStoreError !== "throw" || !this.#shared) return answer();
    return this.#stored(this.#shared, ok ? undefined : { callError: value }).then(answer, (error) => {
      if (rescue) this.#rescued("failure", { error });
      throw error;
    });
  }

  /** The store has what a call caused; or a StoreError. */
  async #stored(shared: Shared, call: { callError: unknown } | undefined): Promise<void> {
    await shared.flush();
    const { fault } = shared;
    if (fault) throw new StoreError(fault.operation, this.key, fault.cause, call);
  }

  #settle(token: number, verdict: number, duration: number, until: number, waitUntil?: WaitUntil, cause?: { cause: unknown }, fallback = false): void {
    const at = this.#clock();
    const outcome: ProbeOutcome = { token, verdict, duration, at, until, waitUntil, cause, fallback };
    if (isProbe(token) && this.#shared?.judge(outcome)) return;
    const bits =
      until === until
        ? core.settle_until(this.#handle, token, verdict, duration, at, until)
        : core.settle(this.#handle, token, verdict, duration, at);
    this.#settled(bits, outcome);
    this.#shared?.settled(verdict === FAILURE, waitUntil);
  }

  /** After an outcome has been judged. `stored`: in the store. */
  #settled(bits: number, outcome: Omit<ProbeOutcome, "until">, stored = false): void {
    const { token, verdict, duration, at, waitUntil, cause, fallback } = outcome;
    if (this.#teller.heard("outcome")) {
      // Made without spreads, which take longer than the whole call.
      const told: BreakerEvents["outcome"] = {
        key: this.key,
        verdict: VERDICTS[verdict]!,
        durationMs: orNull(duration),
        probe: isProbe(token),
        stale: (bits & 2) !== 0,
        fallback,
        at,
      };
      if (cause) told.error = cause.cause;
      this.#teller.emit("outcome", told);
    }
    if (bits & 1) this.#teller.step(() => this.#drain(outcome, false, stored));
    else if (isProbe(token) && !stored) this.#shared?.probed(waitUntil);
  }

  /** The fallback's answer instead of the error; what it throws is blamed on the error. */
  #rescue<T>(fallback: (error: unknown) => Awaitable<T>, error: unknown, after: "refusal" | "failure"): Promise<T> {
    // A fallback that asks this circuit again, with itself as fallback, ends as a refusal, not as a stack overflow.
    if (this.#rescuing > 15) {
      this.#rescued(after, { error });
      return Promise.reject(error);
    }
    const blame = (thrown: unknown): never => {
      this.#rescued(after, { error: thrown });
      if (thrown instanceof Error && thrown !== error && !("cause" in thrown) && Object.isExtensible(thrown)) {
        Object.defineProperty(thrown, "cause", { value: error, writable: true, configurable: true });
      }
      throw thrown;
    };
    this.#rescuing++;
    try {
      const answer = fallback(error);
      if (isThenable(answer)) return Promise.resolve(answer).then((value) => (this.#rescued(after), value), blame);
      this.#rescued(after);
      return Promise.resolve(answer);
    } catch (thrown) {
      return new Promise(() => blame(thrown));
    } finally {
      this.#rescuing--;
    }
  }

  /** Every call that is told with `fallback` is told once more. */
  #rescued(after: "refusal" | "failure", threw?: { error: unknown }): void {
    if (this.#teller.heard("fallback")) this.#teller.emit("fallback", { key: this.key, after, ...threw, at: this.#clock() });
  }

  #permit(token: number): Admission {
    if (isRefusal(token)) {
      const at = this.#clock();
      this.#rejected(token, at, false, false);
      return { kind: "rejected", reason: REFUSALS[-1 - token]!, retryAt: orNull(core.retry_at(this.#handle, at)) };
    }
    this.#admitted(token);
    let open = true;
    const began = this.#config.clock();
    this.#running++;
    return {
      kind: isProbe(token) ? "probe" : "allowed",
      settle: (outcome) => {
        const { verdict, duration, until = NaN } = parseOutcome(outcome);
        if (!open) return;
        open = false;
        this.#running--;
        if (token < 0) return;
        this.#teller.step(() => {
          this.#settle(token, verdict, duration ?? Math.max(0, this.#config.clock() - began), until);
        });
      },
    };
  }

  #live(): void {
    if (this.#disposed) throw new CircuitError("ERR_CIRCUIT_DISPOSED", `Circuit ${this.key} was disposed`, this.key);
  }

  #make(): void {
    this.#handle = core.create(this.#config.policy, this.#config.clock());
    if (this.#handle < 0 || typeof FinalizationRegistry === "undefined") return;
    reaper ??= new FinalizationRegistry((handle) => core.drop(handle));
    reaper.register(this, this.#handle, this);
  }

  /** A registry may have given the place away, or the core come later than the breaker. */
  #placed(): void {
    if (this.#handle >= 0 || this.#disposed) return;
    if (this.#home) return this.#config.registry!.enter(this, this.#home);
    this.#make();
    if (this.#handle < 0) return;
    if (this.#config.tally) core.share_tally(this.#handle);
    this.#arm();
  }

  /** A verb by hand. What a listener starts waits for the step that is being told. */
  #write(verb: (at: number) => void): void {
    this.#live();
    if (this.#shared?.local) this.#read();
    this.#teller.step(() => {
      this.#placed();
      verb(this.#clock());
    });
  }

  /** One that is a decision, also where it moves nothing. */
  #command(verb: (at: number) => void): void {
    this.#write((at) => {
      verb(at);
      this.#drain(undefined, true);
    });
  }

  /** Takes the transitions that wait in the module. They are told after the step, and the store is told unless it has them. */
  #drain(outcome?: Partial<Pick<ProbeOutcome, "cause" | "waitUntil">>, decided = false, stored = false): void {
    let moved = false;
    while (core.next_transition()) {
      moved = true;
      const [, from, to, reason, at, generation, calls, failures, slow, until] = block();
      const why = REASONS[reason!]!;
      const state = STATES[to!]!;
      if (state !== "half_open") this.#cause = state === "open" ? outcome?.cause : undefined;
      decided ||= why !== "adopted" && why !== "open_elapsed";
      if (this.#teller.heard("transition")) {
        this.#teller.emit("transition", {
          key: this.key,
          from: STATES[from!]!,
          to: state,
          reason: why,
          at: at!,
          generation: generation!,
          counts: { calls: calls!, failures: failures!, slow: slow! },
          until: orNull(until!),
        });
      }
    }
    this.#arm();
    if (moved) this.#tellState();
    if (decided && !stored) this.#shared?.changed(outcome?.waitUntil);
  }

  /** Chooses the way of the calls that follow; called whenever the circuit, or who wants to know, may have changed. */
  #arm(): void {
    const { classify, slow, timed, onStoreError } = this.#config;
    const clock = this.#clock;
    const handle = this.#handle;
    const token = core.closed_token(handle);
    const shared = this.#shared;
    this.#error = this.#refused = undefined;
    if (this.#home) {
      // What lost its place has nothing that must be kept.
      const idle = !this.#teller.asked && (handle < 0 || (!shared && (token >= 0 || this.state === "closed")));
      this.#home.keep = idle || this.#disposed ? undefined : this;
    }
    this.#token = this.#disposed || classify || slow || shared?.unread || (shared && onStoreError === "throw") || this.#teller.heard("outcome") || this.#teller.heard("admitted") ? -1 : token;
    if (this.#token < 0) return;
    const drain = (): void => this.#teller.step(() => this.#drain());
    this.#ok = timed || shared
      ? (value) => {
          this.#running--;
          const at = clock();
          if (core.settle(handle, token, SUCCESS, NaN, at) & 1) drain();
          shared?.succeeded(at);
          return value;
        }
      : (value) => {
          this.#running--;
          if (core.settle(handle, token, SUCCESS, NaN, NaN) & 1) drain();
          return value;
        };
    // Two functions: an engine counts towards optimising one where it returns, so one that always throws would stay interpreted.
    const failed = (reason: unknown): void => {
      this.#running--;
      if (core.settle(handle, token, FAILURE, NaN, clock()) & 1) this.#teller.step(() => this.#drain({ cause: { cause: reason } }));
      shared?.settled(true);
    };
    this.#bad = (reason) => {
      failed(reason);
      throw reason;
    };
  }

  #tellState(): void {
    if (this.#teller.heard("state")) this.#teller.step(() => this.#teller.emit("state", inspection(this.key, this.#handle, this.#clock())));
  }

  #restore(text: string, at: number): void {
    const problem = runtime.decode("restore", this.#handle, text, at);
    this.#cause = undefined;
    this.#arm();
    this.#tellState();
    if (problem > 0) this.#teller.diagnose(`snapshot_${PROBLEMS[problem - 1]}`, "A stored circuit could not be taken as it was");
  }

  /** The first reading of the store, for the calls that need it; a promise only if somebody has to wait. */
  #read(waitUntil?: WaitUntil, strict = false): Promise<void> | undefined {
    if (runtime.translatable()) {
      return runtime.load().then(() => {
        this.#placed();
        return this.#read(waitUntil, strict);
      });
    }
    if (!this.#shared?.unread) return undefined;
    const reading = this.#shared.first(waitUntil, strict);
    if (reading) return reading.then(() => this.#arm());
    this.#arm();
    return undefined;
  }

  #join(store: CircuitStore): void {
    const { policy, tally } = this.#config;
    const adopt = (handle: number, text: string): number => runtime.decode("adopt", handle, text, this.#clock());
    if (tally) core.share_tally(this.#handle);
    this.#shared = share(this.key, store, this.#config, {
      handle: () => this.#handle,
      seal: () => runtime.textOf(core.seal(this.#handle)),
      adopt: (text, whole) => {
        const bits = adopt(this.#handle, text);
        if (whole) this.#restore(text, this.#clock());
        else if (bits & 16) this.#teller.diagnose("snapshot_unreadable", "What the store holds is no circuit: it is left alone until there is something to write");
        if (bits & 35) this.#teller.step(() => this.#drain());
        return bits;
      },
      advise: (text) => {
        // Met by a circuit of nobody, to see what it says.
        const other = core.create(policy, this.#clock());
        const moved = adopt(other, text) & 1;
        if (moved) while (core.next_transition());
        core.drop(other);
        if (moved) this.#teller.diagnose("remote_verdict", "Others have opened this circuit; it is not adopted here");
      },
      shift: (by) => core.shift(this.#handle, by),
      admit: () => this.#ask(),
      giveBack: (token) => void core.settle(this.#handle, token, IGNORED, NaN, this.#clock()),
      propose: ({ token, verdict, duration, until }) => runtime.textOf(core.propose(this.#handle, token, verdict, duration, this.#clock(), until)),
      commit: (outcome) => this.#settled(core.commit(this.#handle, this.#clock()), outcome, true),
      settle: (outcome) => {
        const { token, verdict, duration, until } = outcome;
        this.#settled(core.settle_until(this.#handle, token, verdict, duration, this.#clock(), until), outcome);
      },
      failed: (error) => this.#teller.diagnose("store_failed", "The store fails: the circuit goes on without it", error),
      faulted: ({ operation, cause }) => {
        if (this.#teller.heard("store_error")) this.#teller.emit("store_error", { key: this.key, operation, error: cause, at: this.#clock() });
      },
      asked: (operation, durationMs, ok) => {
        if (this.#teller.heard("store_operation")) this.#teller.emit("store_operation", { key: this.key, operation, durationMs, ok, at: this.#clock() });
      },
    });
    this.#clock = this.#shared.clock;
  }
}

/** Where the host has no such symbols, `dispose` is there under its name only. */
export interface CircuitBreaker extends Disposable, AsyncDisposable {}

function choose(field: string, value: unknown, choices: readonly string[]): number {
  const index = choices.indexOf(value as string);
  if (index < 0) throw new InvalidCircuitError(field, value, `must be one of ${choices.join(", ")}`);
  return index;
}
