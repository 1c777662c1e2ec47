// examples/cloudflare-kv as a stranger has it: compiled and bundled by its own tools, run on the real Workers runtime, in two isolates.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions as workerOptions } from "wrangler";
import { program, stranger, until } from "../examples/stranger.mjs";

let example;
before(async () => {
  example = await stranger("cloudflare-kv");
  await example.run(program("wrangler", "bin/wrangler.js"), ["deploy", "--dry-run", "--outdir", "out"], { WRANGLER_SEND_METRICS: "false", CLOUDFLARE_CF_FETCH_ENABLED: "false", CI: "1" });
});
after(() => example?.remove());

test("the example compiles with Cloudflare's types", () => example.run(program("typescript", "bin/tsc"), ["--project", "."]));

test("the example refuses when the service fails, and an isolate that starts later refuses at once", async () => {
  const upstream = { status: 200, asked: 0 };
  const start = async () => {
    const runtime = new Miniflare({
      ...workerOptions(join(example.folder, "wrangler.jsonc")).workerOptions,
      ...{ cf: false, modules: true, scriptPath: join(example.folder, "out", "index.js"), modulesRoot: join(example.folder, "out") },
      modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
      kvPersist: join(example.folder, "kv"),
      outboundService: ({ url }) => {
        upstream.asked += 1;
        return new Response(`from the service, ${new URL(url).pathname}`, { status: upstream.status });
      },
    });
    await runtime.ready;
    return runtime;
  };
  const refused = (response) => response.status === 503 && response.headers.has("retry-after");
  const first = await start();
  const ask = (of) => of.dispatchFetch("http://worker/orders");
  try {
    assert.equal(await (await ask(first)).text(), "from the service, /orders");
    upstream.status = 500;
    await until(() => ask(first), refused);
    const kept = await first.getKVNamespace("CIRCUITS");
    await until(() => kept.list(), ({ keys }) => keys.length > 0, 200);
  } finally {
    await first.dispose();
  }
  const later = await start();
  try {
    const { asked } = upstream;
    assert.ok(refused(await ask(later)));
    assert.equal(upstream.asked, asked, "the service was not asked");
  } finally {
    await later.dispose();
  }
});
