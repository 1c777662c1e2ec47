// Deno KV: `contract FILE`, `fail FILE TIMES` (in a shared tally).
import { CircuitBreaker } from "tripcurve";
import { denoKvStore } from "tripcurve/stores/deno-kv";
import { storeContract } from "tripcurve/testing";

const [verb, file, times] = Deno.args;
const kv = await Deno.openKv(file);

const verbs = {
  async contract() {
    const failed = [];
    // A second connection to the file would be refused now and then: "database is locked".
    const checks = storeContract(() => ({ store: denoKvStore(kv), other: denoKvStore(kv) }));
    for (const { name, run } of checks) await run().catch((error) => failed.push(`${name}: ${error.message}`));
    return { checks: checks.length, failed };
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
