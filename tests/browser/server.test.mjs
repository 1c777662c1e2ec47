// What `npm start` runs: the service that fails on demand, and the server of the page.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { startDemo } from "../../www/server.mjs";

const SERVER = fileURLToPath(new URL("../../www/server.mjs", import.meta.url));

async function withDemo(body) {
  const demo = await startDemo();
  const control = (change) => fetch(`${demo.url}/service`, { method: "POST", body: JSON.stringify(change) });
  try {
    await body(demo, control);
  } finally {
    await demo.close();
  }
}

for (const [mode, status] of [
  ["working", 200],
  ["failing", 503],
  ["limiting", 429],
]) {
  test(`the service answers ${status} when it is ${mode}, readable from any origin`, () =>
    withDemo(async ({ service }, control) => {
      assert.equal((await control({ mode, retryAfterS: 3 })).status, 200);
      const response = await fetch(`${service.url}/orders/1`);
      assert.equal(response.status, status);
      assert.equal(response.headers.get("access-control-allow-origin"), "*");
      assert.equal(response.headers.get("retry-after"), status === 429 ? "3" : null);
      await response.text();
    }));
}

test("the service fails the share of calls that was asked for", () =>
  withDemo(async ({ service }, control) => {
    for (const [percent, status] of [
      [0, 200],
      [100, 503],
    ]) {
      await control({ mode: "partly", percent });
      const response = await fetch(service.url);
      assert.equal(response.status, status);
      await response.text();
    }
  }));

test("the service cuts the connection when it is refusing", () =>
  withDemo(async ({ service }, control) => {
    await control({ mode: "refusing" });
    await assert.rejects(fetch(service.url), TypeError);
  }));

test("the service never answers when it is hanging, and closing does not wait for it", async () => {
  const demo = await startDemo();
  demo.service.apply({ mode: "hanging" });
  const pending = fetch(demo.service.url).then(
    () => "answered",
    () => "cut",
  );
  while (demo.service.state().served === 0) await new Promise(setImmediate);
  await demo.close();
  assert.equal(await pending, "cut");
});

test("the control endpoint names what it cannot take and changes nothing", () =>
  withDemo(async ({ service }, control) => {
    for (const [change, problem] of [
      [{ mode: "asleep" }, "mode"],
      [{ mode: "slow", latencyMs: -1 }, "latencyMs"],
      [{ percent: null }, "percent"],
      [null, "body"],
    ]) {
      const response = await control(change);
      assert.equal(response.status, 400);
      assert.deepEqual(await response.json(), { problem });
    }
    assert.equal(service.state().mode, "working");
  }));

test("files come with their types, uncached, and none from outside", () =>
  withDemo(async ({ url }) => {
    for (const [path, type] of [
      ["/", "text/html"],
      ["/main.js", "text/javascript"],
      ["/page.css", "text/css"],
      ["/mark.svg", "image/svg+xml"],
      ["/dist/js/index.js", "text/javascript"],
    ]) {
      const response = await fetch(url + path);
      assert.equal(response.status, 200, path);
      assert.ok(response.headers.get("content-type").startsWith(type), path);
      assert.equal(response.headers.get("cache-control"), "no-cache");
      await response.arrayBuffer();
    }
    for (const path of ["/..%2fpackage.json", "/%2e%2e/package.json", "/dist/..%2f..%2fpackage.json", "/nothing.js"]) {
      const response = await fetch(url + path);
      assert.equal(response.status, 404, path);
      await response.arrayBuffer();
    }
  }));

test("the import map is the package's own", () =>
  withDemo(async ({ url }) => {
    const html = await (await fetch(url)).text();
    const { imports } = JSON.parse(html.match(/<script type="importmap">(.*?)<\/script>/)[1]);
    assert.equal(imports.tripcurve, "/dist/js/index.js");
    for (const [name, path] of Object.entries(imports)) {
      const response = await fetch(url + path);
      assert.equal(response.status, 200, `${name} → ${path}`);
      await response.arrayBuffer();
    }
  }));

test("taken ports are replaced by free ones, the address is printed, and SIGTERM ends it cleanly", async () => {
  const taken = createServer();
  taken.listen(0, "127.0.0.1");
  await once(taken, "listening");
  const port = String(taken.address().port);
  const child = spawn(process.execPath, [SERVER], { env: { ...process.env, PORT: port, SERVICE_PORT: port }, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const chunk of child.stdout) {
    text += chunk;
    if (text.includes("Ctrl+C")) break;
  }
  const [url] = text.match(/http:\/\/127\.0\.0\.1:\d+/);
  assert.notEqual(new URL(url).port, port);
  const page = await fetch(url);
  assert.equal(page.status, 200);
  await page.text();
  child.kill("SIGTERM");
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
  taken.close();
});
