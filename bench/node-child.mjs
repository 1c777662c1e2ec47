// The process of one guard: opens one subject and answers its parent.

import { subject } from "./subject.mjs";
import { median } from "./stats.mjs";

let opened;

const verbs = {
  async open(scenario, contestant, module) {
    opened = await subject(scenario, contestant, module, processorTime);
  },
  warm: (ms) => opened.warm(ms),
  round: () => opened.round(),
  /** Bytes of heap for one call. */
  async heap() {
    const calls = 8_000;
    const samples = [];
    for (let i = 0; i < 9; i++) {
      globalThis.gc();
      await opened.loop(500);
      const before = process.memoryUsage().heapUsed;
      await opened.loop(calls);
      samples.push((process.memoryUsage().heapUsed - before) / calls);
    }
    return median(samples);
  },
  /** Bytes for each of many circuits that have had one call: heap, and what is kept outside it (a Wasm memory among it). */
  async idle(count) {
    await fill(opened.pool(), 10); // code and shapes of the first circuits are not counted
    const before = await settled();
    const run = opened.pool();
    const start = processorTime();
    await fill(run, count);
    const ns = ((processorTime() - start) * 1e6) / count;
    const bytes = ((await settled()) - before) / count;
    await run("k0"); // the pool lives until here
    return { bytes, ns };
  },
};

/** Of this process, in milliseconds: a busy neighbour does not count. */
function processorTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

async function fill(run, count) {
  for (let i = 0; i < count; i++) await run(`k${i}`);
}

async function settled() {
  for (let i = 0; i < 4; i++) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

process.on("message", async ({ verb, values }) => {
  try {
    process.send({ value: await verbs[verb](...values) });
  } catch (error) {
    process.send({ error: String(error?.message ?? error) });
  }
});
process.on("disconnect", () => process.exit(0));
