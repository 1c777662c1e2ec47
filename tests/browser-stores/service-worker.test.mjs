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
  const guarded = async (work) => {
    Object.assign(state, { up: false, served: 0 });
    const { open, context, close } = await openTabs(0);
    try {
      const page = await open("/innocent.html");
      await page.evaluate(async () => {
        await navigator.serviceWorker.register("/guarding-worker.mjs", { type: "module" });
        if (!navigator.serviceWorker.controller) await new Promise((resolve) => (navigator.serviceWorker.oncontrollerchange = resolve));
      });
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
      await pause(1_600);
      await eventually(async () => (await ask())[0] === 200, "it closes");
      await eventually(async () => (await ask(other))[0] === 200, "it is closed for all");
      for (let i = 0; i < 3; i++) assert.deepEqual(await ask(other), [200, false]);
    }));

  test("navigations and the page's own parts are left alone", () =>
    guarded(async ({ page, ask }) => {
      for (let i = 0; i < 3; i++) await ask();
      await page.reload();
      assert.equal(await page.title(), "A page that knows nothing");
      assert.deepEqual(await ask(), [503, true], "and what is guarded still is");
    }));

  test("what it knows outlives the worker", { skip: name !== "Chromium" && "only Chromium stops a worker when told" }, () =>
    guarded(async ({ page, ask, context }) => {
      for (let i = 0; i < 3; i++) await ask();
      await pause(300);
      const devtools = await context.newCDPSession(page);
      await devtools.send("ServiceWorker.enable");
      await devtools.send("ServiceWorker.stopAllWorkers");
      assert.deepEqual(await ask(), [503, true]);
      assert.equal(state.served, 2);
    }));
});
