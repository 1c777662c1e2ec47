// What sharing costs: store operations for 1,000 calls in ten seconds, counted, and the README's table says the same.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { CircuitBreaker, memoryStore } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { B0, deferred, outcomeOf, ticks } from "./help.mjs";

const CALLS = 1_000;
const EVERY_MS = 10;

/** What a store can do decides what is asked of it, so that one of each kind stands for all. */
const kinds = {
  "atomic, `share: \"verdict\"`": { consistency: "atomic" },
  "atomic, `share: \"tally\"`": { consistency: "atomic", share: "tally" },
  "localStorage": { consistency: "last_write", local: true, claim: () => () => {} },
  "Workers KV": { consistency: "last_write", refreshMs: 60_000, writeEveryMs: 1_000 },
};

const states = {
  healthy: { call: async () => 1 },
  "one call in ten fails": { call: (i) => (i % 10 === 0 ? Promise.reject(new Error("down")) : Promise.resolve(1)) },
  open: { openMs: 60_000, opens: true, call: async () => 1 },
  "half-open, a probe all the time": { openMs: 1_000, opens: true, due: true, call: (i, { probe }) => (i === 0 ? probe : Promise.resolve(1)) },
};

async function cost({ share, ...kind }, { call, opens, due, openMs = 1_000 }) {
  const clock = fakeClock(1_700_000_000_000);
  const memory = memoryStore({ clock });
  const count = { reads: 0, writes: 0 };
  const later = (work) => (kind.local ? work() : Promise.resolve().then(work));
  const store = {
    ...kind,
    get: (key) => (count.reads++, later(() => memory.get(key))),
    set: (key, text, { ttlMs, ifVersion }) => (count.writes++, later(() => memory.set(key, text, { ttlMs, ifVersion }))),
  };
  const policy = { ...B0, openMs, minimumCalls: 20, probeLeaseMs: 60_000 };
  const breaker = new CircuitBreaker("cost", policy, { store, clock, share });
  await breaker.run(() => 1);
  if (opens) breaker.force("open");
  await ticks(50);
  clock.advance(due ? openMs : 0);
  Object.assign(count, { reads: 0, writes: 0 });
  const probe = deferred();
  for (let i = 0; i < CALLS; i++) {
    clock.advance(EVERY_MS);
    void outcomeOf(breaker.run(() => call(i, { probe: probe.promise })));
    await ticks(30);
  }
  probe.resolve();
  await ticks(50);
  assert.equal(breaker.state, opens && !due ? "open" : "closed");
  return `${count.reads} + ${count.writes}`;
}

test("store operations for 1,000 calls, as the README has them: readings + writes", async () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const table = [["store", ...Object.keys(states)], Array(1 + Object.keys(states).length).fill("---")];
  for (const [name, kind] of Object.entries(kinds)) {
    const cells = [];
    for (const state of Object.values(states)) cells.push(await cost(kind, state));
    table.push([name, ...cells]);
  }
  const text = table.map((row) => `| ${row.join(" | ")} |`).join("\n").replace(/ --- /g, "---").replace(/\| ?-/g, "|-").replace(/- ?\|/g, "-|");
  assert.ok(readme.includes(text), `the README should say\n${text}`);
});
