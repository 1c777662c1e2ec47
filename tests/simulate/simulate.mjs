// `npm run simulate`: the real package in many schedules, each judged. A failing one is shrunk, and told with the line that replays it.
//   npm run simulate -- --kind atomic,local --seeds 10000 --first 0
//   npm run simulate -- --kind kv --replay 17
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { KINDS, simpler } from "./schedule.mjs";
import { World } from "./world.mjs";

/** Runs one schedule; gives its world, which knows of the violation, if there was one. */
export async function trial(seed, kind, options) {
  const world = new World(seed, kind, options);
  await world.run();
  return world;
}

/** Switches off what a failure does not need, one after the other, and runs what remains once more, telling everything. */
export async function shrink({ seed, kind, options, violation, schedule }) {
  let changes = {};
  for (let found = true; found; ) {
    found = false;
    for (const change of simpler({ ...schedule, ...changes })) {
      const world = await trial(seed, kind, { ...options, changes: { ...changes, ...change } });
      if (world.violation?.what !== violation.what) continue;
      changes = { ...changes, ...change };
      found = true;
      break;
    }
  }
  return trial(seed, kind, { ...options, changes, telling: true });
}

/** What a reader of a failure needs. */
export async function story(world) {
  const { seed, kind, violation } = world;
  const { schedule, log } = await shrink(world);
  return [
    `${kind}, seed ${seed}: ${violation.what}: ${violation.text}`,
    `  replay: npm run simulate -- --kind ${kind} --replay ${seed}`,
    `  shrunk: ${JSON.stringify(schedule)}`,
    ...log.slice(-50).map((line) => `  ${line}`),
  ].join("\n");
}

/**
 * Many schedules of one kind, shared out over the processors: what failed, and how often what is judged happened. `until`: some violations,
 * of which one is enough.
 */
export async function sweep({ kind, seeds, first = 0, until = [], ...options }) {
  const threads = Math.min(availableParallelism(), seeds);
  const parts = await Promise.all(
    Array.from({ length: threads }, (_, thread) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { kind, from: first + thread, to: first + seeds, step: threads, until, options } });
      return new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    }),
  );
  const failed = parts.flatMap((part) => part.failed).sort((one, other) => one.seed - other.seed);
  return { failed, seen: sum(parts.map((part) => part.seen)) };
}

async function part({ kind, from, to, step, until, options }) {
  const failed = [];
  const seen = [];
  for (let seed = from; seed < to; seed += step) {
    const { violation, judge } = await trial(seed, kind, options);
    seen.push(judge.seen);
    if (violation) failed.push({ seed, what: violation.what });
    if (until.includes(violation?.what)) break;
  }
  return { failed, seen: sum(seen) };
}

function sum(counts) {
  const all = {};
  for (const count of counts) for (const [what, times] of Object.entries(count)) all[what] = (all[what] ?? 0) + times;
  return all;
}

async function main() {
  const { values } = parseArgs({
    options: {
      kind: { type: "string", default: KINDS.join() },
      seeds: { type: "string", default: "25000" },
      first: { type: "string", default: "0" },
      fault: { type: "string" },
      replay: { type: "string" },
    },
  });
  const [seeds, first] = [Number(values.seeds), Number(values.first)];
  for (const kind of values.kind.split(",")) {
    if (values.replay !== undefined) {
      const world = await trial(Number(values.replay), kind, { fault: values.fault });
      console.log(world.violation ? await story(world) : `${world.log.join("\n")}\n${kind}, seed ${values.replay}: every invariant holds`);
      process.exitCode ||= world.violation ? 1 : 0;
      continue;
    }
    const began = performance.now();
    const { failed, seen } = await sweep({ kind, seeds, first, fault: values.fault });
    for (const what of new Set(failed.map((one) => one.what))) {
      const all = failed.filter((one) => one.what === what);
      console.log(await story(await trial(all[0].seed, kind, { fault: values.fault })));
      console.log(`  ${what}: ${all.length} of ${seeds} schedules, seeds ${all.slice(0, 10).map(({ seed }) => seed).join(", ")}`);
    }
    console.log(`${kind}: ${seeds} schedules in ${((performance.now() - began) / 1_000).toFixed(1)} s, ${failed.length} failed; ${JSON.stringify(seen)}`);
    process.exitCode ||= failed.length > 0 ? 1 : 0;
  }
}

if (!isMainThread && workerData?.kind) parentPort.postMessage(await part(workerData));
else if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
