// `npm test`: the whole gate, step by step; the next step runs even when one failed. `npm test -- --only node,rust` runs some of them.
import { basename, join, relative } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { StepError, bold, dim, duration, fail, filesUnder, output, root, run, say, timed } from "./shell.mjs";
import { chromium, chromiumPath, firefox, firefoxPath, hosts, prometheus, prometheusPath, redis, redisServer, rustComponents, setup, webkit } from "./setup.mjs";

const wasm = ["--target", "wasm32-unknown-unknown"];
const clippy = (...args) => run("cargo", ["clippy", "--locked", ...args, "--", "-D", "warnings"]);
const nextest = output("cargo", ["nextest", "--version"]) !== null;

/** `built`: needs dist/. */
const steps = [
  {
    name: "fmt",
    what: "rustfmt",
    run: async () => {
      await run("cargo", ["fmt", "--all", "--check"]);
      await run("cargo", ["fmt", "--check", "--manifest-path", "bench/native/Cargo.toml"]);
    },
  },
  { name: "clippy", what: "clippy, the workspace", run: () => clippy("--workspace", "--all-targets") },
  {
    name: "clippy-wasm",
    what: "clippy, both Wasm builds",
    run: async () => {
      await clippy("--package", "tripcurve-wasm", ...wasm);
      await clippy("--package", "tripcurve-wasm", ...wasm, "--features", "objects");
    },
  },
  {
    name: "rust",
    what: `Rust tests, native${nextest ? " (nextest)" : ""}`,
    run: () => run("cargo", nextest ? ["nextest", "run", "--locked", "--workspace"] : ["test", "--locked", "--workspace", "--all-targets"]),
  },
  { name: "doctest", what: "Rust documentation tests", run: () => run("cargo", ["test", "--locked", "--doc", "--package", "tripcurve"]) },
  {
    name: "doc",
    what: "cargo doc without a warning",
    run: () => run("cargo", ["doc", "--locked", "--no-deps", "--package", "tripcurve"], { env: { RUSTDOCFLAGS: "-D warnings" } }),
  },
  { name: "build", what: "Wasm and TypeScript", run: build },
  { name: "surface", what: "public exports as listed", built: true, run: () => nodeTests("tests/surface") },
  { name: "node", what: "the package in Node", built: true, run: () => nodeTests("tests/node") },
  {
    name: "translated",
    what: "the same in Node without WebAssembly",
    built: true,
    run: () => nodeTests("tests/node", { args: ["--conditions=fastly"], without: ["nowasm.test.mjs", "types.test.mjs"] }),
  },
  { name: "simulate", what: "participants and stores in simulated time", built: true, run: () => nodeTests("tests/simulate") },
  { name: "workerd", what: "Workers KV, Durable Objects and an example of them in workerd", built: true, run: () => nodeTests("tests/workerd") },
  { name: "stores", what: "every store on its real backend", built: true, run: () => nodeTests("tests/stores") },
  { name: "observability", what: "the example's metrics, alert rules and dashboard in Prometheus", built: true, run: () => nodeTests("tests/observability") },
  { name: "sizes", what: "sizes as listed", built: true, run: () => nodeTests("tests/sizes") },
  { name: "packaging", what: "the packed tarball: contents, types, publint, attw, both registries", built: true, run: () => nodeTests("tests/packaging") },
  { name: "examples", what: "what users copy, run", built: true, run: () => nodeTests("tests/examples") },
  { name: "hosts", what: "the packed tarball in every host", built: true, run: () => nodeTests("tests/hosts") },
  { name: "browser", what: "the page in Chromium", built: true, run: () => nodeTests("tests/browser") },
  { name: "tabs", what: "browser stores in Chromium and Firefox", built: true, run: () => nodeTests("tests/browser-stores") },
];

// Node 20 does not expand patterns and Node 22 does not search folders, so the files are listed here. One file at a time: two cores.
function nodeTests(folder, { args = [], without = [] } = {}) {
  const files = filesUnder(folder).filter((file) => /\.test\.(mjs|js)$/.test(file) && !without.includes(basename(file)));
  if (files.length === 0) throw new StepError(`there are no tests in ${folder}`);
  return run(process.execPath, [...args, "--test", "--test-concurrency=1", "--test-timeout=300000", "--test-reporter=spec", ...files.map((file) => relative(root, file))], {
    env: { CHROMIUM: chromiumPath, FIREFOX: firefoxPath, REDIS_SERVER: redisServer, PROMETHEUS: prometheusPath, ...(values.update && { TRIPCURVE_UPDATE: "1" }) },
  });
}

const { values } = parseArgs({ options: { only: { type: "string" }, list: { type: "boolean" }, update: { type: "boolean" } } });
if (values.list) {
  for (const { name, what } of steps) say(`${name.padEnd(12)} ${what}`);
  process.exit(0);
}
const only = values.only?.split(",").map((name) => name.trim());
const unknown = only?.filter((name) => !steps.some((step) => step.name === name)) ?? [];
if (unknown.length > 0) fail(new StepError(`no step is called ${unknown.join(", ")}; there are: ${steps.map(({ name }) => name).join(", ")}`));

const chosen = steps.filter(({ name }) => !only || only.includes(name));
const wanted = steps.filter((step) => chosen.includes(step) || (step.name === "build" && chosen.some(({ built }) => built)));
const results = [];

await step("setup", "what the machine needs", async () => {
  await setup();
  await rustComponents();
  if (chosen.some(({ name }) => ["hosts", "examples", "browser", "tabs"].includes(name))) await chromium();
  if (chosen.some(({ name }) => ["hosts", "tabs"].includes(name))) await firefox();
  if (chosen.some(({ name }) => name === "hosts")) await webkit();
  if (chosen.some(({ name }) => ["stores", "examples"].includes(name))) await redis();
  if (chosen.some(({ name }) => ["stores", "hosts", "examples"].includes(name))) await hosts();
  if (chosen.some(({ name }) => name === "observability")) await prometheus();
});
for (const { name, what, built, run: work } of wanted) {
  const missing = results.find((result) => result.problem && (result.name === "setup" || (built && result.name === "build")));
  if (missing) results.push({ name, ms: 0, problem: `not run: ${missing.name} failed` });
  else await step(name, what, work);
}

async function step(name, what, work) {
  const started = Date.now();
  let problem = null;
  try {
    await timed(`${name}: ${what}`, work);
  } catch (error) {
    problem = error instanceof StepError ? error.message : String(error?.stack ?? error);
    say(bold(`✗ ${name}: ${problem}`));
  }
  results.push({ name, ms: Date.now() - started, problem });
  say();
}

const failed = results.filter(({ problem }) => problem);
for (const { name, ms, problem } of results) say(`${problem ? "✗" : "✓"} ${name.padEnd(12)} ${duration(ms).padStart(12)}${problem ? `   ${problem.split("\n")[0]}` : ""}`);
say(dim(`  ${"together".padEnd(12)} ${duration(results.reduce((sum, { ms }) => sum + ms, 0)).padStart(12)}`));
say(`${results.length - failed.length} passed, ${failed.length} failed`);
process.exitCode = failed.length > 0 ? 1 : 0;
