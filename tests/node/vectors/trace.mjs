// Reads the files of tests/vectors, replays traces through one adapter per system and compares its answers. The rules are those of
// tests/rust/conformance: where that runner and this one would judge alike, they read alike.
import { existsSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const INPUTS = ["t", "op", "c", "out", "ms", "to", "i"];
const file = (system, table) => new URL(`../../vectors/${system}/${table}.jsonl`, import.meta.url);

/** The rows of a flat table, or the traces of a trace file. */
export const rows = (system, table) => readFileSync(file(system, table), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));

/** `public`, and `edges` where there is one. */
export const traces = (system) => ["public", "edges"].filter((table) => existsSync(file(system, table))).flatMap((table) => rows(system, table));

/**
 * Replays one trace up to the first difference, and says where it is; undefined: there is none. An adapter answers each step with the
 * values it can compare, and with `fenced` where a breaker without a fence may part: "dropped" (a late result) or "lease".
 */
export async function replay(System, way, trace) {
  const system = new System(trace.policy, trace.t0, (policy, options) => way.make(policy, trace, options));
  let fenced;
  for (const [at, step] of trace.steps.entries()) {
    const reply = await system.step(step);
    if (reply.fenced) fenced = { at, what: reply.fenced };
    const parted = difference(System, way, step, reply);
    if (parted) return { step: at, ...parted, fenced };
  }
  return undefined;
}

function difference(System, way, step, reply) {
  for (const [key, expected] of Object.entries(step)) {
    if (INPUTS.includes(key) || System.leavesOut?.(step, key) || way.cannotTell?.includes(key)) continue;
    if (!isDeepStrictEqual(reply[key], expected)) return { key, expected, got: reply[key] };
  }
  if (System.reportsTransitions !== false && !("tr" in step) && reply.tr) return { key: "tr", expected: undefined, got: reply.tr };
  return undefined;
}

/**
 * Replays all traces of a system. `must` are those that have to agree, all others may part only in the very step in which a late result
 * was dropped, or in which leases per probe and one lease per half-open period leave different slots free.
 */
export async function replayAll(System, way) {
  const summary = { system: System.title, way: way.name, must: 0, agree: 0, dropped: 0, lease: 0, anyway: 0, steps: 0, faults: [] };
  for (const trace of traces(System.title)) {
    const must = trace.fenced_same !== false;
    if (!must && way.mustOnly) continue;
    if (must) summary.must++;
    summary.steps += trace.steps.length;
    let parted;
    try {
      parted = await replay(System, way, trace);
    } catch (error) {
      summary.faults.push(`${trace.id}: ${error.stack}`);
      continue;
    }
    if (!parted) summary[must ? "agree" : "anyway"]++;
    else if (!must && parted.fenced?.at === parted.step) summary[parted.fenced.what]++;
    else summary.faults.push(`${trace.id}: ${shown(parted)}`);
  }
  return summary;
}

const shown = ({ step, key, expected, got, fenced }) =>
  `step ${step}, ${key}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}${fenced ? ` (${fenced.what} at step ${fenced.at})` : ""}`;
