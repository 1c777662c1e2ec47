// A shared tally on a real Redis beside the same breaker unshared, and beside a breaker that asks Redis before and after every call.

import { setImmediate as turn } from "node:timers/promises";
import { createClient } from "redis";
import { CircuitBreaker } from "tripcurve";
import { redisStore } from "tripcurve/stores/redis";
import { missing, startRedis } from "../tests/stores/redis-server.mjs";

const CALLS = 100_000;
/** After so many calls the process attends to its sockets, as one that serves requests does. */
const TURN = 1_000;
const NAIVE_CALLS = 2_000;

const policy = { window: { kind: "time", ms: 10_000 }, failureRate: 0.5, minimumCalls: 20 };
const work = async () => 1;

export async function measureRedis(rounds) {
  if (missing) return { error: missing };
  console.log("\n== Redis ==");
  const server = await startRedis();
  const client = await createClient({ url: `redis://127.0.0.1:${server.port}` }).connect();
  try {
    const alone = new CircuitBreaker("alone", policy);
    const shared = new CircuitBreaker("shared", policy, { store: redisStore(client), share: "tally" });
    const ask = naive(client);
    const subjects = {
      "bare await": [work, CALLS],
      unshared: [() => alone.run(work), CALLS],
      "shared tally": [() => shared.run(work), CALLS],
      "two round trips a call": [() => ask(work), NAIVE_CALLS],
    };
    const result = {};
    for (const [label, [call]] of Object.entries(subjects)) {
      result[label] = { bare: label === "bare await", rounds: [] };
      await slice(call, NAIVE_CALLS);
    }
    for (let round = 0; round < rounds * 3; round++) {
      for (const [label, [call, calls]] of Object.entries(subjects)) result[label].rounds.push(await slice(call, calls));
    }
    const { calls } = shared.inspect().counts;
    await shared.flush();
    const other = new CircuitBreaker("shared", policy, { store: redisStore(client), share: "tally" });
    await other.run(work);
    if (!(other.inspect().counts.calls >= calls)) throw new Error("Redis does not hold what was counted");
    return { name: "Redis", scenarios: { closed: result } };
  } finally {
    client.destroy();
    await server.close();
  }
}

/** Nanoseconds a call. */
async function slice(call, calls) {
  const start = performance.now();
  for (let i = 1; i <= calls; i++) {
    await call();
    if (i % TURN === 0) await turn();
  }
  return ((performance.now() - start) * 1e6) / calls;
}

/** The state is read before a call and written after it, as breakers with a remote store do. */
function naive(client) {
  return async (fn) => {
    const state = JSON.parse((await client.get("naive")) ?? '{"calls":0}');
    const value = await fn();
    state.calls++;
    await client.set("naive", JSON.stringify(state));
    return value;
  };
}
