// wrapFetch on the real Workers runtime: bodies watched to their end on the runtime's own Response, and what it reads by itself.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";

const worker = `
  import { wrapFetch } from "tripcurve";

  const policy = { window: { kind: "calls", last: 20 }, failures: 20, failureRate: null };
  const drain = async (stream) => { const reader = stream.getReader(); while (!(await reader.read()).done); };
  const ways = {
    text: (response) => response.text(),
    json: (response) => response.json(),
    arrayBuffer: (response) => response.arrayBuffer(),
    reader: (response) => drain(response.body),
    pipe: (response) => response.body.pipeTo(new WritableStream()),
    through: (response) => drain(response.body.pipeThrough(new TextDecoderStream())),
    clone: (response) => { const copy = response.clone(); return Promise.all([response.text(), copy.text()]); },
    loop: async (response) => { for await (const chunk of response.body) void chunk; },
  };
  const handed = wrapFetch(fetch, { policy, settleAt: "body" });
  const countsOf = ({ registry }) => registry.inspect().map(({ counts }) => [counts.calls, counts.failures])[0] ?? [0, 0];

  export default {
    async fetch(request, { SERVICE }) {
      const path = new URL(request.url).pathname;
      if (path === "/handed") return handed(SERVICE + "/whole");
      if (path === "/counts") return Response.json(countsOf(handed));
      const seen = {};
      for (const [name, read] of Object.entries(ways)) {
        const guarded = wrapFetch(fetch, { policy, settleAt: "body" });
        const whole = await guarded(SERVICE + "/whole");
        const before = countsOf(guarded);
        await read(whole);
        await new Promise((resolve) => setTimeout(resolve, 10));
        const after = countsOf(guarded);
        const broke = await guarded(SERVICE + "/breaks").then(read).then(() => false, () => true);
        await new Promise((resolve) => setTimeout(resolve, 10));
        seen[name] = [before, after, countsOf(guarded), broke, whole instanceof Response];
      }
      return Response.json(seen);
    },
  };`;

let folder, runtime, server;
before(async () => {
  server = createServer(({ url }, response) => {
    response.writeHead(200, { "Content-Type": "application/json", ...(url === "/breaks" && { "Content-Length": 100 }) });
    response.write('{"part":1');
    if (url === "/breaks") setTimeout(() => response.destroy(), 20);
    else response.end("}");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const target = fileURLToPath(new URL("../../target/", import.meta.url));
  mkdirSync(target, { recursive: true });
  folder = mkdtempSync(join(target, "fetch-"));
  await build({
    stdin: { contents: worker, resolveDir: folder },
    ...{ bundle: true, format: "esm", conditions: ["workerd", "worker", "browser"], external: ["cloudflare:workers"], loader: { ".wasm": "copy" }, logLevel: "error" },
    outfile: join(folder, "worker.mjs"),
  });
  runtime = new Miniflare({
    ...{ cf: false, modules: true, scriptPath: join(folder, "worker.mjs"), modulesRoot: folder, compatibilityDate: "2026-04-01" },
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
    bindings: { SERVICE: `http://127.0.0.1:${server.address().port}` },
  });
  await runtime.ready;
});
after(async () => {
  await runtime?.dispose();
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

test("by whatever way a body is read, at its end it is a success, broken off a failure, before neither", async () => {
  const seen = await (await runtime.dispatchFetch("http://worker/ways")).json();
  assert.equal(Object.keys(seen).length, 8);
  for (const [name, found] of Object.entries(seen)) assert.deepEqual(found, [[0, 0], [1, 0], [2, 1], true, true], name);
});

test("a response that is handed on arrives whole, and is not counted", async () => {
  const response = await runtime.dispatchFetch("http://worker/handed");
  assert.equal(await response.text(), '{"part":1}');
  assert.deepEqual(await (await runtime.dispatchFetch("http://worker/counts")).json(), [0, 0]);
});
