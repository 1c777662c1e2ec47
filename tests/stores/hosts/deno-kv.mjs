// Deno KV: `contract FILE`, `count FILE TIMES OTHERS` (compare-and-set, one more each, when so many others are there),
// `fail FILE TIMES` (in a shared tally), `rubbish FILE`.
import { CircuitBreaker } from "tripcurve";
import { denoKvStore } from "tripcurve/stores/deno-kv";
import { storeContract } from "tripcurve/testing";

const [verb, file, times, others] = Deno.args;
const kv = await open();

/** Two that make the file at once: one is told that it is locked. */
async function open() {
  for (;;) {
    try {
      return await Deno.openKv(file);
    } catch (error) {
      if (error.message !== "database is locked") throw error;
    }
  }
}

const verbs = {
  async contract() {
    const failed = [];
    // A second connection to the file would be refused now and then: "database is locked".
    const checks = storeContract(() => ({ store: denoKvStore(kv), other: denoKvStore(kv) }));
    for (const { name, run } of checks) await run().catch((error) => failed.push(`${name}: ${error.message}`));
    return { checks: checks.length, failed };
  },
  async count() {
    const store = denoKvStore(kv);
    const told = { refused: 0, locked: 0 };
    const increment = async (key) => {
      try {
        const found = await store.get(key);
        const next = String(Number(found?.snapshot ?? 0) + 1);
        const { ok } = await store.set(key, next, { ttlMs: 60_000, ifVersion: found?.version ?? null });
        if (!ok) told.refused++;
        return ok;
      } catch (error) {
        if (error.message !== "database is locked") throw error;
        told.locked++;
        return false;
      }
    };
    while (!(await increment("ready")));
    while (Number((await store.get("ready").catch(() => null))?.snapshot ?? 0) <= others) await new Promise((resolve) => setTimeout(resolve, 5));
    for (let done = 0; done < times; ) if (await increment("counter")) done++;
    let counter;
    while (!counter) counter = await store.get("counter").catch(() => null);
    return { ...told, counter: Number(counter.snapshot) };
  },

  /** Every stored record holds what no store wrote. */
  async rubbish() {
    const told = {};
    for (const [key, value] of Object.entries({ bytes: new Uint8Array([0, 255]), number: 42n, object: { a: [1] }, nothing: null, huge: "9".repeat(60_000) })) {
      await kv.set(["tripcurve", key], value);
      const breaker = new CircuitBreaker(key, { openMs: 60_000 }, { store: denoKvStore(kv), storeTimeoutMs: 5_000 });
      told[key] = [];
      breaker.on("diagnostic", ({ code }) => told[key].push(code));
      told[key].push(await breaker.run(() => "fine"));
      breaker.force("open");
      await breaker.run(() => "runs").catch(({ code }) => told[key].push(code));
      await breaker.flush();
      told[key].push(String((await kv.get(["tripcurve", key])).value).slice(0, 3));
    }
    return told;
  },

  async fail() {
    const policy = { window: { kind: "calls", last: 100 }, failures: 20, openMs: 60_000 };
    const breaker = new CircuitBreaker("shared", policy, { store: denoKvStore(kv), share: "tally", storeTimeoutMs: 5_000 });
    for (let i = 0; i < times; i++) await breaker.run(() => Promise.reject(new Error("down"))).catch(() => {});
    await breaker.flush();
    return { state: breaker.state, failures: breaker.inspect().counts.failures };
  },
};

const result = await verbs[verb]();
kv.close();
console.log(JSON.stringify(result));
