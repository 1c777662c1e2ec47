// A process that takes part in a circuit on Redis and does what its parent says: { port, policy, options } first, then verbs.
import { createClient } from "redis";
import { CircuitBreaker } from "tripcurve";
import { redisStore } from "tripcurve/stores/redis";

const { port, policy, options } = JSON.parse(process.argv[2]);
const client = createClient({ socket: { host: "127.0.0.1", port } }).on("error", () => {});
await client.connect();
const breaker = new CircuitBreaker("shared", policy, { store: redisStore(client), storeTimeoutMs: 2_000, ...options });
const running = new Set();

const verbs = {
  fail: (times) => times > 0 && breaker.run(() => Promise.reject(new Error("down"))).catch(() => {}).then(() => verbs.fail(times - 1)),
  call: () => breaker.run(() => "fine").then(() => "allowed", ({ reason }) => reason),
  /** Starts a call that goes on until `end`, or tells why not. */
  async ask() {
    const { kind, settle, reason, retryAt } = await breaker.admit();
    if (kind === "rejected") return { kind, reason, retryAt };
    running.add(() => settle("success"));
    return { kind, began: Date.now() };
  },
  async end() {
    for (const end of running) end();
    running.clear();
    await breaker.flush();
  },
  look: async () => (await breaker.flush(), { state: breaker.state, failures: breaker.inspect().counts.failures }),
};

process.on("message", async ({ id, verb, args }) => process.send({ id, value: await verbs[verb](...args) }));
process.on("disconnect", () => process.exit(0));
process.send({ id: 0 });
