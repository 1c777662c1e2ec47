// The Durable Object store on the real Workers runtime: two Workers, so two isolates, `a` and `b`, whose circuit is an object of a third.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { InvalidCircuitError } from "tripcurve";
import { durableObjectStore } from "tripcurve/stores/durable-object";
import { storeContract } from "tripcurve/testing";

const folder = mkdtempSync(join(tmpdir(), "tripcurve-object-"));
const ends = [];
/** Left alone from the start to the end of this file. */
let sleeping;
before(async () => {
  await build({
    entryPoints: [fileURLToPath(new URL("fixtures/shared-worker.mjs", import.meta.url))],
    ...{ bundle: true, format: "esm", conditions: ["workerd", "worker", "browser"], external: ["cloudflare:workers"] },
    loader: { ".wasm": "copy" },
    outfile: join(folder, "worker.mjs"),
    logLevel: "error",
  });
  sleeping = await cloud();
  sleeping.version = (await sleeping.a.operation("set", "http.shop", "text", { ttlMs: 600_000 })).version;
});
after(async () => {
  for (const end of ends) await end();
  rmSync(folder, { recursive: true, force: true });
});

const POLICY = { window: { kind: "calls", last: 100 }, minimumCalls: 4, failureRate: 0.5, openMs: 10_000, probeLeaseMs: 60_000 };

/** `options`: of the breakers. */
async function cloud(options = {}, { sqlite = true, ...runtimeOptions } = {}) {
  const upstream = { status: 503, reached: 0, gate: Promise.resolve() };
  const isolate = (name) => ({
    ...{ name, modules: true, scriptPath: join(folder, "worker.mjs"), modulesRoot: folder, compatibilityDate: "2026-04-01" },
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
    durableObjects: { CIRCUITS: { className: "CircuitObject", scriptName: "objects", useSQLite: sqlite } },
    bindings: { POLICY, OPTIONS: { storeTimeoutMs: 5_000, ...options } },
    outboundService: async () => {
      upstream.reached += 1;
      const { status } = upstream;
      await upstream.gate;
      return new Response(status < 400 ? "up" : "down", { status });
    },
  });
  const runtime = new Miniflare({ cf: false, workers: [isolate("objects"), isolate("a"), isolate("b")], ...runtimeOptions });
  let stopped;
  const stop = () => (stopped ??= runtime.dispose());
  ends.push(stop);
  await runtime.ready;
  const worker = async (name) => {
    const handle = await runtime.getWorker(name);
    const knock = async (door, body = null) => {
      const response = await handle.fetch(`http://worker/${door}`, { method: "POST", body: JSON.stringify(body) });
      const { answer, error } = await response.json();
      if (error !== undefined) throw new Error(error);
      return answer;
    };
    const call = () => knock("call");
    return { knock, call, calls: (count) => Promise.all(Array.from({ length: count }, call)), operation: (name, ...args) => knock("operation", { name, args }) };
  };
  const [objects, a, b] = [await worker("objects"), await worker("a"), await worker("b")];
  return {
    ...{ upstream, objects, a, b, stop },
    advance: (ms) => Promise.all([objects, a, b].map(({ knock }) => knock("advance", ms))),
    requests: () => objects.knock("requests"),
    stored: () => a.operation("get", "http.shop"),
  };
}

const trip = async (worker, calls = 4) => {
  for (let call = 0; call < calls; call += 1) assert.deepEqual(await worker.call(), { failed: "status 503" });
};

async function eventually(what, look) {
  for (let left = 200; left > 0; left -= 1) {
    const seen = await look();
    if (seen) return seen;
    await sleep(50);
  }
  assert.fail(`never happened: ${what}`);
}

/** Nothing is on its way to the object any more. */
async function quiet({ requests }) {
  for (let before = -1; ; await sleep(300)) {
    const { length } = await requests();
    if (length === before) return length;
    before = length;
  }
}

const opened = (world) => eventually("a verdict in the object", async () => (await world.stored()).snapshot);

describe("what every store promises", () => {
  let world;
  before(async () => (world = await cloud()));
  for (const { name } of storeContract(() => {})) test(name, () => world.a.knock("check", name));
});

