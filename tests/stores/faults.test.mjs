// Redis in trouble, and processes that die: what many processes on one circuit can rely on. With the figures.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { after, before, beforeEach, describe, test } from "node:test";
import { createClient } from "redis";
import { CircuitBreaker } from "tripcurve";
import { redisStore } from "tripcurve/stores/redis";
import { missing, startRedis, until } from "./redis-server.mjs";

const LEASE_MS = 1_500;
const POLICY = { failures: 2, failureRate: null, probeLeaseMs: LEASE_MS };

let server, admin;
const children = new Set();
const clients = [];

/** A process: `fail`, `call`, `ask`, `end`, `look`, and `kill`. */
async function participant(policy = POLICY, options = {}) {
  const child = fork(new URL("participant.mjs", import.meta.url), [JSON.stringify({ port: server.port, policy, options })]);
  children.add(child);
  const waiting = new Map();
  let ids = 0;
  const answer = (id) => new Promise((resolve) => waiting.set(id, resolve));
  const ready = answer(0);
  child.on("message", ({ id, value }) => waiting.get(id)?.(value));
  await ready;
  const say = (verb) => (...args) => {
    child.send({ id: ++ids, verb, args });
    return answer(ids);
  };
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const kill = () => (child.kill("SIGKILL"), ended);
  return { fail: say("fail"), call: say("call"), ask: say("ask"), end: say("end"), look: say("look"), kill };
}

async function clientOf() {
  const client = createClient({ socket: { host: "127.0.0.1", port: server.port, reconnectStrategy: 50 }, disableOfflineQueue: true }).on("error", () => {});
  clients.push(client);
  await client.connect();
  return client;
}

