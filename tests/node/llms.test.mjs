// llms.txt names everything that can be imported; its examples run with those of docs/ (docs.test.mjs).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { entries } from "../../scripts/surface.mjs";

const text = readFileSync(new URL("../../llms.txt", import.meta.url), "utf8");
/** The names in its code, not its prose: many a name is a word as well. */
const code = new Set([...text.matchAll(/```js\n(.*?)```|`([^`\n]+)`/gs)].flatMap(([, block, span]) => (block ?? span).match(/[\w$]+/g) ?? []));

for (const { specifier } of entries()) {
  test(`llms.txt tells of ${specifier} and every value in it`, async () => {
    const names = specifier === "tripcurve/js" ? [] : Object.keys(await import(specifier));
    assert.ok(text.includes(specifier));
    assert.deepEqual(names.filter((name) => !code.has(name)), []);
  });
}
