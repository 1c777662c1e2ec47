// The real package under simulation: 2,000 schedules hold, one schedule is the same every time, and the judge notices what is broken.
import assert from "node:assert/strict";
import test from "node:test";
import { draw } from "./schedule.mjs";
import { shrink, story, sweep, trial } from "./simulate.mjs";

/** Kinds, how many schedules of each, and what is not judged: a probe is limited by its participant only. */
const PROBES = ["probe_limit", "probe_untold", "probe_in_open", "probe_early", "fence_crossed", "probe_wasted"];
const JUDGED = [
  ["local", 1_200, PROBES],
  ["kv", 800, ["writes"]],
];

/** What happens so often in so many schedules that the judge has seen it. */
const ENOUGH = { calls: 100_000, refusals: 20_000, probes: 1_000, verdicts: 1_000, adoptions: 500, writes: 2_000 };

for (const [kind, seeds, unjudged] of JUDGED) {
  test(`${kind}: every invariant holds in ${seeds} schedules`, async () => {
    const { failed, seen } = await sweep({ kind, seeds, unjudged });
    if (failed.length > 0) assert.fail(`${failed.length} schedules fail\n${await story(await trial(failed[0].seed, kind, { unjudged }))}`);
    for (const [what, times] of Object.entries(ENOUGH)) assert.ok(seen[what] >= times, `only ${seen[what]} ${what}`);
  });
}

// ---- the judge

/** kind, what is broken, and what the judge may then say. */
const NOTICED = [
  ["local", "forgetful", ["store_old"]],
  ["kv", "forgetful", ["store_old"]],
  ["kv", "stubborn", ["store_old", "not_reached", "erased"]],
  ["kv", "hesitant", ["waited"]],
];

for (const [kind, fault, expected] of NOTICED) {
  test(`${kind}: the judge notices a ${fault} participant`, async () => {
    const { failed } = await sweep({ kind, seeds: 100, fault, until: expected });
    assert.ok(failed.length > 0, "nothing was noticed");
    assert.ok(failed.some(({ what }) => expected.includes(what)), `${[...new Set(failed.map(({ what }) => what))]}`);
  });
}

// ---- one schedule

test("a seed is one schedule and one run, to the last line of its log", async () => {
  for (const [kind] of JUDGED) {
    assert.deepEqual(draw(7, kind), draw(7, kind));
    const [once, again] = [await trial(7, kind, { telling: true }), await trial(7, kind, { telling: true })];
    assert.ok(once.log.length > 100);
    assert.deepEqual(again.log, once.log);
  }
});

test("a failure is shrunk to a schedule that fails in the same way, and told with the line that replays it", async () => {
  const failing = await trial(0, "kv", { fault: "hesitant" });
  assert.equal(failing.violation.what, "waited");
  const small = await shrink(failing);
  assert.equal(small.violation.what, "waited");
  assert.equal(small.schedule.people, 2);
  assert.match(await story(failing), /--kind kv --replay 0/);
});
