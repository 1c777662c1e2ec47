// One tarball, one import line, every host: each trips a circuit and lets it recover. docs/hosts.md has the table.
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { EdgeVM } from "@edge-runtime/vm";
import { build as esbuild, transform } from "esbuild";
import { Miniflare } from "miniflare";
import { build as vite, createServer as viteServer } from "vite";
import { entries } from "../../scripts/surface.mjs";
import { freePort, started, until } from "../examples/stranger.mjs";
import { expected } from "./fixtures/expected.mjs";
import { hosts } from "./hosts.mjs";
import { call, installPacked, lastLine, outcomeIn, runNode, serving } from "./packed.mjs";
import { tableOf, write, written } from "./table.mjs";
import { outcomeInWebKit, skip as noWebKit } from "./webkit.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const resolve = createRequire(join(here, "package.json"));
/** The version of a tool, where it is installed. */
function versionOf(name) {
  for (const folder of [here, join(here, "..", "..")]) {
    const manifest = join(folder, "node_modules", name, "package.json");
    if (existsSync(manifest)) return JSON.parse(readFileSync(manifest, "utf8")).version;
  }
  return undefined;
}
const need = (name) => !versionOf(name) && `${name} is not installed: npm ci --prefix tests/hosts`;
const load = (name) => import(pathToFileURL(resolve.resolve(name)));

let packed;
const at = (...path) => join(packed.project, ...path);
// Inside tests/hosts, so that the project finds the bundlers as a stranger's does.
before(async () => (packed = await installPacked(join(here, "projects"))));
after(() => packed?.remove());

const guardOnly = ({ core, ...rest }) => rest;
const withoutWasm = guardOnly({ ...expected, backend: "js" });
const rows = [];

/** Declares a row: `run` gives what the smoke test found, with the host's version if only it knows. */
function host(name, how, { version, skip = false, wants = expected }, run) {
  const row = { host: name, version, how, backend: wants.backend, ran: false };
  rows.push(row);
  test(`${name}: ${how}`, { skip }, async () => {
    const found = await run();
    row.version ??= found.version;
    assert.deepEqual(found.outcome ?? found, wants);
    row.ran = true;
  });
}

const pageOf = (script, kind = "module") => `<!doctype html><meta charset="utf-8"><title>packed</title><script type="${kind}" src="${script}"></script>`;
const bundle = (entry, options) => esbuild({ entryPoints: [at(entry)], absWorkingDir: packed.project, bundle: true, minify: true, logLevel: "error", ...options });
/** A folder of the project for what a bundler makes, with a page that loads it. */
function target(name, script, kind) {
  mkdirSync(at(name), { recursive: true });
  if (script) writeFileSync(at(name, "index.html"), pageOf(script, kind));
  return at(name);
}
const inChromium = (folder, { headers, prelude } = {}) => serving(folder, (url) => outcomeIn("Chromium", url, prelude), headers);

// -- servers ---------------------------------------------------------------------------------------------------------------------

host("Node 20", "`import`", { version: process.version.startsWith("v20.") ? process.versions.node : undefined, skip: !process.version.startsWith("v20.") && "this is another Node" }, () => runNode(packed.project, "node.mjs"));
host("Node 20", "`require`", { version: process.version.startsWith("v20.") ? process.versions.node : undefined, skip: !process.version.startsWith("v20.") && "this is another Node" }, async () => {
  await asCommonJs();
  return runNode(packed.project, "required.cjs");
});
for (const [name, { skip, run, version, requires }] of Object.entries(hosts)) {
  host(name, "`import`", { skip, version }, async () => lastLine(await run(at("node.mjs"))));
  if (!requires) continue;
  host(name, "`require`", { skip, version }, async () => {
    await asCommonJs();
    return lastLine(await run(at("required.cjs")));
  });
}

async function asCommonJs() {
  const { code } = await transform(readFileSync(at("smoke.mjs"), "utf8"), { format: "cjs" });
  writeFileSync(at("smoke.cjs"), code);
}

