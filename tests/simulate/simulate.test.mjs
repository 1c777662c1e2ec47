// The real package under simulation: 2,000 schedules hold, one schedule is the same every time, and the judge notices what is broken.
import assert from "node:assert/strict";
import test from "node:test";
import { FAULTS } from "./faults.mjs";
import { draw, KINDS } from "./schedule.mjs";
import { shrink, story, sweep, trial } from "./simulate.mjs";

const SEEDS = { atomic: 600, tally: 300, local: 700, kv: 400 };

/** What happens so often in so many schedules that the judge has seen it. */
const ENOUGH = { calls: 100_000, refusals: 20_000, probes: 1_000, verdicts: 1_000, adoptions: 500, writes: 2_000 };

for (const kind of KINDS) {
  test(`${kind}: every invariant holds in ${SEEDS[kind]} schedules`, async () => {
    const { failed, seen } = await sweep({ kind, seeds: SEEDS[kind] });
    if (failed.length > 0) assert.fail(`${failed.length} schedules fail\n${await story(await trial(failed[0].seed, kind))}`);
    for (const [what, times] of Object.entries(ENOUGH)) assert.ok(seen[what] >= times, `only ${seen[what]} ${what}`);
    if (kind !== "kv") assert.ok(seen.exempt < seen.probes / 2, "most probes are judged beside those of all others");
  });
}

// ---- the judge

/** kind, what is broken, and what the judge may then say. */
const NOTICED = [
  ["atomic", "blind", ["probe_limit"]],
  ["tally", "blind", ["probe_limit", "outcome_lost"]],
  ["tally", "anonymous", ["counted_twice"]],
  ["tally", "innumerate", ["outcome_lost", "verdict_lost"]],
  ["atomic", "forgetful", ["store_old"]],
  ["local", "forgetful", ["store_old"]],
  ["kv", "forgetful", ["store_old"]],
  ["atomic", "stubborn", ["not_reached", "erased", "no_convergence"]],
  ["local", "stubborn", ["fence_crossed", "probe_in_open"]],
  ["kv", "stubborn", ["store_old", "not_reached", "erased"]],
  ["local", "generous", ["probe_limit"]],
  ["kv", "hesitant", ["waited"]],
];

for (const [kind, fault, expected] of NOTICED) {
  test(`${kind}: the judge notices a ${fault} participant`, async () => {
    const { failed } = await sweep({ kind, seeds: 100, fault, until: expected });
    assert.ok(failed.length > 0, "nothing was noticed");
    assert.ok(failed.some(({ what }) => expected.includes(what)), `${[...new Set(failed.map(({ what }) => what))]}`);
  });
}

test("every fault is tried", () => assert.deepEqual([...new Set(NOTICED.map(([, fault]) => fault))].sort(), Object.keys(FAULTS).sort()));

// ---- one schedule

test("a seed is one schedule and one run, to the last line of its log", async () => {
  for (const kind of KINDS) {
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
