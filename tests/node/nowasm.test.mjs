// Hosts that refuse WebAssembly: calls pass, and somebody is told.
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
        const { CircuitBreaker, CircuitRegistry, wrapFetch, ready } = await import("tripcurve");
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
for (const [name, prelude] of Object.entries(refusals)) {
  test(`${name} calls pass uncounted, and one diagnostic is told (R32)`, () => {
    const out = run(prelude, `
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
  assert.deepEqual(out, { backend: "none" });
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