describe("Redis in trouble", { skip: missing }, () => {
  before(async () => {
    server = await startRedis();
    admin = await clientOf();
  });
  beforeEach(() => admin.flushAll());
  after(async () => {
    for (const child of children) child.kill("SIGKILL");
    for (const client of clients) client.destroy();
    await server?.close();
  });

  test("a process killed while it probes frees its slot when the lease ends, not before, and another one probes", async (t) => {
    const policy = { ...POLICY, openMs: 3_000 };
    const [dies, lives] = [await participant(policy), await participant(policy, { refreshMs: 20 })];
    for (const one of [dies, lives]) await one.call();
    await dies.fail(2);
    await until(async () => (await lives.call()) === "open", "the other one to know");
    await pause(policy.openMs + 50);
    const { kind, began } = await dies.ask();
    assert.equal(kind, "probe");
    await dies.kill();
    let refusals = 0;
    let answer;
    const end = Date.now() + 20_000;
    for (answer = await lives.ask(); answer.kind === "rejected" && Date.now() < end; answer = await lives.ask()) {
      assert.equal(answer.reason, "probes_busy");
      assert.ok(answer.retryAt >= began + LEASE_MS - 300, "the refusal tells the end of the lease");
      refusals++;
      await pause(25);
    }
    const after = answer.began - began;
    t.diagnostic(`a lease of ${LEASE_MS} ms: ${refusals} refusals, the next probe after ${after} ms`);
    assert.equal(answer.kind, "probe");
    assert.ok(refusals > 3 && after >= LEASE_MS - 300, `${after} ms`);
    await lives.end();
    assert.equal((await lives.look()).state, "closed");
  });

  test("eight processes never probe more than the limit together", async (t) => {
    const policy = { ...POLICY, openMs: 1_500, probeLimit: 2, probeSuccesses: 2, probeLeaseMs: 20_000 };
    const all = await Promise.all(Array.from({ length: 8 }, () => participant(policy, { refreshMs: 20 })));
    const everybody = (state) =>
      until(async () => {
        await Promise.all(all.map((one) => one.call()));
        return (await Promise.all(all.map((one) => one.look()))).every((found) => found.state === state);
      }, `all to be ${state}`);
    const figures = [];
    for (let round = 0; round < 3; round++) {
      await all[round].fail(2);
      await everybody("open");
      await pause(policy.openMs + 50);
      const answers = await Promise.all(all.flatMap((one) => [one.ask(), one.ask()]));
      const kinds = answers.map(({ kind }) => kind);
      assert.deepEqual([...new Set(kinds)].sort(), ["probe", "rejected"]);
      figures.push(kinds.filter((kind) => kind === "probe").length);
      assert.equal(figures[round], 2);
      await Promise.all(all.map((one) => one.end()));
      await everybody("closed");
    }
    t.diagnostic(`16 calls at once in 8 processes, limit 2: ${figures.join(", ")} probes`);
    await Promise.all(all.map((one) => one.kill()));
  });

  test("two processes with half of the failures each open the circuit at exactly the threshold", async () => {
    const policy = { window: { kind: "calls", last: 100 }, failures: 20, openMs: 60_000 };
    const [one, two] = [await participant(policy, { share: "tally" }), await participant(policy, { share: "tally" })];
    await Promise.all([one.fail(10), two.fail(9)]);
    for (const each of [one, two]) assert.equal((await each.look()).state, "closed");
    await two.fail(1);
    assert.equal((await two.look()).state === "open" || (await one.look()).state === "open", true, "with the batch that completes it");
    await until(async () => {
      await Promise.all([one.call(), two.call()]);
      return (await one.look()).state === "open" && (await two.look()).state === "open";
    });
    await Promise.all([one.kill(), two.kill()]);
  });

  test("Redis is stopped and started again under load: no call fails or waits for it, one diagnostic an outage, and what was decided meanwhile is known afterwards", async (t) => {
    const [client, other] = [await clientOf(), await clientOf()];
    const breaker = new CircuitBreaker("load", { openMs: 60_000 }, { store: redisStore(client), storeTimeoutMs: 50, refreshMs: 100, share: "tally" });
    const told = [];
    breaker.on("diagnostic", ({ code }) => told.push(code));
    const figures = { calls: 0, longest: 0 };
    let loaded = true;
    const load = (async () => {
      while (loaded) {
        const start = performance.now();
        await Promise.all(Array.from({ length: 20 }, () => breaker.run(() => pause(1))));
        figures.longest = Math.max(figures.longest, performance.now() - start);
        figures.calls += 20;
      }
    })();
    for (let outage = 1; outage <= 2; outage++) {
      await pause(300);
      await server.stop(outage === 1 ? "SIGKILL" : "SIGTERM");
      await until(() => told.length === outage);
      await pause(500);
      await server.restart();
      await until(async () => (await other.hGet("{tripcurve:load}", "text").catch(() => null)) != null);
    }
    loaded = false;
    await load;
    assert.deepEqual(told, ["store_failed", "store_failed"]);
    assert.ok(figures.longest < 2_000, `${figures.longest} ms`);

    await server.stop();
    await breaker.run(() => "fine");
    breaker.force("open");
    await server.restart();
    await until(async () => {
      await breaker.run(() => 1).catch(() => {});
      return (await other.hGet("{tripcurve:load}", "text").catch(() => null))?.startsWith("1;O");
    });
    const newcomer = new CircuitBreaker("load", { openMs: 60_000 }, { store: redisStore(other), storeTimeoutMs: 5_000 });
    await assert.rejects(newcomer.run(() => 1), { code: "ERR_CIRCUIT_OPEN" });
    t.diagnostic(`${figures.calls} calls through two outages, the longest batch took ${Math.round(figures.longest)} ms`);
  });

  test("Redis hangs: calls and probes go on without its answer, one diagnostic, and what was decided meanwhile is known afterwards", async (t) => {
    const client = await clientOf();
    const policy = { failures: 2, failureRate: null, openMs: 400, probeSuccesses: 2 };
    const options = { store: redisStore(client), storeTimeoutMs: 100, refreshMs: 100 };
    const breaker = new CircuitBreaker("hangs", policy, options);
    const told = [];
    breaker.on("diagnostic", ({ code }) => told.push(code));
    const asks = new CircuitBreaker("hangs.asks", policy, options);
    for (const each of [breaker, asks]) await each.run(() => "fine");
    asks.force("open");
    await asks.flush();
    const figures = {};
    const timed = async (what, call) => {
      const start = performance.now();
      const result = await Promise.race([call(), pause(20_000, "nothing", { ref: false })]);
      figures[what] = Math.max(figures[what] ?? 0, Math.round(performance.now() - start));
      return result;
    };
    process.kill(server.pid, "SIGSTOP");
    try {
      while (told.length === 0) assert.equal(await timed("a closed call", () => breaker.run(() => pause(1, "fine"))), "fine");
      const newcomer = new CircuitBreaker("hangs", policy, options);
      assert.equal(await timed("a first call", () => newcomer.run(() => "fine")), "fine");
      for (let i = 0; i < 2; i++) await timed("a closed call", () => breaker.run(() => Promise.reject(new Error("down"))).catch(() => {}));
      assert.equal(breaker.state, "open");
      await pause(policy.openMs + 50);
      for (let i = 0; i < 2; i++) assert.equal(await timed("a probe", () => breaker.run(() => "fine")), "fine");
      assert.equal(breaker.state, "closed");
      assert.equal(await timed("a probe that asks first", () => asks.run(() => "fine")), "fine");
    } finally {
      process.kill(server.pid, "SIGCONT");
    }
    assert.deepEqual(told, ["store_failed"]);
    breaker.force("open", Date.now() + 60_000);
    const other = await clientOf();
    await until(async () => {
      await breaker.run(() => 1).catch(() => {});
      return (await other.hGet("{tripcurve:hangs}", "text"))?.startsWith("1;O");
    }, "the verdict to be stored");
    assert.deepEqual(told, ["store_failed"]);
    t.diagnostic(`the longest without an answer, storeTimeoutMs 100: ${Object.entries(figures).map(([what, ms]) => `${what} ${ms} ms`).join(", ")}`);
  });

  test("whatever lies under its key, calls go on, and the next decision is stored where it can be", async () => {
    const client = await clientOf();
    const rubbish = {
      "a text": (at) => admin.set(at, "x"),
      "a list": (at) => admin.lPush(at, "x"),
      "a hash of other fields": (at) => admin.hSet(at, { a: "b" }),
      "no circuit": (at) => admin.hSet(at, { version: "1", text: "{}" }),
      "a megabyte": (at) => admin.hSet(at, { version: "1", text: "1;O".padEnd(1_000_000, "9") }),
      "bytes": (at) => admin.hSet(at, { version: "1", text: Buffer.from([0, 255, 254, 128]) }),
    };
    const goesOn = async ([name, put], i) => {
      const [key, at] = [`odd.${i}`, `{tripcurve:odd.${i}}`];
      await put(at);
      const told = [];
      const breaker = new CircuitBreaker(key, { openMs: 60_000 }, { store: redisStore(client), storeTimeoutMs: 5_000 });
      breaker.on("diagnostic", ({ code }) => told.push(code));
      assert.equal(await breaker.run(() => "fine"), "fine", name);
      breaker.force("open");
      await assert.rejects(breaker.run(() => 1), { code: "ERR_CIRCUIT_OPEN" });
      await breaker.flush();
      const isHash = (await admin.type(at)) === "hash";
      assert.deepEqual(told, isHash ? (name === "a hash of other fields" ? [] : ["snapshot_unreadable"]) : ["store_failed"], name);
      if (isHash) assert.match(await admin.hGet(at, "text"), /^1;O/, name);
      breaker.dispose();
    };
    await Promise.all(Object.entries(rubbish).map(goesOn));
  });
});
