// Every trace of tests/vectors through the package, in every way a call can be made.
import assert from "node:assert/strict";
import test from "node:test";
import { SYSTEMS } from "./systems/all.mjs";
import { replay, replayAll, traces } from "./trace.mjs";

for (const { System, ways } of SYSTEMS) {
  for (const way of ways) {
    test(`every trace of ${System.title} passes by ${way.name}`, async (t) => {
      const { faults, ...summary } = await replayAll(System, way);
      t.diagnostic(JSON.stringify(summary));
      assert.deepEqual(faults, []);
      assert.equal(summary.agree, summary.must);
      assert.equal(summary.must, traces(System.title).filter(({ fenced_same }) => fenced_same !== false).length);
    });
  }
}

test("a trace that expects something else is noticed, whatever key it is", async () => {
  for (const { System, ways } of SYSTEMS) {
    const [trace] = traces(System.title).filter(({ fenced_same }) => fenced_same !== false);
    const seen = new Set();
    for (const [at, step] of trace.steps.entries()) {
      for (const [key, expected] of Object.entries(step)) {
        if (["t", "op", "c", "out", "ms", "to", "i"].includes(key) || seen.has(key) || System.leavesOut?.(step, key)) continue;
        seen.add(key);
        const steps = trace.steps.with(at, { ...step, [key]: key === "s" ? expected.with(1, 99) : ["other"] });
        const parted = await replay(System, ways[0], { ...trace, steps });
        assert.deepEqual([parted.step, parted.key], [at, key]);
      }
    }
    assert.ok(seen.has("s"));
  }
});
