// The kv store on the real Workers runtime: isolates that share one verdict through one KV namespace, and a failing upstream behind them.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { kvStore } from "tripcurve/stores/kv";
import { storeContract } from "tripcurve/testing";
import { LaggyKv } from "../node/laggy-kv.mjs";

const folder = mkdtempSync(join(tmpdir(), "tripcurve-workerd-"));
after(() => rmSync(folder, { recursive: true, force: true }));

before(() =>
  build({
    entryPoints: [fileURLToPath(new URL("fixtures/worker.mjs", import.meta.url))],
    ...{ bundle: true, format: "esm", conditions: ["workerd", "worker", "browser"], external: ["cloudflare:workers"] },
    loader: { ".wasm": "copy" },
    outfile: join(folder, "worker.mjs"),
    logLevel: "error",
  }),
);

/** Two Workers, so two isolates, `a` and `b`, on one namespace; all their fetches end in one upstream that answers `status`. */
async function cloud(t, options = {}) {
  const upstream = { status: 503, reached: 0 };
  const isolate = (name) => ({
    ...{ name, modules: true, scriptPath: join(folder, "worker.mjs"), modulesRoot: folder, compatibilityDate: "2026-04-01" },
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
    kvNamespaces: { KV: "circuits" },
    outboundService: () => {
      upstream.reached += 1;
      return new Response(upstream.status < 400 ? "up" : "down", { status: upstream.status });
    },
  });
  const runtime = new Miniflare({ cf: false, workers: [isolate("a"), isolate("b")], ...options });
  const stop = once(() => runtime.dispose());
  t.after(stop);
  await runtime.ready;
  const worker = async (name) => {
    const handle = await runtime.getWorker(name);
    const ask = async (path) => {
      const response = await handle.fetch(`http://worker${path}`);
      return response.status === 204 ? null : response.json();
    };
    return {
      call: () => ask("/call"),
      calls: (count) => Promise.all(Array.from({ length: count }, () => ask("/call"))),
      advance: (ms) => ask(`/advance?ms=${ms}`),
      fault: (kind) => ask(`/fault?kind=${kind}`),
      diagnostics: () => ask("/diagnostics"),
      async operations(name) {
        return (await ask("/operations")).filter((operation) => !name || operation.name.startsWith(name));
      },
    };
  };
  return { upstream, stop, kv: await runtime.getKVNamespace("KV", "a"), a: await worker("a"), b: await worker("b") };
}

function once(work) {
  let result;
  return () => (result ??= work());
}

const trip = async (worker) => {
  for (let call = 0; call < 4; call += 1) assert.equal((await worker.call()).status, 503);
};

/** What is written by waitUntil is in the namespace soon after the answer. */
async function eventually(what, look) {
  for (let left = 100; left > 0; left -= 1) {
    const seen = await look();
    if (seen) return seen;
    await sleep(20);
  }
  assert.fail(`never happened: ${what}`);
}
const stored = ({ kv }) => eventually("a verdict in KV", async () => (await kv.list()).keys[0]);

describe("what every store promises", () => {
  let kv;
  const ends = [];
  before(async () => ({ kv } = await cloud({ after: (end) => ends.push(end) })));
  after(() => Promise.all(ends.map((end) => end())));
  // At once: each check uses keys of its own, and waits for the second of each.
  describe("the namespace of one place", { concurrency: true }, () => {
    for (const { name, run } of storeContract(() => kvStore(kv))) test(name, run);
  });
});

test("KV refuses what its fake in tests/node refuses", async (t) => {
  const { kv } = await cloud(t);
  for (const namespace of [kv, new LaggyKv(Date.now).at("here")]) {
    for (const expirationTtl of [59, 1, -1]) await assert.rejects(namespace.put("key", "text", { expirationTtl }), /^Error: KV PUT failed: 400 Invalid expiration_ttl of/);
    await namespace.put("key", "text", { expirationTtl: 60 });
    assert.equal(await namespace.get("key"), "text");
    await namespace.delete("key");
    assert.equal(await namespace.get("key"), null);
  }
});

