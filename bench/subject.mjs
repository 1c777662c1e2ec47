// One guard in one scenario, ready to be timed. Runs unchanged in Node and in a page.

import { against, guards, pool } from "./guards.mjs";
import { median } from "./stats.mjs";

const TIMED_MS = 30;
const FILL = 12_000;
const base = { rate: 50, minimum: 10, openMs: 1e9 };

/** `module` names the guard's library as this host finds it; `clock` counts milliseconds. */
export async function subject(scenario, { guard: name, size, wrap }, module, clock = () => performance.now()) {
  const library = module && (await load(module));
  const guard = [...guards, ...against].find((each) => each.name === name);
  const failure = new Error("down");
  let failEach = 0;
  let calls = 0;
  let value = 0;
  const work = async () => {
    if (failEach !== 0 && ++calls >= failEach) {
      calls = 0;
      throw failure;
    }
    return value++;
  };

  let ahead = 0;
  const o = { ...base, kind: guard.kind, size, fallback: scenario.fallback ? () => -1 : undefined };
  if (scenario.sweep) o.clock = () => Date.now() + ahead;

  if (scenario.idle) return { pool: () => pool(guard, library, work, o) };

  const run = scenario.fetch ? fetching(guard, library, o, wrap) : guard.make(library, work, o);
  if (scenario.trip && !guard.bare) await trip();
  failEach = scenario.failEach ?? 0;
  if (scenario.sweep && !guard.bare) await fill();

  async function trip() {
    failEach = 1;
    await caught(200);
    failEach = 0;
    const before = value;
    const answer = await run().catch(() => -1);
    if (answer !== -1 || value !== before) throw new Error(`${name} did not open`);
  }

  /** Two whole windows pass, so that every place in it is taken and has been taken over once. */
  async function fill() {
    for (let i = 0; i < FILL; i++) {
      if (guard.kind === "time") ahead += (2 * size) / FILL;
      await caught(1);
    }
  }

  async function quiet(n) {
    for (let i = 0; i < n; i++) await run();
  }

  async function caught(n) {
    for (let i = 0; i < n; i++) {
      try {
        await run();
      } catch {}
    }
  }

  const loop = scenario.failEach || (scenario.trip && !scenario.fallback) ? caught : quiet;

  /** Nanoseconds for each of n calls. */
  async function timed(n) {
    const start = clock();
    await loop(n);
    return ((clock() - start) * 1e6) / n;
  }

  let callsPerRound = 100;
  return {
    loop,
    async warm(ms) {
      const end = clock() + ms;
      while (clock() < end) {
        const perCall = await timed(callsPerRound);
        callsPerRound = Math.max(100, Math.min(400_000, Math.round((TIMED_MS * 1e6) / Math.max(perCall, 1))));
      }
      return callsPerRound;
    },
    /** In slices where only the clock's time is to be had: those in which somebody else was at work are left out. */
    async round(slices = 1) {
      const each = [];
      for (let i = 0; i < slices; i++) each.push(await timed(Math.ceil(callsPerRound / slices)));
      const usual = 2 * median(each);
      const kept = each.filter((ns) => ns <= usual);
      return kept.reduce((sum, ns) => sum + ns, 0) / kept.length;
    },
  };
}

/** A CommonJS package has everything in its default export, whoever loads it. */
async function load(module) {
  const loaded = await import(module);
  return loaded.default ?? loaded;
}

/** A service of 64 addresses that answers at once with a response made beforehand. */
function fetching(guard, library, o, wrap) {
  const addresses = Array.from({ length: 64 }, (_, i) => `https://api.example.com/orders/${i}`);
  const response = { ok: true, status: 200, headers: new Headers() };
  const fetch = async () => response;
  let at = 0;
  const next = () => addresses[(at = (at + 1) & 63)];
  if (wrap) {
    const guarded = guard.fetch(library, fetch, o);
    return () => guarded(next());
  }
  return guard.make(library, () => fetch(next()), o);
}
