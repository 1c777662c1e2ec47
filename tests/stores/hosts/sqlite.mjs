// SQLite as the host has it: `contract FILE`, `count FILE TIMES OTHERS` (compare-and-set, one more each, when so many others are there),
// `fail FILE TIMES` (in a shared tally), `locked FILE`, `rubbish FILE`, `sweep FILE`.
import { CircuitBreaker } from "tripcurve";
import { sqliteStore } from "tripcurve/stores/sqlite";
import { storeContract } from "tripcurve/testing";

const [, , verb, file, times, others, library] = process.argv;
const open = await opener();
const databases = [];

async function opener() {
  if (library === "better-sqlite3") return import(library).then(({ default: Database }) => (file) => new Database(file));
  if (globalThis.Bun) return import("bun:sqlite").then(({ Database }) => (file) => new Database(file));
  return import("node:sqlite").then(({ DatabaseSync }) => (file) => new DatabaseSync(file));
}

function databaseOf(timeoutMs = 5_000) {
  const database = open(file);
  databases.push(database);
  database.exec(`PRAGMA busy_timeout = ${timeoutMs}`);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = NORMAL");
  return database;
}
const storeOf = () => sqliteStore(databaseOf());
const down = () => Promise.reject(new Error("down"));
const outcome = (work) => work.then((value) => value, (error) => error.code ?? error.message);

const verbs = {
  async contract() {
    const failed = [];
    const checks = storeContract(() => ({ store: storeOf(), other: storeOf() }));
    for (const { name, run } of checks) await run().catch((error) => failed.push(`${name}: ${error.message}`));
    return { checks: checks.length, failed };
  },

  async count() {
    const store = storeOf();
    const increment = (key) => {
      const found = store.get(key);
      const next = String(Number(found?.snapshot ?? 0) + 1);
      return store.set(key, next, { ttlMs: 60_000, ifVersion: found?.version ?? null }).ok;
    };
    while (!increment("ready"));
    while (Number(store.get("ready").snapshot) <= others) await new Promise((resolve) => setTimeout(resolve, 5));
    let refused = 0;
    for (let done = 0; done < times; ) {
      if (increment("counter")) done++;
      else refused++;
    }
    return { refused, counter: Number(store.get("counter").snapshot) };
  },

  async fail() {
    const policy = { window: { kind: "calls", last: 100 }, failures: 20, openMs: 60_000 };
    const breaker = new CircuitBreaker("shared", policy, { store: storeOf(), share: "tally" });
    for (let i = 0; i < times; i++) await breaker.run(down).catch(() => {});
    await breaker.flush();
    return { state: breaker.state, failures: breaker.inspect().counts.failures };
  },

  /** Somebody else keeps the database locked while the circuit opens, and then lets it go. */
  async locked() {
    const [database, other] = [databaseOf(0), databaseOf(0)];
    const breaker = new CircuitBreaker("shared", { failures: 2, failureRate: null, openMs: 60_000 }, { store: sqliteStore(database) });
    const told = [];
    breaker.on("diagnostic", ({ code }) => told.push(code));
    const results = [await outcome(breaker.run(() => "fine"))];
    other.exec("BEGIN IMMEDIATE");
    for (let i = 0; i < 3; i++) results.push(await outcome(breaker.run(down)));
    other.exec("COMMIT");
    const store = sqliteStore(other);
    for (const end = Date.now() + 10_000; !store.get("shared")?.snapshot.startsWith("1;O") && Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      await outcome(breaker.run(() => "runs"));
    }
    const newcomer = new CircuitBreaker("shared", { openMs: 60_000 }, { store });
    return { results, told, newcomer: await outcome(newcomer.run(() => "runs")) };
  },

  /** Every stored record holds what no store wrote. */
  async rubbish() {
    const database = databaseOf();
    const store = sqliteStore(database);
    const told = {};
    for (const [key, value] of Object.entries({ bytes: "CAST(X'00fffe80' AS TEXT)", number: "42", huge: "hex(zeroblob(500000))", empty: "''" })) {
      store.set(key, "text", { ttlMs: 60_000 });
      database.exec(`UPDATE tripcurve SET snapshot = ${value}, version = 42 WHERE key = '${key}'`);
      try {
        database.exec(`UPDATE tripcurve SET snapshot = X'00ff', version = X'00ff' WHERE key = '${key}'`);
      } catch {} // no place for bytes
      const breaker = new CircuitBreaker(key, { openMs: 60_000 }, { store });
      told[key] = [];
      breaker.on("diagnostic", ({ code }) => told[key].push(code));
      told[key].push(await outcome(breaker.run(() => "fine")));
      breaker.force("open");
      told[key].push(await outcome(breaker.run(() => "runs")));
      await breaker.flush();
      told[key].push(store.get(key).snapshot.slice(0, 3));
    }
    return told;
  },

  async sweep() {
    const before = storeOf();
    for (const key of ["a", "b"]) before.set(key, "text", { ttlMs: 1 });
    before.set("c", "text", { ttlMs: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    const database = databaseOf();
    const rows = () => Number(database.prepare("SELECT count(*) AS n FROM tripcurve").get().n);
    const found = [rows()];
    sqliteStore(database).set("d", "text", { ttlMs: 60_000 });
    return [...found, rows()];
  },
};

const result = await verbs[verb]();
for (const database of databases) database.close();
console.log(JSON.stringify(result));
