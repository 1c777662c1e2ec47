// wrapFetch in real browsers: bodies watched to their end on the browser's own Response, and what only a browser has: opaque answers, CORS,
// being offline, addresses that are no requests.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { listen, shut } from "../../www/listen.mjs";
import { inBrowsers } from "./harness.mjs";

let server, service;
before(async () => {
  server = createServer((request, response) => {
    const path = request.url.slice(1);
    if (path === "silent") return;
    if (path === "file") return response.writeHead(200, { "Content-Type": "application/zip", "Content-Disposition": "attachment" }).end("PK");
    const cors = path === "closed-to-others" ? {} : { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After" };
    if (path === "later") return response.writeHead(503, { ...cors, "Retry-After": "120" }).end();
    response.writeHead(200, { ...cors, "Content-Type": "application/json" });
    response.write('{"part":1');
    if (path === "breaks") setTimeout(() => response.destroy(), 20);
    else if (path !== "hangs") response.end("}");
  });
  service = await listen(server, "127.0.0.1", 0);
});
after(() => shut(server));

/** In the page: `get`, `counts`, `counted`, `ways`, of a guard whose circuit never opens. */
const SETUP = `
  const { wrapFetch } = await import("/dist/js/index.js");
  const policy = { window: { kind: "calls", last: 20 }, failures: 20, failureRate: null };
  const guardOf = (options) => {
    const guarded = wrapFetch(fetch, { policy, settleAt: "body", ...options });
    const get = (path, init) => guarded(path.includes(":") ? path : service + "/" + path, init);
    const counts = () => guarded.registry.inspect().map(({ counts }) => [counts.calls, counts.failures])[0] ?? [0, 0];
    const counted = async (calls) => {
      for (const end = Date.now() + 5_000; counts()[0] < calls && Date.now() < end; ) await later(5);
      return counts();
    };
    return { get, counts, counted, guarded };
  };
  const later = (ms = 30) => new Promise((resolve) => setTimeout(resolve, ms));
  const outcome = (work) => work.then((value) => ({ value }), (error) => ({ error }));
  const drain = async (stream) => { const reader = stream.getReader(); while (!(await reader.read()).done); };
`;
const LEAVING = `
  const { localStorageStore } = await import("/dist/js/stores/local-storage.js");
  const { get, counts, guarded } = guardOf({ settleAt: "headers", store: localStorageStore() });
`;
const run = (tab, body) => tab.evaluate(`(async () => { const service = ${JSON.stringify(service)}; ${SETUP} ${body} })()`);

inBrowsers(({ name, openTabs }) => {
  const inPage = (body, check) => async () => {
    const { tabs: [tab], close } = await openTabs(1);
    try {
      check(await run(tab, body));
    } finally {
      await close();
    }
  };

  test(
    "by whatever way a body is read, at its end it is a success, broken off a failure, before neither",
    inPage(
      `const ways = {
        text: (response) => response.text(),
        json: (response) => response.json(),
        blob: (response) => response.blob(),
        reader: (response) => drain(response.body),
        pipe: (response) => response.body.pipeTo(new WritableStream()),
        through: (response) => drain(response.body.pipeThrough(new TextDecoderStream())),
        tee: (response) => Promise.all(response.body.tee().map(drain)),
        clone: (response) => { const copy = response.clone(); return Promise.all([response.text(), copy.text()]); },
      };
      const seen = {};
      for (const [name, read] of Object.entries(ways)) {
        const { get, counts, counted } = guardOf();
        const whole = await get("whole");
        await later();
        const before = counts();
        await read(whole);
        const good = await counted(1);
        const broken = await outcome(get("breaks").then(read));
        seen[name] = [before, good, await counted(2), "error" in broken];
      }
      return seen;`,
      (seen) => {
        assert.equal(Object.keys(seen).length, 8);
        for (const [name, found] of Object.entries(seen)) assert.deepEqual(found, [[0, 0], [1, 0], [2, 1], true], name);
      },
    ),
  );

  test(
    "it is the browser's own Response, which it takes itself where a Response is wanted",
    inPage(
      `const { get, counts } = guardOf();
      const response = await get("whole");
      const facts = [response instanceof Response, response.url === service + "/whole", response.type, response.body instanceof ReadableStream, response.body === response.body];
      const copy = await new Response((await get("whole")).body).text();
      const cached = await caches.open("x").then(async (cache) => { await cache.put("/kept", await get("whole")); return (await cache.match("/kept")).text(); }).catch(String);
      await later();
      return { facts, copy, cached, counts: counts() };`,
      ({ facts, copy, cached, counts }) => {
        assert.deepEqual([facts, copy, cached], [[true, true, "cors", true, true], '{"part":1}', '{"part":1}']);
        assert.deepEqual(counts, [0, 0], "what the host reads by itself is not counted");
      },
    ),
  );

  test(
    "aborted by its caller it is ignored, a time-out of the body is a failure",
    inPage(
      `const one = guardOf();
      const controller = new AbortController();
      const response = await one.get("hangs", { signal: controller.signal });
      setTimeout(() => controller.abort(), 20);
      const aborted = (await outcome(response.text())).error.name;
      await later();
      const two = guardOf({ bodyTimeoutMs: 50 });
      const late = (await outcome((await two.get("hangs")).text())).error.name;
      return [aborted, one.counts(), late, await two.counted(1)];`,
      (found) => assert.deepEqual(found, ["AbortError", [0, 0], "TimeoutError", [1, 1]]),
    ),
  );

  test(
    "what CORS keeps from the page is a failure; no-cors, keepalive, data: and blob: pass through",
    inPage(
      `const { get, counts } = guardOf({ settleAt: "headers" });
      const opaque = await get("closed-to-others", { mode: "no-cors" });
      const afterOpaque = counts();
      const refused = (await outcome(get("closed-to-others"))).error.name;
      const afterRefused = counts();
      const data = await (await get("data:text/plain,hi")).text();
      const blob = await (await get(URL.createObjectURL(new Blob(["ho"])))).text();
      await get("whole", { method: "POST", body: "x", keepalive: true });
      return { opaque: opaque.type, afterOpaque, refused, afterRefused, data, blob, at: counts() };`,
      (found) => assert.deepEqual(found, { opaque: "opaque", afterOpaque: [0, 0], refused: "TypeError", afterRefused: [1, 1], data: "hi", blob: "ho", at: [1, 1] }),
    ),
  );

  test(
    "Retry-After is heeded where the origin exposes it, and a refusal is answered with it",
    inPage(
      `const guarded = wrapFetch(fetch, { policy: { failures: 1, failureRate: null }, onOpen: "respond" });
      await guarded(service + "/later");
      const answer = await guarded(service + "/later");
      return [answer.status, Number(answer.headers.get("Retry-After")), (await answer.json()).reason];`,
      ([status, seconds, reason]) => {
        assert.deepEqual([status, reason], [503, "open"]);
        assert.ok(seconds > 100 && seconds <= 120, `${seconds}`);
      },
    ),
  );

  test("without a network nothing is counted against a service", async () => {
    const { tabs: [tab], context, close } = await openTabs(1);
    try {
      await context.setOffline(true);
      const found = await run(tab, `const { get, counts } = guardOf(); const { error } = await outcome(get("whole")); return [error.name, navigator.onLine, counts()];`);
      assert.deepEqual(found, ["TypeError", false, [0, 0]]);
    } finally {
      await context.setOffline(false);
      await close();
    }
  });

  test("requests that end because the page is left, or loads a file, are not counted against a service", async () => {
    const { tabs: [tab], close } = await openTabs(1);
    const begin = () => run(tab, `${LEAVING} for (let i = 0; i < 3; i++) get("silent").catch(() => (globalThis.ended = true)); await later(100);`);
    const countsNow = () => run(tab, `${LEAVING} guarded.registry.get("http.127.0.0.1." + new URL(service).port).inspect(); return counts();`);
    try {
      await begin();
      await tab.reload();
      assert.deepEqual(await countsNow(), [0, 0]);
      await begin();
      await tab.evaluate((url) => void (location.href = url), `${service}/file`);
      // Firefox then ends what is under way, Chromium does not.
      if (name === "Firefox") await tab.waitForFunction(() => globalThis.ended);
      assert.deepEqual(await countsNow(), [0, 0]);
      await run(tab, `${LEAVING} await outcome(get("closed-to-others"));`);
      assert.deepEqual(await countsNow(), [1, 1], "what fails in a page that stays is");
    } finally {
      await close();
    }
  });

  test("what breaks off in a body because the page is left is not counted either", async () => {
    const { tabs: [tab], close } = await openTabs(1);
    try {
      await run(tab, `${LEAVING} const one = guardOf({ store: localStorageStore() }); for (let i = 0; i < 3; i++) one.get("hangs").then((response) => response.text()).catch(() => {}); await later(100);`);
      await tab.reload();
      assert.deepEqual(await run(tab, `${LEAVING} guarded.registry.get("http.127.0.0.1." + new URL(service).port).inspect(); return counts();`), [0, 0]);
    } finally {
      await close();
    }
  });
});
