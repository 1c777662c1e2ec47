// Every example of docs/ and llms.txt, run as it is written: what it prints is what its comments say. Only the name api.example.com is led to a service
// on loopback, which has orders, lacks what is missing, is down at /down, and fails twice at /recovering. What is for a page or a service
// worker runs in browsers: tests/browser-stores/docs.test.mjs.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Headers, Request, Response, caches, fetch as realFetch } from "undici";

const root = fileURLToPath(new URL("../../", import.meta.url));
mkdirSync(join(root, "target"), { recursive: true });
// Beside the package, so that its name is found.
const folder = mkdtempSync(join(root, "target", "docs-"));
const STATUS = { "/down": 503, "/missing": 404 };
const recovering = [];
const service = createServer(({ url }, response) => {
  const status = url === "/recovering" && recovering.push(performance.now()) < 3 ? 503 : (STATUS[url] ?? 200);
  response.writeHead(status).end(status === 200 ? "orders" : "");
});
const own = Object.fromEntries(["fetch", "Headers", "Request", "Response"].map((name) => [name, globalThis[name]]));

before(async () => {
  await new Promise((resolve) => service.listen(0, "127.0.0.1", resolve));
  const { port } = service.address();
  // Node's fetch as a package, which has the caches that Node leaves out.
  Object.assign(globalThis, { Headers, Request, Response, caches });
  globalThis.fetch = async (input, init) => {
    const url = (input.href ?? input.url ?? String(input)).replace("https://api.example.com", `http://127.0.0.1:${port}`);
    return realFetch(input instanceof Request ? new Request(url, input) : url, init);
  };
});
after(async () => {
  Object.assign(globalThis, own);
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

let examples = 0;
const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);
for (const path of [...pages, "llms.txt"]) {
  const name = path.replace("/", "-");
  const blocks = [...readFileSync(join(root, path), "utf8").matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code).filter((code) => !code.startsWith("// In a service worker"));
  examples += blocks.length;
  blocks.forEach((code, index) => {
    test(`${path}, example ${index + 1}`, async (t) => {
      const file = join(folder, `${name}-${index}.mjs`);
      writeFileSync(file, code);
      const printed = [];
      t.mock.method(console, "log", (...values) => printed.push(values.join(" ")));
      await import(pathToFileURL(file));
      t.mock.restoreAll();
      const expected = [...code.matchAll(/(?:console\.log\(.*\); \/\/|^\/\/ →) (.*)$/gm)].map(([, text]) => text);
      assert.deepEqual(printed, expected);
    });
  });
}
test("docs/ has examples", () => assert.ok(examples >= 10));
test("a retry that is given the time of a refusal sends nothing before", () => {
  assert.equal(recovering.length, 3);
  assert.ok(recovering[2] - recovering[1] >= 195, `${recovering[2] - recovering[1]} ms`);
});
