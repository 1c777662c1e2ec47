// Every example of README.md, run as it is written: what is for Workers in workerd, the rest in Node. Only the name api.example.com is
// led to a service on loopback.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";

const root = fileURLToPath(new URL("../../", import.meta.url));
// Beside the package, so that its name is found.
const folder = mkdtempSync(join(root, "target", "readme-"));
const service = createServer((_, response) => response.end("orders"));
const realFetch = globalThis.fetch;

before(async () => {
  await new Promise((resolve) => service.listen(0, "127.0.0.1", resolve));
  const { port } = service.address();
  globalThis.fetch = (input, init) => realFetch(String(input).replace("https://api.example.com", `http://127.0.0.1:${port}`), init);
});
after(async () => {
  globalThis.fetch = realFetch;
  await new Promise((resolve) => service.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const examples = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code);

test("README.md has examples", () => assert.ok(examples.length >= 4));

examples.forEach((code, index) => {
  const file = join(folder, `example-${index}.mjs`);
  const title = `example ${index + 1}: ${code.split("\n").find((line) => !line.startsWith("import"))?.trim() || code.split("\n")[0]}`;
  if (code.includes("export default")) {
    test(`${title} (in workerd)`, async (t) => {
      writeFileSync(file, code);
      const bundle = join(folder, "out", "worker.mjs");
      await build({
        entryPoints: [file],
        ...{ bundle: true, format: "esm", conditions: ["workerd", "worker", "browser"], external: ["cloudflare:workers"] },
        loader: { ".wasm": "copy" },
        outfile: bundle,
        logLevel: "error",
      });
      const runtime = new Miniflare({
        ...{ cf: false, modules: true, scriptPath: bundle, modulesRoot: join(folder, "out"), compatibilityDate: "2026-04-01" },
        modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
        kvNamespaces: ["CIRCUITS"],
        outboundService: () => new Response("orders"),
      });
      t.after(() => runtime.dispose());
      const response = await runtime.dispatchFetch("http://worker/");
      assert.equal(await response.text(), "orders");
    });
  } else {
    test(title, async () => {
      writeFileSync(file, code);
      await import(pathToFileURL(file));
    });
  }
});