host("workerd", "a Worker, bundled with the condition `workerd`", { version: versionOf("workerd") }, async () => {
  const outfile = at("workerd", "worker.mjs");
  const { metafile } = await bundle("worker.mjs", {
    ...{ format: "esm", conditions: ["workerd", "worker", "browser"], external: ["cloudflare:workers"], loader: { ".wasm": "copy" }, metafile: true },
    outfile,
  });
  assert.deepEqual(Object.keys(metafile.inputs).filter((input) => input.endsWith("bytes.js")), [], "the modules are files, not text");
  const worker = new Miniflare({
    ...{ modules: true, scriptPath: outfile, modulesRoot: dirname(outfile), cf: false, compatibilityDate: "2026-04-01" },
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
  });
  try {
    return await (await worker.dispatchFetch("http://worker/")).json();
  } finally {
    await worker.dispose();
  }
});

host("Vercel's edge runtime", "`@edge-runtime/vm`, bundled with the condition `edge-light`", { version: versionOf("@edge-runtime/vm"), wants: guardOnly(expected) }, async () => {
  const module = { name: "modules", setup: (build) => build.onLoad({ filter: /\.wasm$/ }, ({ path }) => ({ contents: `export default new WebAssembly.Module(Uint8Array.from(atob("${readFileSync(path, "base64")}"), (c) => c.charCodeAt()))`, loader: "js" })) };
  const { outputFiles } = await bundle("guard.mjs", { format: "iife", conditions: ["edge-light"], write: false, plugins: [module] });
  const vm = new EdgeVM();
  vm.evaluate(outputFiles[0].text);
  return JSON.parse(JSON.stringify(await vm.evaluate("outcome")));
});

const next = createNext();
for (const [path, how, wants] of [["node", "a route handler", expected], ["edge", 'a route handler with `runtime = "edge"`', guardOnly(expected)]]) {
  host("Next.js", how, { version: versionOf("next"), skip: need("next"), wants }, async () => (await fetch(`${await next()}/${path}`)).json());
}
host("Next.js", "a client component, in Chromium", { version: versionOf("next"), skip: need("next"), wants: guardOnly(expected) }, async () => (await outcomeIn("Chromium", await next())).outcome);

/** Builds and starts once, when it is asked for. */
function createNext() {
  let server, ready;
  after(() => server?.stop());
  const start = async () => {
    const folder = at("next");
    cpSync(at("next-app"), folder, { recursive: true });
    cpSync(at("smoke.mjs"), join(folder, "app", "smoke.mjs"));
    const bin = join(here, "node_modules", "next", "dist", "bin", "next");
    const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", CI: "1" };
    await call(process.execPath, [bin, "build"], { cwd: folder, env });
    server = await started(folder, bin, ["start", "-p", await freePort(), "-H", "127.0.0.1"], env);
    await until(() => fetch(server.url).then(({ ok }) => ok, () => sleep(100)), Boolean, 300); // it names its address before it listens
    return server.url;
  };
  return () => (ready ??= start());
}

// -- browsers --------------------------------------------------------------------------------------------------------------------

function importMapped(script) {
  const imports = Object.fromEntries(entries().map(({ specifier, file }) => [specifier, `/node_modules/tripcurve/${file.slice(file.indexOf("dist/"))}`]));
  writeFileSync(at("index.html"), `<!doctype html><title>packed</title><script type="importmap">${JSON.stringify({ imports })}</script><script type="module" src="${script}"></script>`);
  return packed.project;
}
for (const name of ["Chromium", "Firefox"]) {
  host(name, "a page without a bundler, by an import map", {}, () => serving(importMapped("/page.mjs"), (url) => outcomeIn(name, url)));
}
host("WebKit", "a page without a bundler, by an import map (WebKitGTK)", { skip: noWebKit }, () => serving(importMapped("/page.mjs"), outcomeInWebKit));

