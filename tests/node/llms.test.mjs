// llms.txt names everything that can be imported; its examples run with those of docs/ (docs.test.mjs).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { entries } from "../../scripts/surface.mjs";

const text = readFileSync(new URL("../../llms.txt", import.meta.url), "utf8");

for (const { specifier } of entries()) {
  test(`llms.txt tells of ${specifier} and every value in it`, async () => {
    const names = specifier === "tripcurve/js" ? [] : Object.keys(await import(specifier));
    assert.deepEqual([specifier, ...names].filter((name) => !text.includes(name)), []);
  });
}
