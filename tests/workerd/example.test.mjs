// examples/cloudflare-durable-object as a stranger has it: compiled and bundled by its own tools, run on the real Workers runtime.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Miniflare } from "miniflare";
import { CircuitBreaker, presets } from "tripcurve";
import { durableObjectStore } from "tripcurve/stores/durable-object";
import { unstable_getMiniflareWorkerOptions as workerOptions } from "wrangler";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tripcurve-example-"));
const require = createRequire(import.meta.url);
const call = (script, ...args) =>
  promisify(execFile)(process.execPath, [script, ...args], {
    cwd: folder,
    env: { ...process.env, WRANGLER_SEND_METRICS: "false", CLOUDFLARE_CF_FETCH_ENABLED: "false", CI: "1" },
  }).catch(({ stdout, stderr }) => assert.fail(`${stdout}${stderr}`));

before(async () => {
  cpSync(join(root, "examples", "cloudflare-durable-object"), folder, { recursive: true });
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules", "tripcurve"));
  symlinkSync(join(root, "node_modules", "@cloudflare"), join(folder, "node_modules", "@cloudflare"));
  await call(join(dirname(require.resolve("wrangler/package.json")), "bin", "wrangler.js"), "deploy", "--dry-run", "--outdir", "out");
});
after(() => rmSync(folder, { recursive: true, force: true }));

async function start(t, upstream) {
  const runtime = new Miniflare({
    ...workerOptions(join(folder, "wrangler.jsonc")).workerOptions,
    ...{ cf: false, modules: true, scriptPath: join(folder, "out", "index.js"), modulesRoot: join(folder, "out") },
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
    durableObjectsPersist: join(folder, "objects"),
    outboundService: (request) => {
      upstream.asked.push(request.url);
      return new Response("from the service", { status: upstream.status });
    },
  });
  let stopped;
  const stop = () => (stopped ??= runtime.dispose());
  t.after(stop);
  await runtime.ready;
  const store = durableObjectStore(await runtime.getDurableObjectNamespace("CIRCUITS"));
  return {
    stop,
    get: () => runtime.dispatchFetch("http://worker/orders?page=2"),
    /** What waitUntil keeps is done soon after the answer. */
    async refusedElsewhere() {
      for (let left = 200; left > 0; left -= 1) {
        const other = new CircuitBreaker("https.api.example.com", presets.edge, { store, share: "tally", storeTimeoutMs: 5_000 });
        const { kind } = await other.admit();
        other.dispose();
        if (kind === "rejected") return;
        await sleep(50);
      }
      assert.fail("the verdict never reached the object");
    },
  };
}

test("the example compiles with Cloudflare's types", () => call(require.resolve("typescript/bin/tsc"), "--project", "."));

test("the example passes requests on, refuses when the service fails, and still refuses after a deployment", async (t) => {
  const upstream = { status: 200, asked: [] };
  const first = await start(t, upstream);
  const answer = await first.get();
  assert.deepEqual([answer.status, await answer.text()], [200, "from the service"]);
  assert.deepEqual(upstream.asked, ["https://api.example.com/orders?page=2"]);

  upstream.status = 500;
  let refused;
  for (let left = 30; left > 0 && !refused?.headers.has("retry-after"); left -= 1) refused = await first.get();
  assert.equal(refused.status, 503);
  assert.ok(Number(refused.headers.get("retry-after")) > 0, refused.headers.get("retry-after"));
  const reached = upstream.asked.length;
  assert.ok(reached >= 10 && reached < 30, `${reached} requests`);

  await first.refusedElsewhere();
  await first.stop();
  const second = await start(t, upstream);
  assert.equal((await second.get()).status, 503);
  assert.equal(upstream.asked.length, reached);
});
