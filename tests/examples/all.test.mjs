// What holds for every example: it names what it imports, in versions that are tested, and README.md lists it.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import ts from "typescript";
import { filesUnder } from "../../scripts/shell.mjs";
import { entries } from "../../scripts/surface.mjs";
import { manifest, root } from "./stranger.mjs";

const names = readdirSync(join(root, "examples"));
const installed = (name) => {
  for (const folder of [root, join(root, "tests", "hosts")]) {
    const path = join(folder, "node_modules", name, "package.json");
    if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")).version;
  }
  return undefined;
};

test("the examples in JavaScript use what they import as its types allow", () => {
  const files = filesUnder("examples").filter((file) => /\.m?js$/.test(file) && !file.includes("/next/"));
  assert.ok(files.length >= 5);
  const paths = Object.fromEntries(entries().map(({ specifier, types }) => [specifier, [types]]));
  const program = ts.createProgram(files, {
    ...{ allowJs: true, checkJs: true, noEmit: true, noImplicitAny: false, strictNullChecks: false, skipLibCheck: true, paths, baseUrl: root, types: ["node"] },
    ...{ module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"] },
  });
  // A server that listens on a port has an address with one, which its type does not know.
  const problems = ts.getPreEmitDiagnostics(program).filter(({ messageText }) => !JSON.stringify(messageText).includes("type 'string | AddressInfo'"));
  assert.equal(ts.formatDiagnostics(problems, { getCurrentDirectory: () => root, getCanonicalFileName: (path) => path, getNewLine: () => "\n" }), "");
});

for (const name of names) {
  test(`${name}: its package.json names what it imports, in the versions that are tested here`, (t) => {
    const { dependencies = {}, devDependencies = {}, scripts } = manifest(name);
    const wanted = { ...dependencies, ...devDependencies };
    const sources = filesUnder(join("examples", name)).filter((file) => /\.(m?js|ts)$/.test(file));
    const imported = sources.flatMap((file) => [...readFileSync(file, "utf8").matchAll(/(?:from|import) "([^."][^"]*)"/g)].map(([, specifier]) => specifier));
    const packages = new Set(imported.filter((specifier) => !isBuiltin(specifier) && !specifier.startsWith("cloudflare:")).map((specifier) => specifier.match(/^(@[^/]+\/)?[^/]+/)[0]));
    assert.deepEqual([...packages].filter((one) => !dependencies[one]), []);
    for (const [one, range] of Object.entries(wanted)) {
      if (one === "tripcurve") continue;
      const version = installed(one);
      if (version === undefined) t.diagnostic(`${one} is not installed: npm ci --prefix tests/hosts`);
      else assert.equal(range.replace(/^\^/, ""), version, one);
    }
    assert.ok(Object.keys(scripts).length > 0);
  });

  test(`${name}: README.md and its own say what it is`, () => {
    assert.ok(readFileSync(join(root, "README.md"), "utf8").includes(`(examples/${name})`));
    assert.match(readFileSync(join(root, "examples", name, "README.md"), "utf8"), /^# [^\n]+\n\n[\s\S]*```sh\nnpm install\n/);
  });
}
