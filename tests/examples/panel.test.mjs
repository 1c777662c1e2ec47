// examples/panel-server: a real server with a service that fails, its page in a real browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { service, started, stranger, until } from "./stranger.mjs";

async function withServer(env, body) {
  const { folder, remove } = await stranger("panel-server");
  const state = {};
  const upstream = await service(state);
  const server = await started(folder, "server.mjs", [], { UPSTREAM: upstream.url, PORT: "0", ...env });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  try {
    await body({ url: server.url, state, browser });
  } finally {
    await browser.close();
    await server.stop();
    await upstream.stop();
    await remove();
  }
}

const post = (url, body, type = "application/json") => fetch(`${url}/circuits.json`, { method: "POST", headers: { "Content-Type": type }, body });

test("panel-server: the page shows the server's circuit open and refusing, with and without scripts, and operates nothing", () =>
  withServer({}, async ({ url, state, browser }) => {
    const page = await browser.newPage();
    const problems = [];
    page.on("console", (message) => message.type() === "error" && !message.text().includes("404") && problems.push(message.text()));
    page.on("pageerror", (error) => problems.push(String(error)));
    assert.equal(await (await fetch(`${url}/tea`)).text(), "from the service");
    await page.goto(`${url}/circuits`);
    await page.locator('.row .word:text-is("Closed")').waitFor();
    state.status = 500;
    await until(() => fetch(`${url}/tea`), ({ status }) => status === 503);
    await page.locator('.row .word:text-is("Open")').waitFor();
    assert.equal(await page.locator("tr[data-reason]").getAttribute("data-reason"), "failure_rate");
    await page.locator('.note:text-matches("refused")').waitFor();
    assert.equal(await page.getByRole("button", { name: "Operate" }).count(), 0);
    const [{ id }] = (await (await fetch(`${url}/circuits.json`)).json()).circuits;
    assert.equal((await post(url, JSON.stringify({ id, verb: "reset" }))).status, 403);

    const plain = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
    await plain.goto(`${url}/circuits`);
    assert.match(await plain.locator("tripcurve-panel table").innerText(), /Open\s+http\.127\.0\.0\.1\S*\s+open since .* calls in the last \d+ s failed/);
    for (const path of ["/modules/..%2f..%2fpackage.json", "/modules/../../package.json", "/modules/nothing.js"]) assert.notEqual((await fetch(url + path)).status, 200);
    assert.deepEqual(problems, []);
  }));

test("panel-server: where it is allowed the page holds a circuit open, which the gateway obeys, and says when the server has gone", () =>
  withServer({ CONTROLS: "1" }, async ({ url, browser }) => {
    await (await fetch(`${url}/tea`)).text();
    const page = await browser.newPage();
    await page.goto(`${url}/circuits`);
    await page.getByRole("button", { name: /^Operate/ }).click();
    await page.getByRole("button", { name: "Hold open" }).click();
    await page.locator('.row .word:text-is("Open, held")').waitFor();
    assert.equal((await fetch(`${url}/tea`)).status, 503);
    const [{ id }] = (await (await fetch(`${url}/circuits.json`)).json()).circuits;
    assert.equal((await post(url, JSON.stringify({ id, verb: "release" }), "text/plain")).status, 403, "no other site can send that");
    assert.equal((await post(url, "{")).status, 403);
    await page.getByRole("button", { name: "Release the hold" }).click();
    await page.locator('.row .word:text-is("Closed")').waitFor();
    assert.equal((await fetch(`${url}/tea`)).status, 200);
    await page.route("**/circuits.json*", (route) => route.abort());
    await page.locator(".notice", { hasText: /^No news for/ }).waitFor();
  }));