host("web worker", "an ES module, in Chromium", { wants: guardOnly(expected) }, async () => {
  const folder = target("web-worker", "page.js");
  await bundle("in-worker.mjs", { format: "esm", outfile: join(folder, "worker.js") });
  writeFileSync(join(folder, "page.js"), 'const worker = new Worker("worker.js", { type: "module" }); worker.onmessage = ({ data }) => (globalThis.outcome = data.answer); worker.postMessage(1);');
  return inChromium(folder);
});
host("service worker", "an ES module, in Chromium", { wants: guardOnly(expected) }, async () => {
  const folder = target("service-worker", "page.js");
  await bundle("in-worker.mjs", { format: "esm", outfile: join(folder, "worker.js") });
  writeFileSync(
    join(folder, "page.js"),
    `await navigator.serviceWorker.register("worker.js", { type: "module" });
     navigator.serviceWorker.addEventListener("message", ({ data }) => (globalThis.outcome = data.answer));
     navigator.serviceWorker.startMessages();
     (await navigator.serviceWorker.ready).active.postMessage(1);`,
  );
  return inChromium(folder);
});
for (const [how, options] of Object.entries({
  "whose policy forbids WebAssembly (`script-src 'self'`), built with Vite": { headers: { "Content-Security-Policy": "script-src 'self'" } },
  "where somebody removed `WebAssembly`, built with Vite": { prelude: "delete globalThis.WebAssembly" },
})) {
  host("a page", how, { wants: withoutWasm }, async () => {
    writeFileSync(at("index.html"), pageOf("/guard.mjs"));
    await vite({ root: packed.project, configFile: false, logLevel: "error", build: { outDir: "vite-guard" } });
    return inChromium(at("vite-guard"), options);
  });
}

// -- bundlers --------------------------------------------------------------------------------------------------------------------

host("Vite", "build, in Chromium", { version: versionOf("vite") }, async () => {
  writeFileSync(at("index.html"), pageOf("/page.mjs"));
  await vite({ root: packed.project, configFile: false, logLevel: "error", build: { outDir: "vite" } });
  return (await inChromium(at("vite"))).outcome;
});
host("Vite", "dev server, in Chromium", { version: versionOf("vite") }, async () => {
  writeFileSync(at("index.html"), pageOf("/page.mjs"));
  const server = await viteServer({ root: packed.project, configFile: false, logLevel: "error", server: { host: "127.0.0.1", port: 0 } });
  try {
    await server.listen();
    return (await outcomeIn("Chromium", server.resolvedUrls.local[0])).outcome;
  } finally {
    await server.close();
  }
});
for (const name of ["webpack", "@rspack/core"]) {
  host(name === "webpack" ? "webpack" : "Rspack", "production build, in Chromium", { version: versionOf(name), skip: need(name) }, async () => {
    const folder = target(name.replace("/", "-"), "main.js", "text/javascript");
    const loaded = await load(name);
    const pack = loaded.webpack ?? loaded.rspack ?? loaded.default;
    const stats = await new Promise((resolve, reject) =>
      pack({ context: packed.project, mode: "production", entry: "./page.mjs", output: { path: folder } }, (error, stats) => (error ? reject(error) : resolve(stats))),
    );
    assert.deepEqual(stats.toJson({ all: false, errors: true, warnings: true }).errors, []);
    return (await inChromium(folder)).outcome;
  });
}
host("Rollup", "with its node-resolve, in Chromium", { version: versionOf("rollup"), skip: need("rollup") }, async () => {
  const folder = target("rollup", "page.js");
  const [{ rollup }, { nodeResolve }] = await Promise.all([load("rollup"), load("@rollup/plugin-node-resolve")]);
  const made = await rollup({ input: at("page.mjs"), plugins: [nodeResolve()] });
  await made.write({ dir: folder, format: "es" });
  return (await inChromium(folder)).outcome;
});
host("Parcel", "build, with its option `packageExports`, in Chromium", { version: versionOf("parcel"), skip: need("parcel") }, async () => {
  const source = target("parcel-source", "../page.mjs");
  writeFileSync(at("package.json"), JSON.stringify({ ...JSON.parse(readFileSync(at("package.json"), "utf8")), "@parcel/resolver-default": { packageExports: true } }));
  const parcel = join(here, "node_modules", "parcel", "lib", "bin.js");
  const env = { ...process.env, PARCEL_WORKERS: "0" };
  await call(process.execPath, [parcel, "build", join(source, "index.html"), "--dist-dir", at("parcel"), "--no-cache", "--no-source-maps"], { cwd: packed.project, env });
  return (await inChromium(at("parcel"))).outcome;
});
host("esbuild", "a minified classic script, in Chromium", { version: versionOf("esbuild") }, async () => {
  const folder = target("esbuild", "page.js", "text/javascript");
  await bundle("page.mjs", { format: "iife", outfile: join(folder, "page.js") });
  return (await inChromium(folder)).outcome;
});
host("esbuild", "a minified module, in Node", { version: versionOf("esbuild") }, async () => {
  await bundle("node.mjs", { format: "esm", platform: "node", outfile: at("esbuild-node", "node.mjs") });
  return runNode(at("esbuild-node"), "node.mjs");
});

