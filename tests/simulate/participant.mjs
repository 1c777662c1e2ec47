// One participant: the real package as a process of its own, making guarded calls. Its timers, clocks, entropy and storage are the world's,
// so that a schedule runs the same each time. A crash drops it with all it waits for; a freeze keeps that back.
import { buildSync } from "esbuild";
import { fileURLToPath } from "node:url";
import { chance, T0 } from "./chance.mjs";
import { FAULTS } from "./faults.mjs";
import { policyOf } from "./schedule.mjs";

/** Everything of its host that the package may ask for: each is a parameter, so that nothing is shared by chance. */
const GLOBALS = [
  "globalThis", "setTimeout", "clearTimeout", "setInterval", "setImmediate", "Date", "performance", "Math", "crypto", "console", "reportError",
  "addEventListener", "removeEventListener", "navigator", "localStorage", "BroadcastChannel", "FinalizationRegistry", "WebAssembly", "process",
];

let load;

/** The package and its stores, compiled once: `load(host)` runs a fresh copy of them and gives its exports. */
function loader() {
  if (load) return load;
  const resolveDir = fileURLToPath(new URL("../../dist/js/", import.meta.url));
  const contents = ["index.js", "stores/local-storage.js", "stores/kv.js"].map((file) => `export * from "./${file}";`).join("\n");
  const options = { bundle: true, format: "iife", globalName: "tripcurve", write: false, logLevel: "error" };
  const [{ text }] = buildSync({ stdin: { contents, resolveDir }, ...options }).outputFiles;
  const run = new Function(...GLOBALS, `"use strict";\n${text}\nreturn tripcurve;`);
  return (load = (host) => run(...GLOBALS.map((name) => host[name])));
}

/** Compiling the module would be most of what a start costs, and gives the same each time. */
const modules = new Map();
const wasm = {
  Instance: WebAssembly.Instance,
  Module: function (bytes) {
    if (!modules.has(bytes.length)) modules.set(bytes.length, new WebAssembly.Module(bytes));
    return modules.get(bytes.length);
  },
};

export class Participant {
  dead = true;
  frozen = false;
  /** Counts its lives. */
  incarnation = 0;
  /** Over all lives: writes it asked for, probes it wrote down, outcomes it counted, seconds in which calls failed. */
  sets = 0;
  claims = 0;
  counted = 0;
  failedSeconds = new Set();
  refusalsAtEnd = 0;
  #parked = [];
  #listeners = new Set();
  #timers = 0;
  #readAt = 0;
  #tick = 0;
  #watched = false;

  constructor(world, index) {
    const { schedule, chance: any, kind } = world;
    this.world = world;
    this.index = index;
    this.chance = chance(`${world.seed}/${kind}/${index}`);
    this.skew = any.pick([-schedule.skew, 0, schedule.skew]);
    /** One host has one clock; else one participant's jumps. */
    this.jumps = index === 0 || kind === "local" || (world.atomic && !schedule.serverClock);
    this.startsAfter = schedule.late && index > 0 ? any.between(0, schedule.horizon / 2) : any.between(0, 300);
  }

