// One of many processes in front of a payment service. They count failures together, refuse together, and share the probes.

import { createServer } from "node:http";
import { createClient } from "redis";
import { CircuitRegistry, isCircuitOpenError, presets } from "tripcurve";
import { policyFromEnv } from "tripcurve/core";
import { redisStore } from "tripcurve/stores/redis";

const { REDIS = "redis://127.0.0.1:6379", PAYMENTS = "http://127.0.0.1:4001", PORT = "4000" } = process.env;

const client = createClient({ url: REDIS });
client.on("error", (error) => console.error(`Redis: ${error.message}`)); // calls go on without it
await client.connect();
const subscriber = client.duplicate();
subscriber.on("error", () => {});
await subscriber.connect();

const policy = { ...presets.service, ...policyFromEnv("CIRCUIT", process.env) }; // CIRCUIT_OPEN_MS=10000, say
const registry = new CircuitRegistry(policy, {
  store: redisStore(client, { subscriber, channel: "circuits" }), // the others hear of a verdict at once
  share: "tally",
});
registry.on("transition", ({ key, to, reason }) => console.log(`${key} is ${to} (${reason})`));
const payments = registry.get("http.payments");

async function pay(signal) {
  const response = await fetch(PAYMENTS, { method: "POST", signal });
  if (response.status >= 500) throw new Error(`The payment service answered ${response.status}`);
  return response.text();
}

const server = createServer(async (_, response) => {
  try {
    response.end(await payments.run(pay, { timeoutMs: 2_000 }));
  } catch (error) {
    if (isCircuitOpenError(error)) response.setHeader("Retry-After", Math.ceil((error.retryAfterMs ?? 1_000) / 1_000));
    response.writeHead(503).end(error.message);
  }
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));

process.once("SIGTERM", async () => {
  server.close();
  await registry.flush(); // what the others do not know yet
  registry.dispose();
  await Promise.all([client.quit(), subscriber.quit()]);
});