test("a failing upstream opens the circuit for both isolates; refused calls do not reach it", async () => {
  const world = await cloud();
  await trip(world.a);
  await opened(world);
  for (const isolate of [world.a, world.b]) {
    const { refused, retryAfterMs } = await isolate.call();
    assert.equal(refused, "open");
    assert.ok(retryAfterMs <= 10_000, `${retryAfterMs} ms`);
  }
  assert.equal(world.upstream.reached, 4);
});

test("an isolate that was healthy learns of it at its next reading", async () => {
  const world = await cloud();
  world.upstream.status = 200;
  assert.deepEqual(await world.b.call(), { body: "up" });
  world.upstream.status = 503;
  await trip(world.a);
  await opened(world);
  await world.b.knock("advance", 10_000);
  await eventually("b refuses", async () => (await world.b.call()).refused === "open");
});

test("fifty closed calls ask the object once", async () => {
  const world = await cloud();
  world.upstream.status = 200;
  for (let call = 0; call < 50; call += 1) assert.deepEqual(await world.a.call(), { body: "up" });
  await quiet(world);
  assert.deepEqual(await world.requests(), ["GET"]);
});

test("a shared tally is sent in batches after the answers, also when no further call comes", async () => {
  const world = await cloud({ share: "tally", refreshMs: 1 });
  world.upstream.status = 200;
  const started = Date.now();
  for (let call = 0; call < 50; call += 1) assert.deepEqual(await world.a.call(), { body: "up" });
  let own = 0;
  await eventually("b reads what a counted, and adds its own calls", async () => {
    await world.b.call();
    own += 1;
    return (await world.b.knock("inspect")).counts.calls === 50 + own;
  });
  const seconds = Math.ceil((Date.now() - started) / 1_000);
  const writes = (await world.requests()).filter((method) => method === "PUT").length;
  assert.ok(writes <= 2 * (seconds + 1), `${writes} writes of two isolates in ${seconds} s`);
});

test("two isolates that see half of the failures each open the circuit at exactly the threshold", async () => {
  const world = await cloud({ share: "tally", refreshMs: 1 });
  const { a, b } = world;
  await trip(a, 2);
  await a.knock("flush");
  await trip(b, 1);
  await b.knock("flush");
  const { state, counts } = await b.knock("inspect");
  assert.deepEqual([state, counts.failures], ["closed", 3]);
  await trip(b, 1);
  await b.knock("flush");
  assert.equal((await b.call()).refused, "open");
  await eventually("a refuses", async () => (await a.call()).refused === "open");
});

for (const share of ["verdict", "tally"])
  test(`of twenty calls in two isolates one is the probe, and its success closes both (share: ${share})`, async () => {
    const world = await cloud({ share });
    await trip(world.a);
    await world.a.knock("flush");
    assert.equal((await world.b.call()).refused, "open");
    await world.advance(10_001);
    let open;
    Object.assign(world.upstream, { status: 200, reached: 0, gate: new Promise((resolve) => (open = resolve)) });
    const answers = [world.a.calls(10), world.b.calls(10)].map(async (calls) => (await calls).map(({ refused, body }) => refused ?? body));
    await eventually("the probe starts", () => world.upstream.reached > 0);
    await eventually("the others claim", async () => (await world.requests()).length >= 6);
    open();
    const all = (await Promise.all(answers)).flat();
    assert.deepEqual(all.filter((answer) => answer !== "probes_busy"), ["up"]);
    assert.equal(world.upstream.reached, 1);
    for (const isolate of [world.a, world.b]) await eventually("it is closed", async () => (await isolate.call()).body === "up");
  });

test("a probe that never comes back loses its slot when its lease ends, whoever claims next", async () => {
  const world = await cloud();
  await trip(world.a);
  await opened(world);
  await world.advance(10_001);
  let open;
  Object.assign(world.upstream, { status: 200, reached: 0, gate: new Promise((resolve) => (open = resolve)) });
  const lost = world.a.call();
  await eventually("the probe starts", () => world.upstream.reached === 1);
  assert.equal((await world.b.call()).refused, "probes_busy");
  await world.advance(60_001);
  world.upstream.gate = Promise.resolve();
  await eventually("b probes", async () => (await world.b.call()).body === "up");
  open();
  assert.deepEqual(await lost, { body: "up" });
});

