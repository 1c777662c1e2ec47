// Hosts that refuse WebAssembly: its translation to JavaScript does the same; where that cannot be loaded calls pass, and somebody is told.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";

const run = (prelude, body) =>
  JSON.parse(
    execFileSync(
      process.execPath,
      ["--input-type=module", "-e", `${prelude}
        const faults = [];
        globalThis.reportError = (error) => faults.push(error.message);
        const { CircuitBreaker, CircuitRegistry, memoryStore, wrapFetch, ready } = await import("tripcurve");
        const told = [];
        ${body}`],
      { cwd: new URL("../..", import.meta.url), encoding: "utf8" },
    ),
  );

const refusals = {
  "without WebAssembly": "delete globalThis.WebAssembly;",
  "where compiling is refused": "WebAssembly.Module = function () { throw new WebAssembly.CompileError('blocked by CSP') };",
  "where linking is refused": "WebAssembly.Instance = function () { throw new WebAssembly.CompileError('Refused to create a WebAssembly object') };",
};
/** As a policy does that allows no more scripts, or a bundle that lost a file. */
const UNTRANSLATED = `
  import { register } from "node:module";
  register("data:text/javascript," + encodeURIComponent('export async function resolve(name, context, next) { if (name.includes("translated")) throw new Error("not there"); return next(name, context); }'));`;

for (const [name, prelude] of Object.entries(refusals)) {
  test(`${name} the translation guards: circuits open, refuse, probe, close, are stored and shared (R32)`, () => {
    const out = run(prelude, `
      let now = 1e12;
      const store = memoryStore({ clock: () => now });
      const options = { clock: () => now, store };
      const policy = { failures: 2, failureRate: null, openMs: 1_000 };
      const one = new CircuitBreaker("a", policy, options);
      one.on("transition", ({ to, reason }) => told.push(to + " " + reason));
      one.on("diagnostic", ({ code }) => told.push(code));
      const fail = (breaker) => breaker.run(() => { throw new Error("down") }).catch((error) => error.code ?? error.message);
      const results = [await fail(one), await fail(one), await fail(one)];
      results.push(await fail(new CircuitRegistry(policy, options).get("a")));
      now += 1_000;
      results.push(await one.run(() => "fine"));
      const guarded = wrapFetch(async () => ({ status: 503, type: "basic", text: async () => "body" }), { policy, clock: () => now });
      for (let i = 0; i < 3; i++) results.push(await guarded("https://a.example").then(({ status }) => status, ({ code }) => code));
      console.log(JSON.stringify({ backend: one.backend, results, told, faults }));`);
    assert.deepEqual(out, {
      backend: "js",
      results: ["down", "down", "ERR_CIRCUIT_OPEN", "ERR_CIRCUIT_OPEN", "fine", 503, 503, "ERR_CIRCUIT_OPEN"],
      told: ["open failure_count", "half_open open_elapsed", "closed probes_succeeded"],
      faults: [],
    });
  });

  test(`${name}, and without the translation, calls pass uncounted, and one diagnostic is told`, () => {
    const out = run(UNTRANSLATED + prelude, `
      const breaker = new CircuitBreaker("a", { failures: 1, failureRate: null });
      breaker.on("diagnostic", ({ code }) => told.push(code));
      const results = [];
      for (const fn of [() => 1, () => { throw 2 }, async () => 3]) results.push(await breaker.run(fn).catch((error) => -error));
      const permit = await breaker.admit();
      permit.settle("failure");
      breaker.record("failure"); breaker.force("open"); breaker.hold("open"); breaker.release(); breaker.reset();
      breaker.restore(breaker.snapshot());
      const registry = new CircuitRegistry();
      await registry.get("b").run(() => 1);
      const guarded = wrapFetch(async () => ({ status: 200, type: "basic", text: async () => "body" }));
      const text = await (await guarded("https://a.example")).text();
      breaker.dispose();
      console.log(JSON.stringify({ backend: breaker.backend, results, state: breaker.state, kind: permit.kind, text, told, faults: faults.length, admits: breaker.inspect().admits }));`);
    assert.deepEqual(out, { backend: "none", results: [1, -2, 3], state: "closed", kind: "allowed", text: "body", told: ["no_wasm"], faults: 1, admits: true });
  });
}

test("a policy that cannot work is told when the translation is there, and its calls pass uncounted", () => {
  const out = run("delete globalThis.WebAssembly;", `
    const good = new CircuitBreaker("a", { failures: 1, failureRate: null });
    const bad = new CircuitBreaker("b", { minimumCalls: 0 });
    const fail = (breaker) => breaker.run(() => { throw new Error("down") }).catch((error) => error.code ?? error.message);
    const results = [];
    for (const breaker of [bad, good, bad, good]) results.push(await fail(breaker));
    console.log(JSON.stringify({ results, faults }));`);
  assert.deepEqual(out.results, ["down", "down", "down", "ERR_CIRCUIT_OPEN"]);
  assert.match(out.faults.join(), /^minimumCalls must be a whole number from 1 to 10000/);
});

test("calls that come together each wait for the translation by themselves, and all are guarded (R07)", () => {
  const out = run("delete globalThis.WebAssembly;", `
    const breaker = new CircuitBreaker("a", { failures: 1, failureRate: null });
    const calls = Array.from({ length: 5 }, (_, i) => breaker.run(() => i));
    console.log(JSON.stringify({ values: await Promise.all(calls), calls: breaker.inspect().counts.calls }));`);
  assert.deepEqual(out, { values: [0, 1, 2, 3, 4], calls: 5 });
});

test("where compiling at once is refused but not later, ready makes it work", () => {
  const out = run("const { Module } = WebAssembly; WebAssembly.Module = function () { throw new Error('larger than 4 KB') };", `
    await ready();
    console.log(JSON.stringify({ backend: new CircuitBreaker("a").backend, faults }));`);
  assert.deepEqual(out, { backend: "wasm", faults: [] });
});

test("ready resolves where WebAssembly is refused, and is nobody's to wait for twice (R07)", () => {
  const out = run("WebAssembly.instantiate = () => Promise.reject(new Error('no')); WebAssembly.Module = function () { throw new Error('no') };", `
    await ready(); await ready();
    console.log(JSON.stringify({ backend: new CircuitBreaker("a").backend }));`);
  assert.deepEqual(out, { backend: "js" });
  const hanging = run("WebAssembly.instantiate = () => new Promise(() => {});", `
    void ready();
    const breaker = new CircuitBreaker("a");
    await ready();
    console.log(JSON.stringify({ backend: breaker.backend, value: await breaker.run(() => 1) }));`);
  assert.deepEqual(hanging, { backend: "wasm", value: 1 });
});

test("random numbers refused at first are drawn later", () => {
  const out = run("const real = crypto.getRandomValues.bind(crypto); let refused = 0; crypto.getRandomValues = () => { refused++; throw new Error('global scope') };", `
    const breaker = new CircuitBreaker("a", { openMs: 5 });
    breaker.force("open");
    crypto.getRandomValues = real;
    breaker.reset(); breaker.force("half_open");
    const permit = await breaker.admit();
    console.log(JSON.stringify({ refused: refused > 0, kind: permit.kind }));`);
  assert.deepEqual(out, { refused: true, kind: "probe" });
});