test("a failing upstream opens the circuit; refused calls do not reach it", async (t) => {
  const { a, upstream } = await cloud(t);
  await trip(a);
  const refusal = await a.call();
  assert.equal(refusal.refused, "open");
  assert.ok(refusal.retryAfterMs > 8_000 && refusal.retryAfterMs <= 10_000, `${refusal.retryAfterMs} ms`);
  assert.equal(upstream.reached, 4);
});

test("the open verdict is in KV, with a lifetime that KV accepts and that outlasts the open time", async (t) => {
  const world = await cloud(t);
  await trip(world.a);
  const { expiration } = await stored(world);
  assert.ok(expiration * 1000 >= Date.now() + 55_000, "KV's own minimum is 60 s");
  for (const { options } of await world.a.operations("put")) assert.ok(options.expirationTtl >= 60, JSON.stringify(options));
});

test("an isolate that starts later refuses from its first call", async (t) => {
  const world = await cloud(t);
  await trip(world.a);
  await stored(world);
  assert.equal((await world.b.call()).refused, "open");
  assert.equal(world.upstream.reached, 4);
});

test("an isolate that was healthy learns of it at its next refresh", async (t) => {
  const world = await cloud(t);
  world.upstream.status = 200;
  assert.equal((await world.b.call()).status, 200);
  world.upstream.status = 503;
  await world.a.advance(61_000);
  await world.b.advance(61_000);
  await trip(world.a);
  await stored(world);
  world.upstream.status = 200;
  await eventually("b refuses", async () => (await world.b.call()).refused === "open");
});

test("a due circuit is probed, and its recovery reaches the other isolate", async (t) => {
  const world = await cloud(t);
  await trip(world.a);
  await stored(world);
  assert.equal((await world.b.call()).refused, "open");
  world.upstream.status = 200;
  await world.a.advance(10_001);
  assert.deepEqual(await world.a.call().then(({ status, body }) => ({ status, body })), { status: 200, body: "up" });
  assert.equal((await world.a.call()).status, 200);
  await eventually("a writes its recovery", async () => (await world.a.operations("put")).length >= 2);
  await world.b.advance(61_000);
  await eventually("b recovers", async () => (await world.b.call()).status === 200);
});

test("the verdict survives a new deployment", async (t) => {
  const kvPersist = join(folder, "persisted");
  const first = await cloud(t, { kvPersist });
  await trip(first.a);
  await stored(first);
  await first.stop();
  const second = await cloud(t, { kvPersist });
  assert.equal((await second.a.call()).refused, "open");
  assert.equal(second.upstream.reached, 0);
});

test("fifty healthy calls write nothing and read once", async (t) => {
  const { a, upstream } = await cloud(t);
  upstream.status = 200;
  for (let call = 0; call < 50; call += 1) assert.equal((await a.call()).status, 200);
  const operations = await a.operations();
  assert.equal(operations.filter(({ name }) => name.startsWith("get")).length, 1, JSON.stringify(operations));
  assert.equal(operations.length, 1, JSON.stringify(operations));
});

test("requests that meet in a cold isolate do not wait on each other's promises", async (t) => {
  const world = await cloud(t);
  await trip(world.a);
  await stored(world);
  const answers = await world.b.calls(20);
  assert.deepEqual([...new Set(answers.map(({ refused, problem }) => problem ?? refused))], ["open"]);
  assert.equal(world.upstream.reached, 4);
});

test("requests in flight together trip one circuit once", async (t) => {
  const world = await cloud(t);
  const answers = await world.a.calls(20);
  assert.deepEqual(answers.filter(({ problem }) => problem), []);
  assert.equal((await world.a.call()).refused, "open");
  await stored(world);
  assert.equal((await world.a.operations("put")).length, 1, "one verdict, one write");
});

for (const kind of ["rejects", "hangs"])
  test(`a KV that ${kind} hurts no call: the local verdict decides`, async (t) => {
    const { a, upstream } = await cloud(t);
    await a.fault(kind);
    upstream.status = 200;
    const { status, ms } = await a.call();
    assert.equal(status, 200);
    assert.ok(ms < 1_000, `${ms} ms`);
    upstream.status = 503;
    await eventually("the circuit opens", async () => (await a.call()).refused === "open");
    assert.equal(upstream.reached, 4, "one success, three failures");
    assert.ok((await a.diagnostics()).length > 0, "the fault is reported");
  });