test("clocks that are an hour apart do no harm: the time is the objects'", async () => {
  const world = await cloud();
  await world.a.knock("advance", 3_600_000);
  await trip(world.a);
  await opened(world);
  const { refused, retryAfterMs } = await world.b.call();
  assert.equal(refused, "open");
  assert.ok(retryAfterMs <= 10_000, `${retryAfterMs} ms`);
  world.upstream.status = 200;
  await world.advance(10_001);
  await eventually("b probes", async () => (await world.b.call()).body === "up");
});

test("the circuit survives a restart and a new deployment", async () => {
  const durableObjectsPersist = join(folder, "persisted");
  const first = await cloud({}, { durableObjectsPersist });
  await trip(first.a);
  await opened(first);
  const before = await first.stored();
  await first.stop();
  const second = await cloud({}, { durableObjectsPersist });
  const { snapshot, version } = await second.stored();
  assert.deepEqual({ snapshot, version }, { snapshot: before.snapshot, version: before.version });
  assert.equal((await second.b.call()).refused, "open");
  assert.equal(second.upstream.reached, 0);
});

const NAME = "tripcurve:http.shop";

test("an object that is thrown out of memory between a reading and a write keeps the text and its version", async () => {
  const { objects, a } = await cloud();
  const { version } = await a.operation("set", "http.shop", "text", { ttlMs: 60_000 });
  await assert.rejects(objects.knock("object", { name: NAME, path: "abort" }), /evicted by a test/);
  assert.equal((await a.operation("get", "http.shop")).version, version);
  assert.equal(await objects.knock("instances"), 2);
  assert.equal((await a.operation("set", "http.shop", "next", { ttlMs: 60_000, ifVersion: version })).ok, true);
});

test("a text says nothing any more when its time is over, and nobody writes by its version", async () => {
  const { objects, a } = await cloud();
  const set = (options) => a.operation("set", "http.shop", "text", { ttlMs: 1_000, ...options });
  const { version } = await set();
  await objects.knock("advance", 1_000);
  const { snapshot, version: none } = await a.operation("get", "http.shop");
  assert.deepEqual({ snapshot, none }, { snapshot: null, none: null });
  assert.equal((await set({ ifVersion: version })).ok, false);
  assert.equal((await set({ ifVersion: null })).ok, true);
});

test("each circuit is one object, under its name; another prefix is another object", async () => {
  const { a } = await cloud();
  await a.operation("set", "http.shop", "text", { ttlMs: 60_000 });
  const found = await a.knock("object", { name: NAME, path: "" });
  assert.equal(found.snapshot, "text");
  assert.equal((await a.knock("operation", { prefix: "mine/", name: "get", args: ["http.shop"] })).snapshot, null);
});

for (const kind of ["throws", "hangs"])
  test(`an object that ${kind} hurts no call: the local verdict decides, and is written later`, async () => {
    const world = await cloud({ storeTimeoutMs: 100 });
    await world.objects.knock("fault", kind);
    await trip(world.a);
    assert.equal((await world.a.call()).refused, "open");
    assert.equal((await world.a.knock("diagnostics")).length, 1, "one diagnostic an outage");
    await world.objects.knock("fault");
    await world.a.knock("advance", 5_000);
    await eventually("the verdict is written", async () => {
      await world.a.call();
      return (await world.stored()).snapshot;
    });
  });

test("a class that is not SQLite-backed is a store that fails, and says why", async () => {
  const world = await cloud({}, { sqlite: false });
  await trip(world.a);
  assert.equal((await world.a.call()).refused, "open");
  assert.match((await world.a.knock("diagnostics")).join(), /^store_failed .*SQL/i);
});

test("what is no namespace is refused at once: a binding that was forgotten", () => {
  assert.throws(() => durableObjectStore(undefined), (error) => error instanceof InvalidCircuitError && error.field === "namespace");
});

test("between requests the object sleeps: no timer and no alarm keeps it in memory", async () => {
  const { objects, a, version } = sleeping;
  assert.equal(await objects.knock("instances"), 1);
  // The runtime evicts what was idle for about ten seconds.
  for (let idle = 0; (await objects.knock("instances")) === 1 && idle < 60; idle += 12) {
    await sleep(idle * 1_000);
    assert.equal((await a.operation("get", "http.shop")).version, version);
  }
  assert.equal(await objects.knock("instances"), 2);
  assert.equal(await objects.knock("object", { name: NAME, path: "alarm" }), null);
});
