// A service worker that guards the requests of pages that know nothing of it.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { listen, shut } from "../../www/listen.mjs";
import { eventually, inBrowsers, pause } from "./harness.mjs";

let server, service;
const state = { up: false, served: 0 };
before(async () => {
  server = createServer((_, response) => {
    state.served++;
    response.writeHead(state.up ? 200 : 500, { "Access-Control-Allow-Origin": "*" }).end("an answer");
  });
  service = await listen(server, "127.0.0.1", 0);
});
after(() => shut(server));

inBrowsers(({ name, openTabs }) => {
  const guarded = async (work, worker = "/guarding-worker.mjs") => {
    Object.assign(state, { up: false, served: 0 });
    const { open, context, close } = await openTabs(0);
    try {
      const page = await open("/innocent.html");
      await page.evaluate(async (worker) => {
        await navigator.serviceWorker.register(worker, { type: "module" });
        await navigator.serviceWorker.ready;
      }, worker);
      await page.reload();
      const ask = (of = page) => of.evaluate((url) => answerOf(url), service);
      await work({ page, ask, open, context });
    } finally {
      await close();
    }
  };

  test("it opens, answers in the service's place, lets a probe through, and closes", () =>
    guarded(async ({ ask, open }) => {
      for (let i = 0; i < 2; i++) assert.deepEqual(await ask(), [500, false]);
      assert.deepEqual(await ask(), [503, true]);
      const other = await open("/innocent.html");
      assert.deepEqual(await ask(other), [503, true], "another page, the same worker");
      assert.equal(state.served, 2);
      state.up = true;
      await eventually(async () => (await ask())[0] === 200, "it closes");
      await eventually(async () => (await ask(other))[0] === 200, "it is closed for all");
      for (let i = 0; i < 3; i++) assert.deepEqual(await ask(other), [200, false]);
    }));

  test("one line is enough, with the policy of pages", () =>
    guarded(async ({ page, ask }) => {
      for (let i = 0; i < 5; i++) assert.deepEqual(await ask(), [500, false]);
      assert.deepEqual(await ask(), [503, true]);
      assert.equal(state.served, 5);
      const refused = () =>
        new Promise((resolve) => {
          navigator.serviceWorker.addEventListener("message", ({ data }) => resolve(data), { once: true });
          navigator.serviceWorker.startMessages();
          navigator.serviceWorker.controller.postMessage("");
        });
      assert.equal(await page.evaluate(refused), "settleAt");
    }, "/one-line-worker.mjs"));

  test("navigations and the page's own parts are left alone, whatever becomes of its requests", () =>
    guarded(async ({ page, ask }) => {
      for (let i = 0; i < 2; i++) assert.deepEqual(await page.evaluate(() => answerOf("/missing")), [404, false]);
      assert.deepEqual(await page.evaluate(() => answerOf("/missing")), [503, true]);
      await page.reload();
      assert.equal(await page.title(), "A page that knows nothing");
      const part = () =>
        new Promise((resolve) => {
          const script = Object.assign(document.createElement("script"), { type: "module", src: "/dist/js/clock.js", onload: () => resolve("loaded"), onerror: () => resolve("refused") });
          document.head.append(script);
        });
      assert.equal(await page.evaluate(part), "loaded");
      assert.deepEqual(await ask(), [500, false], "another origin has a circuit of its own");
    }));

  test("what it knows outlives the worker, and so does the way back", { skip: name !== "Chromium" && "only Chromium stops a worker when told" }, () =>
    guarded(async ({ page, ask, context }) => {
      for (let i = 0; i < 3; i++) await ask();
      await pause(300);
      const devtools = await context.newCDPSession(page);
      await devtools.send("ServiceWorker.enable");
      await devtools.send("ServiceWorker.stopAllWorkers");
      assert.deepEqual(await ask(), [503, true]);
      assert.equal(state.served, 2);
      state.up = true;
      await devtools.send("ServiceWorker.stopAllWorkers");
      await eventually(async () => (await ask())[0] === 200, "it closes");
      await pause(300);
      await devtools.send("ServiceWorker.stopAllWorkers");
      for (let i = 0; i < 3; i++) assert.deepEqual(await ask(), [200, false]);
    }));
});