// -- test runners ----------------------------------------------------------------------------------------------------------------

const shown = `console.log("OUTCOME" + JSON.stringify(await smoke()));`;
const outcomeFrom = ({ stdout, stderr }) => JSON.parse(/OUTCOME(\{.*\})/.exec(stdout + stderr)[1]);
host("Vitest", "with jsdom", { version: versionOf("vitest"), skip: need("vitest"), wants: guardOnly(expected) }, async () => {
  writeFileSync(at("in-vitest.test.mjs"), `import { test } from "vitest"; import { smoke } from "./smoke.mjs"; test("it", async () => { ${shown} });`);
  const bin = join(here, "node_modules", "vitest", "vitest.mjs");
  return outcomeFrom(await call(process.execPath, [bin, "run", "in-vitest.test.mjs", "--environment", "jsdom", "--no-cache"], { cwd: packed.project }));
});
host("Jest", "with jsdom, CommonJS", { version: versionOf("jest"), skip: need("jest"), wants: guardOnly(expected) }, async () => {
  await asCommonJs();
  writeFileSync(at("in-jest.test.cjs"), `const { smoke } = require("./smoke.cjs"); test("it", async () => { ${shown} });`);
  writeFileSync(at("jest.config.json"), JSON.stringify({ testEnvironment: "jsdom", testMatch: ["**/in-jest.test.cjs"], transform: {}, modulePathIgnorePatterns: ["/next/"] }));
  return outcomeFrom(await call(process.execPath, [join(here, "node_modules", "jest", "bin", "jest.js")], { cwd: packed.project }));
});

// -- together --------------------------------------------------------------------------------------------------------------------

test("two copies of the package in one page read each other's records and know each other's errors", async () => {
  const folder = target("twice", "both.js");
  await bundle("copy.mjs", { format: "esm", outfile: join(folder, "one.js") });
  await bundle("copy.mjs", { format: "esm", outfile: join(folder, "other.js") });
  writeFileSync(join(folder, "both.js"), 'import * as one from "./one.js"; import * as other from "./other.js"; globalThis.outcome = one.meets(other);');
  assert.deepEqual((await inChromium(folder)).outcome, { same: false, states: ["open", "open"], known: [true, true], instance: false });
});

test("the table of docs/hosts.md is what was found", () => {
  const ran = rows.filter(({ ran }) => ran);
  if (process.env.TRIPCURVE_UPDATE) {
    assert.equal(ran.length, rows.length, "a table is written of a run that skipped nothing");
    return write(rows);
  }
  const lines = tableOf(ran).split("\n").slice(2);
  const page = written();
  assert.deepEqual(lines.filter((line) => !page.some((row) => same(row, line))), [], "if the change is meant, run: npm run test:hosts -- --update");
  assert.equal(page.length, rows.length, "a row of the table is not tested, or the other way round");
});

/** Debian and this Node move on by themselves. */
const unpinned = /^\| (Node 20|Chromium|Firefox|WebKit|web worker|service worker|a page) \|/;
const same = (a, b) => a === b || (unpinned.test(b) && a.split("|").with(2, "").join("|") === b.split("|").with(2, "").join("|"));
