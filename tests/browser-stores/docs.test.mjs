// The examples of docs/ that are for a page or a service worker, bundled and run as they are written. Only the name api.example.com is led to a
// service on loopback, which is down until told.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { listen, shut } from "../../www/listen.mjs";
import { eventually, inBrowsers } from "./harness.mjs";

const docs = new URL("../../docs/", import.meta.url);
const text = readdirSync(docs).filter((name) => name.endsWith(".md")).map((name) => readFileSync(new URL(name, docs), "utf8")).join("\n");
const [react, ...others] = [...text.matchAll(/```jsx\n(.*?)```/gs)].map(([, code]) => code);
const [sync, ...more] = [...text.matchAll(/```js\n(\/\/ In a service worker.*?)```/gs)].map(([, code]) => code);

const OPEN_MS = 2_000;
const state = { up: false, orders: [] };
const files = { "/": ["text/html", '<!doctype html><title>An example</title><div id="root"></div>'] };
let server, origin;
before(async () => {
  server = createServer(async (request, response) => {
    if (request.url === "/orders") {
      let body = "";
      for await (const chunk of request) body += chunk;
      state.orders.push({ body, at: performance.now(), up: state.up });
      return response.writeHead(state.up ? 200 : 503).end("orders");
    }
    const [type, content] = files[request.url] ?? ["text/plain", ""];
    response.writeHead(200, { "Content-Type": type }).end(content);
  });
  origin = await listen(server, "127.0.0.1", 0);
  for (const [path, contents] of Object.entries({ "/react.js": react, "/sync.js": sync })) {
    const { outputFiles } = await build({
      stdin: { contents: contents.replaceAll("https://api.example.com", origin), loader: "jsx", resolveDir: fileURLToPath(docs) },
      ...{ bundle: true, write: false, format: "iife", platform: "browser", jsx: "automatic", logLevel: "error" },
      define: { "process.env.NODE_ENV": '"production"', "import.meta.url": '""' },
    });
    files[path] = ["text/javascript", outputFiles[0].text];
  }
});
after(() => shut(server));

test("there is one example of each kind, which runs here", () => assert.deepEqual([!react, !sync, others, more], [false, false, [], []]));

inBrowsers(({ name, openTabs }) => {
  const inPage = (work) => async () => {
    Object.assign(state, { up: false, orders: [] });
    const { context, close } = await openTabs(0);
    try {
      const page = await context.newPage();
      await page.goto(origin);
      await work(page, context);
    } finally {
      await close();
    }
  };

  /** No request follows one that failed before its time. */
  const kept = () => state.orders.slice(1).forEach(({ at }, i) => assert.ok(state.orders[i].up || at - state.orders[i].at >= OPEN_MS - 10));

  test(
    "React shows a refusal and comes back by itself",
    inPage(async (page) => {
      await page.addScriptTag({ url: "/react.js" });
      const button = page.getByText("Try again");
      await eventually(async () => {
        if (await button.isVisible()) await button.click();
        return page.getByText(/^back in [12] s$/).isVisible();
      }, "it says when it will be back");
      state.up = true;
      await page.getByText("orders").waitFor();
      kept();
    }),
  );

  test(
    "a background sync sends nothing while the circuit is open, and everything once it closes",
    { skip: name !== "Chromium" && "only Chromium syncs in the background" },
    inPage(async (page, context) => {
      await page.evaluate(async () => {
        const outbox = await caches.open("outbox");
        for (const order of ["one", "two"]) await outbox.put(`/outbox/${order}`, new Response(order));
        await navigator.serviceWorker.register("/sync.js");
        await navigator.serviceWorker.ready;
      });
      const session = await context.newCDPSession(page);
      const registered = new Promise((resolve) => session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => registrations[0] && resolve(registrations[0].registrationId)));
      await session.send("ServiceWorker.enable");
      const registrationId = await registered;
      const dispatch = () => session.send("ServiceWorker.dispatchSyncEvent", { origin, registrationId, tag: "orders", lastChance: false });
      const left = () => page.evaluate(async () => (await (await caches.open("outbox")).keys()).length);

      await dispatch();
      await eventually(() => state.orders.length === 1, "the first order is tried");
      state.up = true;
      await eventually(async () => (await dispatch(), (await left()) === 0), "the outbox is empty");
      assert.deepEqual(state.orders.map(({ body }) => body), ["one", "one", "two"]);
      kept();
    }),
  );
});
