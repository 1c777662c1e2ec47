// The page as files from any host: in a folder of its own, without a server that knows it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { buildPage, folder } from "../../scripts/www.mjs";
import { listen, shut } from "../../www/listen.mjs";
import { operate, send, setService, started, theBrowser, waitForState } from "./harness.mjs";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
let server, url;
before(async () => {
  await buildPage();
  server = createServer(async ({ url }, response) => {
    const path = normalize(new URL(url, "http://host").pathname).replace(/^\/some\/where\//, "") || "index.html";
    const body = await readFile(join(folder, path)).catch(() => null);
    response.writeHead(body ? 200 : 404, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" }).end(body);
  });
  url = `${await listen(server, "127.0.0.1", 0)}/some/where/`;
});
after(() => shut(server));

test("its service is a service worker: it trips, survives the reload, and recovers", async () => {
  const context = await theBrowser().newContext({ viewport: { width: 1280, height: 900 } });
  const problems = [];
  context.on("weberror", (event) => problems.push(String(event.error())));
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    page.on("requestfailed", (request) => problems.push(`${request.url()} ${request.failure()?.errorText}`));
    page.on("response", (response) => response.status() === 404 && problems.push(`404 ${response.url()}`));
    await page.goto(url);
    await started(page);
    assert.equal(await page.locator("#service-url").textContent(), new URL(url).host);
    await send(page, 1);
    await setService(page, "failing");
    await send(page, 8);
    await waitForState(page, "Open");
    await page.reload();
    await started(page);
    await waitForState(page, "Open");
    assert.equal(await page.locator("#service input[value=failing]").isChecked(), true, "the service is still as it was");
    await setService(page, "working");
    await operate(page, "Force half-open");
    for (let i = 0; i < 5; i++) await send(page, 1);
    await waitForState(page, "Closed");
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
});
