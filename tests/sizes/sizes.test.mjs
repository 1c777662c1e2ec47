import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { compiler, limits, measure, recordPath } from "../../scripts/sizes.mjs";

// Two versions of zlib differ by a few bytes for the same input.
const tolerance = 32;
const sizes = await measure();
const recorded = JSON.parse(readFileSync(recordPath, "utf8"));

for (const [name, limit] of Object.entries(limits)) {
  test(`${name}: at most ${limit} bytes after gzip`, () => assert.ok(sizes[name].gzip <= limit, `${sizes[name].gzip} bytes`));
}

test("the sizes are the recorded ones", (t) => {
  if (compiler() !== recorded.compiler) t.diagnostic(`recorded with ${recorded.compiler}, this is ${compiler()}: only the limits count`);
  else
    for (const [name, { gzip }] of Object.entries(sizes))
      assert.ok(
        Math.abs(gzip - recorded.sizes[name]?.gzip) <= tolerance,
        `${name}: ${gzip} bytes after gzip, recorded ${recorded.sizes[name]?.gzip}; if the change is meant, run: npm run sizes -- --update`,
      );
});