  /** What it believes to be the time. It may move on while an event is handled. */
  clock = () => {
    const { world, skew } = this;
    const { jump, jumpAt, ticks } = world.schedule;
    if (this.#readAt !== world.now) this.#tick = 0;
    this.#readAt = world.now;
    if (ticks && !this.#watched && this.#tick === 0 && this.chance.happens(ticks)) this.#tick = 1;
    return world.now + skew + this.#tick + (this.jumps && world.now - T0 >= jumpAt ? jump : 0);
  };

  /** What the judge reads of it leaves no trace: its clock stands still. */
  show(what) {
    this.#watched = true;
    const shown = what(this.breaker);
    this.#watched = false;
    return shown;
  }

  start() {
    const { world } = this;
    const { schedule } = world;
    if (!this.dead || world.now - T0 < this.startsAfter) return;
    this.dead = this.frozen = false;
    this.incarnation++;
    this.startedAt = this.awakeAt = world.now;
    this.called = this.leaving = false;
    /** When a store operation was last asked for, and when one last failed. */
    this.lastAskedAt = this.troubleAt = -Infinity;
    /** Store operations without an answer. */
    this.missing = new Set();
    this.#parked = [];
    this.#listeners.clear();
    const plugs = world.store.plug(this);
    this.host = this.#makeHost(plugs);
    const { CircuitBreaker, localStorageStore, kvStore } = loader()(this.host);
    const { spoil = (sound) => sound, delay } = FAULTS[world.fault] ?? {};
    const store = spoil(plugs.store ?? (plugs.namespace ? kvStore(plugs.namespace) : localStorageStore()));
    world.say(this, "starts");
    this.breaker = new CircuitBreaker("shared", policyOf(schedule, world.kind === "tally"), {
      store,
      clock: this.clock,
      storeTimeoutMs: schedule.storeTimeoutMs,
      refreshMs: schedule.refreshMs,
      firstRead: schedule.firstRead,
      ...(world.kind === "tally" && { share: "tally" }),
      ...(schedule.waitUntil && { waitUntil: (work) => this.#keep(work) }),
    });
    if (delay) this.breaker.run = this.#hesitant(this.breaker, delay);
    world.judge.begins(this);
    this.breaker.on("transition", (move) => world.judge.moved(this, move));
    if (schedule.listens) this.breaker.on("outcome", (outcome) => world.judge.outcome(this, outcome));
    world.at(this.chance.between(0, 100), this.guard(() => this.#loop()));
  }

  #hesitant({ run }, delay) {
    const wait = () => new Promise((resolve) => this.world.at(delay, this.guard(resolve)));
    return (...given) => wait().then(() => run.apply(this.breaker, given));
  }

  crash() {
    if (this.dead) return;
    this.world.say(this, "crashes");
    this.#die();
  }

  #die() {
    this.dead = true;
    this.world.judge.lastBad = this.diedAt = this.world.now;
    this.world.store.free?.(this);
    this.world.judge.gone(this);
  }

  /** A page that is left, a server that is stopped: it may say what it has to say. */
  leave() {
    if (this.dead || this.frozen) return;
    const { world, breaker } = this;
    world.say(this, "leaves");
    this.leaving = true;
    this.dispatch({ type: "pagehide" });
    const { incarnation } = this;
    breaker.flush().catch((error) => world.fail("flush", `P${this.index}: flush rejects: ${error}`));
    world.at(30, () => !this.dead && this.incarnation === incarnation && this.#die());
  }

  freeze() {
    if (this.dead || this.frozen) return;
    this.world.say(this, "freezes");
    this.frozen = true;
    this.world.judge.lastBad = this.world.now;
  }

  thaw() {
    if (this.dead || !this.frozen) return;
    const { world } = this;
    world.say(this, "thaws");
    this.frozen = false;
    this.awakeAt = world.judge.lastBad = world.now;
    // One after the other, as events of their own.
    for (const work of this.#parked.splice(0)) world.at(0, work);
  }

  /** Frozen just when it has asked somebody for something. */
  stall() {
    const { world } = this;
    if (world.now >= world.quiet || this.frozen || !world.chance.happens(world.schedule.stall)) return;
    // Not at once: what asks is still running.
    const { incarnation } = this;
    const living = () => this.incarnation === incarnation;
    world.at(0, () => living() && this.freeze());
    world.at(world.chance.between(50, world.schedule.leaseMs + 2_000), () => living() && this.thaw());
  }

  /** What reaches this incarnation only while it lives, and only when it is awake. */
  guard(work) {
    const { incarnation } = this;
    const run = (...given) => {
      if (this.incarnation !== incarnation || this.dead) return;
      if (this.frozen) {
        this.#parked.push(() => run(...given));
        return;
      }
      this.world.judge.touched = this;
      work(...given);
    };
    return run;
  }

  /** What happens elsewhere for this incarnation, unless it is dead. */
  whileAlive(work) {
    const { incarnation } = this;
    return () => this.incarnation === incarnation && !this.dead && work();
  }

  /** A store operation begins; the function given back is told whether the answer was good. Trouble: it was not, or took too long. */
  operation() {
    const { world } = this;
    const askedAt = this.clock();
    const mine = { askedAt: (this.lastAskedAt = world.now) };
    this.missing.add(mine);
    return (good) => {
      this.missing.delete(mine);
      this.heard = true;
      if (!good || this.clock() > askedAt + world.schedule.storeTimeoutMs) this.troubleAt = world.now;
    };
  }

  /** Has the store failed it lately? It goes on alone then, for a minute at most. */
  inTrouble() {
    const { now, schedule } = this.world;
    const patience = 60_000 + 20 * schedule.storeTimeoutMs;
    const waiting = [...this.missing].some(({ askedAt }) => now >= askedAt + schedule.storeTimeoutMs && now < askedAt + 2 * patience);
    return waiting || now < this.troubleAt + patience;
  }

  /** A call asked for at `askedAt` could not know of the others: it asked the store in vain, or had reason not to. */
  isAlone(askedAt) {
    const { now, schedule } = this.world;
    if (this.lastAskedAt < askedAt) return this.inTrouble();
    return this.troubleAt >= askedAt || now - askedAt >= schedule.storeTimeoutMs;
  }

  /** It is about to ask the store for a write. */
  writes(text) {
    this.sets++;
    this.world.judge.asked(this, text);
  }

  dispatch(event) {
    this.heard = true;
    for (const [type, listener] of [...this.#listeners]) if (type === event.type) listener(event);
  }

  #keep(work) {
    const { world } = this;
    if (typeof work?.then !== "function") return world.fail("wait_until", `P${this.index} hands ${work} to waitUntil`);
    work.then(undefined, (error) => world.fail("wait_until", `P${this.index}: work for the store rejects: ${error?.stack ?? error}`));
  }

  #makeHost({ localStorage, navigator = { onLine: true } }) {
    const { world } = this;
    const timers = new Set();
    const setTimeout = (work, ms = 0, ...given) => {
      const id = ++this.#timers;
      timers.add(id);
      world.at(Math.max(0, Math.floor(ms)), this.guard(() => timers.delete(id) && work(...given)));
      return id;
    };
    const report = (...what) => world.fail("reported", `P${this.index} reports ${what.map((one) => one?.stack ?? one).join(" ")}`);
    const clock = this.clock;
    const startedAt = world.now;
    const same = (listener) => [...this.#listeners].find(([, other]) => other === listener);
    const host = {
      setTimeout,
      clearTimeout: (id) => timers.delete(id),
      Date: class extends Date {
        constructor(...given) {
          super(...(given.length ? given : [clock()]));
        }
        static now = clock;
      },
      performance: { now: () => world.now - startedAt },
      Math: Object.defineProperties(Object.create(Math), { random: { value: this.chance.unit } }),
      crypto: {
        getRandomValues: (view) => {
          for (let at = 0; at < view.length; at++) view[at] = this.chance.bits();
          return view;
        },
      },
      console: { error: report, warn: report, log: report },
      reportError: report,
      addEventListener: (type, listener) => void this.#listeners.add([type, listener]),
      removeEventListener: (type, listener) => void this.#listeners.delete(same(listener)),
      navigator,
      localStorage,
      WebAssembly: wasm,
    };
    return (host.globalThis = host);
  }

  // ---- calls

  #loop() {
    const { world, chance: r } = this;
    const { idle, openMs, pace: dense } = world.schedule;
    if (!this.leaving) this.#call();
    // A circuit that stays open for minutes is asked less often, since it would only refuse; and the quiet end needs fewer calls.
    const pace = openMs > 60_000 ? 10 : world.now < world.quiet ? dense : 5;
    const gap = idle && world.now < world.quiet && r.happens(0.05) ? r.pick([10_000, 20_000]) : Math.ceil(pace * r.between(20, 600));
    world.at(gap, this.guard(() => this.#loop()));
  }

  #call() {
    const { world, breaker, chance: r, called } = this;
    const { schedule, judge } = world;
    const { incarnation } = this;
    const call = { person: this, incarnation, askedAt: world.now, first: !called, startedAt: undefined, probe: false, ended: undefined };
    // A circuit that is known to be closed may be asked in the shortest way: it lets no probes in. A fixed window has none.
    const plain = called && !schedule.listens && schedule.window !== "fixed" && this.show(({ state }) => state) === "closed" && r.happens(0.5);
    this.called = true;
    const ignored = !plain && r.happens(0.04);
    const work = (probe) => {
      call.startedAt = world.now;
      call.probe = probe;
      judge.starts(call);
      if (world.now < world.quiet && r.happens(schedule.hang)) {
        judge.lastBad = world.now;
        return new Promise(() => {});
      }
      const failure = world.backendFails(this) ? new Error("The backend is down") : undefined;
      call.outcome = ignored ? "ignored" : failure ? "failure" : "success";
      return new Promise((resolve, reject) => {
        world.at(r.between(5, 300), this.guard(() => {
          call.ended = { at: world.now, value: failure ?? call };
          judge.ends(call);
          failure ? reject(failure) : resolve(call);
        }));
      });
    };
    judge.calls(call);
    if (!plain && r.happens(0.1)) return void this.#admit(call, work);
    const options = { probe: () => work(true), ...(ignored && { classify: () => "ignored" }) };
    (plain ? breaker.run(() => work(false)) : breaker.run(() => work(false), options)).then(
      (value) => judge.answered(call, value, true),
      (error) => judge.answered(call, error, false),
    );
  }

  /** The same in two steps. */
  async #admit(call, work) {
    const { judge } = this.world;
    const admission = await this.breaker.admit();
    if (admission.kind === "rejected") return judge.refused(call, admission.reason);
    await work(admission.kind === "probe").catch(() => {});
    admission.settle(call.outcome);
  }
}
