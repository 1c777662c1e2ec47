// SQLite as the host has it: `contract FILE`, `count FILE TIMES` (compare-and-set, one more each), `fail FILE TIMES` (in a shared tally).
import { CircuitBreaker } from "tripcurve";
import { sqliteStore } from "tripcurve/stores/sqlite";
import { storeContract } from "tripcurve/testing";

const open = globalThis.Bun
  ? await import("bun:sqlite").then(({ Database }) => (file) => new Database(file))
  : await import("node:sqlite").then(({ DatabaseSync }) => (file) => new DatabaseSync(file));

const [, , verb, file, times] = process.argv;
const databases = [];
function storeOf(options) {
  const database = open(file);
  databases.push(database);
  database.exec("PRAGMA busy_timeout = 5000");
  database.exec("PRAGMA journal_mode = WAL");
  return sqliteStore(database, options);
}

const verbs = {
  async contract() {
    const failed = [];
    const checks = storeContract(() => ({ store: storeOf(), other: storeOf() }));
    for (const { name, run } of checks) await run().catch((error) => failed.push(`${name}: ${error.message}`));
    return { checks: checks.length, failed };
  },
  count() {
    const store = storeOf();
    let refused = 0;
    for (let done = 0; done < times; ) {
      const found = store.get("counter");
      const next = String(Number(found?.snapshot ?? 0) + 1);
      if (store.set("counter", next, { ttlMs: 60_000, ifVersion: found?.version ?? null }).ok) done++;
      else refused++;
    }
    return { refused, counter: Number(store.get("counter").snapshot) };
  },
  async fail() {
    const policy = { window: { kind: "calls", last: 100 }, failures: 20, openMs: 60_000 };
    const breaker = new CircuitBreaker("shared", policy, { store: storeOf(), share: "tally" });
    for (let i = 0; i < times; i++) await breaker.run(() => Promise.reject(new Error("down"))).catch(() => {});
    await breaker.flush();
    return { state: breaker.state, failures: breaker.inspect().counts.failures };
  },
};

const result = await verbs[verb]();
for (const database of databases) database.close();
console.log(JSON.stringify(result));
