import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { build as esbuild } from "esbuild";
import { Miniflare } from "miniflare";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import ts from "typescript";
import { build as vite } from "vite";
import { entries } from "../../scripts/surface.mjs";
import { hosts } from "../hosts/hosts.mjs";
import { expected } from "./fixtures/expected.mjs";
import { installPacked, runInChromium, runNode } from "./packed.mjs";

let packed;
const inProject = (...path) => join(packed.project, ...path);
before(async () => (packed = await installPacked()));
after(() => packed?.remove());

test("Node: the import line of the README trips and recovers a circuit", async () => {
  assert.deepEqual(await runNode(packed.project, "node.mjs"), expected);
});

for (const [name, { skip, run }] of Object.entries(hosts)) {
  test(`${name}: the same import line`, { skip }, async () => {
    assert.deepEqual(JSON.parse(await run(inProject("node.mjs"))), expected);
  });
}

test("Node: importing every entry does nothing yet", async () => {
  assert.deepEqual(await runNode(packed.project, "import-only.mjs", ...entries().map(({ specifier }) => specifier)), []);
});

test("Node: CommonJS can require it where Node can require ESM", { skip: !process.features.require_module && "this Node cannot" }, async () => {
  writeFileSync(inProject("required.cjs"), 'const { originKey } = require("tripcurve"); console.log(JSON.stringify(originKey("https://a.example")));');
  assert.equal(await runNode(packed.project, "required.cjs"), "https.a.example");
});

test("Vite: a default build runs in Chromium", async () => {
  writeFileSync(inProject("index.html"), '<!doctype html><title>packed</title><script type="module" src="/page.mjs"></script>');
  await vite({ root: packed.project, configFile: false, logLevel: "error", build: { outDir: "vite-out" } });
  assert.deepEqual(await runInChromium(inProject("vite-out")), expected);
});

const withoutWasm = { ...expected, backend: "js", core: undefined };
const GUARD_ONLY = 'import { smoke } from "./smoke.mjs"; globalThis.outcome = smoke({ core: false });';
const refusing = {
  "whose policy forbids it": { headers: { "Content-Security-Policy": "script-src 'self'" } },
  "where somebody removed it": { prelude: "delete globalThis.WebAssembly" },
};
for (const [name, host] of Object.entries(refusing)) {
  test(`Vite: the same build runs in a page without WebAssembly, ${name} (R32)`, async () => {
    writeFileSync(inProject("guard.mjs"), GUARD_ONLY);
    writeFileSync(inProject("index.html"), '<!doctype html><title>packed</title><script type="module" src="/guard.mjs"></script>');
    await vite({ root: packed.project, configFile: false, logLevel: "error", build: { outDir: "vite-guard" } });
    assert.deepEqual({ ...(await runInChromium(inProject("vite-guard"), host)), core: undefined }, withoutWasm);
  });
}

test("esbuild: a minified bundle runs in Node", async () => {
  await bundle("node.mjs", { format: "esm", platform: "node", outfile: inProject("esbuild-node", "node.mjs") });
  assert.deepEqual(await runNode(inProject("esbuild-node"), "node.mjs"), expected);
});

test("esbuild: a minified classic script runs in Chromium", async () => {
  await bundle("page.mjs", { format: "iife", outfile: inProject("esbuild-page", "page.js") });
  writeFileSync(inProject("esbuild-page", "index.html"), '<!doctype html><title>packed</title><script src="page.js"></script>');
  assert.deepEqual(await runInChromium(inProject("esbuild-page")), expected);
});

test("no bundler: an import map over the installed files runs in Chromium", async () => {
  const imports = Object.fromEntries(entries().map(({ specifier, file }) => [specifier, `/node_modules/tripcurve/${file.slice(file.indexOf("dist/"))}`]));
  writeFileSync(
    inProject("index.html"),
    `<!doctype html><title>packed</title><script type="importmap">${JSON.stringify({ imports })}</script><script type="module" src="/page.mjs"></script>`,
  );
  assert.deepEqual(await runInChromium(packed.project), expected);
});

test("workerd: a bundle with the workerd condition runs in a Worker and carries the modules as files, not as text", async () => {
  const outfile = inProject("workerd-out", "worker.mjs");
  const { metafile } = await bundle("worker.mjs", {
    ...{ format: "esm", conditions: ["workerd", "worker", "browser"], external: ["cloudflare:workers"], loader: { ".wasm": "copy" }, metafile: true },
    outfile,
  });
  assert.deepEqual(
    Object.keys(metafile.inputs).filter((input) => input.endsWith("bytes.js")),
    [],
    "the text form has no place in a Worker",
  );
  const worker = new Miniflare({
    ...{ modules: true, scriptPath: outfile, modulesRoot: dirname(outfile), cf: false, compatibilityDate: "2026-04-01" },
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
  });
  try {
    const response = await worker.dispatchFetch("http://worker/");
    assert.deepEqual(await response.json(), expected);
  } finally {
    await worker.dispose();
  }
});

for (const [name, options] of Object.entries({
  NodeNext: { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
  Bundler: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
  "Bundler for workerd": { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, customConditions: ["workerd"] },
}))
  test(`types: a strict user compiles, libraries checked too (${name})`, () => {
    const program = ts.createProgram([inProject("consumer.ts")], {
      ...options,
      ...{ strict: true, noEmit: true, skipLibCheck: false, types: [], target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"] },
    });
    const problems = ts.getPreEmitDiagnostics(program);
    assert.equal(ts.formatDiagnostics(problems, { getCurrentDirectory: () => packed.project, getCanonicalFileName: (path) => path, getNewLine: () => "\n" }), "");
  });

test("publint finds nothing, not even a suggestion", async () => {
  const tarball = readFileSync(packed.tarball);
  const { messages, pkg } = await publint({ strict: true, pack: { tarball: tarball.buffer.slice(tarball.byteOffset, tarball.byteOffset + tarball.length) } });
  assert.deepEqual(messages.map((message) => formatMessage(message, pkg)), []);
});

test("attw finds nothing: the types resolve to what runs (ESM only)", async () => {
  const manifest = createRequire(import.meta.url).resolve("@arethetypeswrong/cli/package.json");
  const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
  const attw = join(dirname(manifest), typeof bin === "string" ? bin : bin.attw);
  await promisify(execFile)(process.execPath, [attw, packed.tarball, "--profile", "esm-only", "--no-color"]).catch(({ stdout, stderr }) => {
    throw new Error(`${stdout}${stderr}`);
  });
});

const bundle = (entry, options) =>
  esbuild({ entryPoints: [inProject(entry)], absWorkingDir: packed.project, bundle: true, minify: true, logLevel: "error", ...options });
