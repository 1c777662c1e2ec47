import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import ts from "typescript";
import { entries } from "../../scripts/surface.mjs";
import { installPacked, runNode } from "../hosts/packed.mjs";

let packed;
const inProject = (...path) => join(packed.project, ...path);
before(async () => (packed = await installPacked()));
after(() => packed?.remove());

test("Node: importing every entry does nothing yet", async () => {
  assert.deepEqual(await runNode(packed.project, "import-only.mjs", ...entries().map(({ specifier }) => specifier)), []);
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

test("attw finds nothing: the types resolve to what runs (CommonJS and ESM)", async () => {
  const manifest = createRequire(import.meta.url).resolve("@arethetypeswrong/cli/package.json");
  const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
  const attw = join(dirname(manifest), typeof bin === "string" ? bin : bin.attw);
  await promisify(execFile)(process.execPath, [attw, packed.tarball, "--profile", "node16", "--no-color"]).catch(({ stdout, stderr }) => {
    throw new Error(`${stdout}${stderr}`);
  });
});
