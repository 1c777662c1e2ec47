import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { entries, listPath, lists } from "../../scripts/surface.mjs";

const hint = "if the change is meant, run: npm run surface -- --update";

test("every public export, with its type, is the one in exports.txt", () => {
  assert.equal(lists["exports.txt"](), readFileSync(listPath("exports.txt"), "utf8"), hint);
});

test("npm publishes exactly the files in files.txt", () => {
  assert.equal(lists["files.txt"](), readFileSync(listPath("files.txt"), "utf8"), hint);
});

test("every file that package.json's exports name exists, under every condition", () => {
  const targets = (value) => (typeof value === "string" ? [value] : Object.values(value).flatMap(targets));
  const { exports } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  for (const target of targets(exports)) assert.ok(existsSync(new URL(`../../${target}`, import.meta.url)), target);
});

for (const { specifier } of entries()) {
  test(`${specifier} exports at run time the values its types promise, and nothing else`, async () => {
    const section = readFileSync(listPath("exports.txt"), "utf8").split(`# ${specifier}\n`)[1].split(/^# /m)[0];
    const promised = [...section.matchAll(/^(?:abstract )?(?:class|function|const) (\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(Object.keys(await import(specifier)).sort(), [...new Set(promised)].sort());
  });
}
