// The examples for servers: Hono in Node and in workerd, Node with Redis, Next.js.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "node:path";
import { Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions as workerOptions } from "wrangler";
import { startRedis } from "../stores/redis-server.mjs";
import { outcomeIn } from "../hosts/packed.mjs";
import { freePort, program, service, started, stranger, until } from "./stranger.mjs";

const refused = (response) => response.status === 503 && response.headers.has("retry-after");

/** Runs `work` with what has to be stopped at the end, in reverse. */
async function using(work) {
  const stops = [];
  const keep = (one) => (stops.unshift(one.stop ?? one.remove ?? one.dispose.bind(one)), one);
  try {
    return await work(keep);
  } finally {
    for (const stop of stops) await stop();
  }
}

async function checkHono(ask, { orders, prices }) {
  assert.deepEqual(await (await ask("/orders/7")).json(), { item: "tea", count: 2 });
  assert.deepEqual(await (await ask("/orders/7/total")).json(), { item: "tea", count: 2, total: 6 });
  prices.status = 500;
  for (let i = 0; i < 15; i++) assert.deepEqual(await (await ask("/orders/7/total")).json(), { item: "tea", count: 2, total: null }, "an order is still an order");
  const asked = prices.asked;
  await ask("/orders/7/total");
  assert.equal(prices.asked, asked, "and the prices are left alone");
  orders.status = 500;
  await until(() => ask("/orders/7"), refused);
  assert.ok(refused(await ask("/orders/7")));
  assert.ok(refused(await ask("/orders/7/total")));
  assert.deepEqual((await (await ask("/health")).json()).map(({ state }) => state), ["open", "open"]);
}
const upstreams = () => ({ orders: { answer: '{ "item": "tea", "count": 2 }' }, prices: { answer: '{ "each": 3 }' } });

test("hono: in Node", () =>
  using(async (keep) => {
    const { folder } = keep(await stranger("hono"));
    const states = upstreams();
    const [orders, prices] = [keep(await service(states.orders)), keep(await service(states.prices))];
    const { url } = keep(await started(folder, "src/node.js", [], { ORDERS: orders.url, PRICES: prices.url, PORT: "0" }));
    await checkHono((path) => fetch(url + path), states);
  }));

test("hono: the same app in workerd", () =>
  using(async (keep) => {
    const { folder, run } = keep(await stranger("hono"));
    const outdir = join(folder, "out");
    await run(program("wrangler", "bin/wrangler.js"), ["deploy", "--dry-run", "--outdir", "out"], { WRANGLER_SEND_METRICS: "false", CLOUDFLARE_CF_FETCH_ENABLED: "false", CI: "1" });
    const states = upstreams();
    const worker = keep(
      new Miniflare({
        ...workerOptions(join(folder, "wrangler.jsonc")).workerOptions,
        ...{ modules: true, scriptPath: join(outdir, "worker.js"), modulesRoot: outdir, cf: false },
        modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
        outboundService: ({ url }) => {
          const state = states[new URL(url).host.split(".")[0]];
          state.asked = (state.asked ?? 0) + 1;
          return new Response(state.answer, { status: state.status ?? 200 });
        },
      }),
    );
    await checkHono((path) => worker.dispatchFetch(`http://api.example${path}`), states);
  }));

test("node-redis: one process refuses for what another has seen, and they send one probe", () =>
  using(async (keep) => {
    const { folder } = keep(await stranger("node-redis"));
    const redis = await startRedis();
    keep({ stop: redis.close });
    const state = {};
    const payments = keep(await service(state));
    const circuit = { CIRCUIT_OPEN_MS: "2000", CIRCUIT_JITTER: "0", CIRCUIT_PROBE_LIMIT: "1", CIRCUIT_PROBE_SUCCESSES: "1" };
    const env = { REDIS: `redis://127.0.0.1:${redis.port}`, PAYMENTS: payments.url, PORT: "0", ...circuit };
    const [one, other] = [keep(await started(folder, "server.js", [], env)), keep(await started(folder, "server.js", [], env))];
    assert.equal(await (await fetch(one.url)).text(), "from the service");
    assert.equal(await (await fetch(other.url)).text(), "from the service");
    state.status = 500;
    await until(() => fetch(one.url), refused);
    const { asked } = state;
    await until(() => other.printed().includes("http.payments is open (adopted)") || sleep(50), Boolean, 200);
    assert.match(await (await fetch(other.url)).text(), /^Circuit http\.payments is open since .+ calls in the last 30 s failed, limit 50 %; next probe at /);
    assert.equal(state.asked, asked, "the other has never failed, and asks nothing");

    Object.assign(state, { status: 200, delayMs: 1_000 });
    await sleep(2_500);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => fetch((index % 2 ? one : other).url)));
    assert.equal(state.asked, asked + 1, "of twenty calls in two processes");
    assert.deepEqual(answers.map(({ status }) => status).filter((status) => status === 200), [200]);
    await until(async () => (await Promise.all([fetch(one.url), fetch(other.url)])).every(({ status }) => status === 200) || sleep(50), (all) => all === true, 200);
  }));

const next = program("next", "dist/bin/next");
test("next: page, route in Node, route at the edge", { skip: !next && "next is not installed: npm ci --prefix tests/hosts" }, () =>
  using(async (keep) => {
    const { folder, run } = keep(await stranger("next"));
    const env = { NEXT_TELEMETRY_DISABLED: "1", CI: "1" };
    await run(next, ["build"], env);
    const state = {};
    const orders = keep(await service(state));
    const { url } = keep(await started(folder, next, ["start", "-p", await freePort(), "-H", "127.0.0.1"], { ...env, ORDERS: orders.url }));
    await until(() => fetch(url).then(({ ok }) => ok, () => sleep(100)), Boolean, 200);
    for (const route of ["node", "edge"]) assert.equal(await (await fetch(`${url}/orders-${route}`)).text(), "from the service");
    state.status = 500;
    for (const route of ["node", "edge"]) await until(() => fetch(`${url}/orders-${route}`), refused);
    const said = `globalThis.outcome = (async () => {
      const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
      while (!document.querySelector("button")) await pause();
      for (;;) {
        document.querySelector("button").click();
        await pause();
        if (document.querySelector("[role=status]").textContent.startsWith("Back in")) return document.querySelector("[role=status]").textContent;
      }
    })()`;
    assert.match((await outcomeIn("Chromium", url, `addEventListener("load", () => { ${said} })`)).outcome, /^Back in \d+ s$/);
  }));
