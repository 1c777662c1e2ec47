// waitUntil on Vercel: with its own package, and in its edge runtime. The launcher of a function offers each request's context so.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { EdgeVM } from "@edge-runtime/vm";
import * as vercel from "@vercel/functions";
import { build } from "esbuild";
import { CircuitBreaker, memoryStore } from "tripcurve";
import { waitUntil } from "tripcurve/adapters/vercel";
import { outcomeOf, reported } from "./help.mjs";

const VERCEL = Symbol.for("@vercel/request-context");
const NEXT = Symbol.for("@next/request-context");
after(() => {
  for (const context of [VERCEL, NEXT]) delete globalThis[context];
});

const requests = new AsyncLocalStorage();
/** Runs a request as the launcher does: the answer, and the work it is to be kept alive for. */
async function request(handle) {
  const kept = [];
  const answer = await requests.run({ waitUntil: (work) => kept.push(work) }, handle);
  return { answer, kept };
}

function guard(options = {}) {
  const memory = memoryStore();
  const later = (work) => new Promise((resolve) => setTimeout(resolve, 5)).then(work);
  const store = {
    consistency: "atomic",
    get: (key) => later(() => memory.get(key)),
    set: (...args) => later(() => memory.set(...args)),
  };
  const breaker = new CircuitBreaker("http.shop", { failures: 1, openMs: 60_000 }, { store, storeTimeoutMs: 5_000, ...options });
  return { breaker, stored: () => memory.get("http.shop")?.snapshot ?? null };
}
const down = () => Promise.reject(new Error("down"));

for (const [name, option] of Object.entries({ "this package": waitUntil, "@vercel/functions": vercel.waitUntil }))
  test(`the request whose call opens the circuit waits until that is written (waitUntil of ${name})`, async () => {
    globalThis[VERCEL] = { get: () => requests.getStore() };
    const { breaker, stored } = guard({ waitUntil: option });
    await breaker.run(() => 1);
    const [healthy, failing] = await Promise.all([request(() => breaker.run(() => 1)), request(() => outcomeOf(breaker.run(down)))]);
    assert.equal(failing.answer.error.message, "down");
    assert.deepEqual([healthy.kept.length, failing.kept.length], [0, 1]);
    assert.equal(stored(), null, "the answer does not wait");
    await Promise.all(failing.kept);
    assert.equal(stored(), breaker.snapshot());
  });

test("Next.js on another host is asked first, and Vercel's context where it cannot wait", () => {
  const asked = [];
  globalThis[VERCEL] = { get: () => ({ waitUntil: () => asked.push("vercel") }) };
  for (const next of [{ get: () => ({ waitUntil: () => asked.push("next") }) }, { get: () => ({}) }, { get: () => undefined }, {}]) {
    globalThis[NEXT] = next;
    waitUntil(Promise.resolve());
  }
  delete globalThis[NEXT];
  assert.deepEqual(asked, ["next", "vercel", "vercel", "vercel"]);
});

const outside = { "no context at all": undefined, "no request": { get: () => undefined }, "a context that throws": { get: () => { throw new Error("not here"); } } };
for (const [name, context] of Object.entries(outside))
  test(`with ${name} the work goes on by itself, and nobody hears of it`, async () => {
    globalThis[VERCEL] = context;
    const { breaker, stored } = guard({ waitUntil });
    const faults = await reported(async () => {
      await breaker.run(() => 1);
      await outcomeOf(breaker.run(down));
    });
    assert.deepEqual(faults, []);
    await breaker.flush();
    assert.equal(stored(), breaker.snapshot());
  });

test("in the edge runtime: by the context of the request, or by the event for one call", async () => {
  const { outputFiles } = await build({
    stdin: { contents: edge, resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
    ...{ bundle: true, format: "iife", write: false, logLevel: "error", conditions: ["edge-light"], plugins: [compiled] },
  });
  // The host adds AsyncLocalStorage, and modules it has compiled, as Vercel and Next.js do; bytes are not compiled there.
  const module = new WebAssembly.Module(readFileSync(new URL("../../dist/pkg/tripcurve_bg.wasm", import.meta.url)));
  const refused = "WebAssembly.Module = function () { throw new Error('bytes are not compiled here') };";
  const vm = new EdgeVM({ initialCode: refused + outputFiles[0].text, extend: (context) => Object.assign(context, { AsyncLocalStorage, module }) });
  for (const way of ["context", "event"]) {
    const response = await vm.dispatchFetch(`https://edge.example/${way}`);
    assert.equal(await response.text(), "wasm; down; nothing written yet");
    await response.waitUntil();
    assert.equal(vm.evaluate(`texts.get(${JSON.stringify(way)}).startsWith("1;O")`), true);
  }
});

/** As a host's own bundler does: the module is compiled by the host. */
const compiled = {
  name: "compiled",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\.wasm\?module$/ }, ({ path }) => ({ path, namespace: "compiled" }));
    onLoad({ filter: /.*/, namespace: "compiled" }, () => ({ contents: "export default globalThis.module" }));
  },
};

const edge = `
  import { CircuitBreaker } from "tripcurve";
  import { waitUntil } from "tripcurve/adapters/vercel";

  const requests = new AsyncLocalStorage();
  globalThis[Symbol.for("@vercel/request-context")] = { get: () => requests.getStore() };
  const texts = (globalThis.texts = new Map());
  const later = (work) => new Promise((resolve) => setTimeout(resolve, 5)).then(work);
  const store = {
    consistency: "last_write",
    get: (key) => later(() => (texts.has(key) ? { snapshot: texts.get(key), version: null } : null)),
    set: (key, text) => later(() => (texts.set(key, text), { ok: true })),
  };
  async function answer(way, options) {
    const breaker = new CircuitBreaker(way, { failures: 1, openMs: 60_000 }, { store, storeTimeoutMs: 5_000, ...(way === "context" && { waitUntil }) });
    const failed = await breaker.run(() => Promise.reject(new Error("down")), options).catch((error) => error.message);
    return new Response(breaker.backend + "; " + failed + (texts.has(way) ? "; written" : "; nothing written yet"));
  }
  addEventListener("fetch", (event) => {
    const way = new URL(event.request.url).pathname.slice(1);
    const keep = (work) => event.waitUntil(work);
    event.respondWith(way === "event" ? answer(way, { waitUntil: keep }) : requests.run({ waitUntil: keep }, () => answer(way)));
  });
`;
