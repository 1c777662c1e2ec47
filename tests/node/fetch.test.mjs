import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { after, before } from "node:test";
import { CircuitRegistry, isCircuitOpenError, wrapFetch } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { outcomeOf, reported } from "./help.mjs";

const policy = { failures: 2, failureRate: null, openMs: 1_000 };
const url = "https://api.example.com/orders";

/** A guard over a fetch that answers with what it is given in turn, the last one for ever. */
function guard(answers, options = {}) {
  const calls = [];
  const next = [...[answers].flat()];
  const fake = async (...args) => {
    calls.push(args);
    const answer = next.length > 1 ? next.shift() : next[0];
    if (answer instanceof Error) throw answer;
    return typeof answer === "number" ? new Response(null, { status: answer }) : typeof answer === "function" ? answer(...args) : answer;
  };
  const clock = fakeClock();
  const guarded = wrapFetch(fake, { policy, clock, ...options });
  return { guarded, calls, clock, counts: () => guarded.registry.inspect().map(({ key, counts }) => [key, counts.calls, counts.failures]) };
}

const statuses = { 200: 0, 204: 0, 301: 0, 304: 0, 400: 0, 404: 0, 408: 0, 429: 1, 500: 1, 501: 0, 502: 1, 503: 1, 504: 1, 599: 1 };
for (const [status, failures] of Object.entries(statuses)) {
  test(`status ${status} is a ${failures ? "failure" : "success"}, and comes back`, async () => {
    const { guarded, counts } = guard(Number(status));
    assert.equal((await guarded(url)).status, Number(status));
    assert.deepEqual(counts(), [["https.api.example.com", 1, failures]]);
  });
}

test("a network error is a failure and keeps its identity", async () => {
  const error = new TypeError("fetch failed");
  const { guarded, counts } = guard(error);
  assert.equal((await outcomeOf(guarded(url))).error, error);
  assert.deepEqual(counts(), [["https.api.example.com", 1, 1]]);
});

test("Response.error() is a failure, an opaque response is a success", async () => {
  const opaque = Object.defineProperties(new Response(), { type: { value: "opaque" }, status: { value: 0 } });
  const { guarded, counts } = guard([Response.error(), opaque]);
  await guarded(url);
  assert.equal((await guarded(url)).type, "opaque");
  assert.deepEqual(counts(), [["https.api.example.com", 2, 1]]);
});

test("failureStatus is a list or a function", async () => {
  for (const failureStatus of [[404], (status) => status === 404]) {
    const { guarded, counts } = guard([404, 503], { failureStatus });
    await guarded(url);
    await guarded(url);
    assert.deepEqual(counts(), [["https.api.example.com", 2, 1]]);
  }
});

test("an open circuit refuses without a request, and leaves the body unused", async () => {
  const { guarded, calls } = guard(503);
  await guarded(url);
  await guarded(url);
  const request = new Request(url, { method: "POST", body: "order", duplex: "half" });
  const { error } = await outcomeOf(guarded(request));
  assert.ok(isCircuitOpenError(error));
  assert.equal(error.cause, "HTTP status 503");
  assert.equal(calls.length, 2);
  assert.equal(request.bodyUsed, false);
  assert.equal(await request.text(), "order");
});

test("every origin has its own circuit", async () => {
  const { guarded, counts } = guard(200);
  await guarded("https://a.example/x");
  await guarded(new URL("https://a.example/y"));
  await guarded(new Request("https://b.example:8080/"));
  assert.deepEqual(counts().map(([key]) => key), ["https.a.example", "https.b.example.8080"]);
});

test("input and init reach fetch as they are", async () => {
  const { guarded, calls } = guard(200);
  const init = { method: "POST", body: "x" };
  const request = new Request(url);
  await guarded(url, init);
  await guarded(request);
  assert.equal(calls[0][0], url);
  assert.equal(calls[0][1], init);
  assert.equal(calls[1][0], request);
  assert.equal(calls[1][1], undefined);
});

for (const address of ["data:text/plain,hello", "blob:https://a.example/1234", " DATA:,x"]) {
  test(`${address} passes through without a circuit`, async () => {
    const { guarded, counts } = guard(503);
    await guarded(address);
    assert.deepEqual(counts(), []);
  });
}

test("an address that is none is fetch's to refuse", async () => {
  const { guarded } = guard(new TypeError("Invalid URL"));
  const faults = await reported(async () => {
    assert.equal((await outcomeOf(guarded("/relative"))).error.message, "Invalid URL");
  });
  assert.deepEqual(faults, []);
});

test("key chooses the circuit, null none, and it sees method and headers but no body", async () => {
  const seen = [];
  const key = (request) => {
    seen.push([request.method, request.url, request.headers.get("x-shop"), request.body]);
    return request.headers.get("x-shop");
  };
  const { guarded, counts } = guard(200, { key });
  await guarded(url, { method: "POST", headers: { "x-shop": "one" }, body: "order" });
  await guarded(new Request(url, { headers: { "x-shop": "two" } }));
  const request = new Request(url, { method: "POST", headers: { "x-shop": "two" }, body: "order", duplex: "half" });
  await guarded(request, { headers: { "x-shop": "three" } });
  await guarded(url);
  assert.deepEqual(seen, [["POST", url, "one", null], ["GET", url, "two", null], ["POST", url, "three", null], ["GET", url, null, null]]);
  assert.deepEqual(counts().map(([name]) => name), ["one", "two", "three"]);
  assert.equal(request.bodyUsed, false);
});

test("a call without arguments is fetch's to refuse, and a fetch that is none is refused at once", async () => {
  const guarded = wrapFetch(fetch, { policy });
  for (const args of [[], [undefined], [null]]) await assert.rejects(guarded(...args), TypeError);
  for (const none of [null, {}, "fetch"]) assert.throws(() => wrapFetch(none), { code: "ERR_INVALID_CIRCUIT", field: "fetch" });
});

test("a function of the status that throws makes the outcome ignored, is reported, and the response comes back (R14)", async () => {
  const { guarded, counts } = guard(503, { failureStatus: () => { throw new Error("status"); } });
  const faults = await reported(async () => assert.equal((await guarded(url)).status, 503));
  assert.deepEqual([faults.length, counts()[0][1]], [1, 0]);
});

test("a key function that throws or names no key is reported once, and the request goes on", async () => {
  for (const key of [() => { throw new Error("key"); }, () => "NO KEY"]) {
    const { guarded, counts } = guard(503, { key });
    const faults = await reported(async () => {
      for (let i = 0; i < 3; i++) assert.equal((await guarded(url)).status, 503);
    });
    assert.equal(faults.length, 1);
    assert.deepEqual(counts(), []);
  }
});

test("a request its caller aborts is ignored, by init's signal and by the request's own", async () => {
  const answer = (input, init) => new Promise((_, reject) => {
    const signal = init?.signal ?? input.signal;
    signal.addEventListener("abort", () => reject(signal.reason));
  });
  const { guarded, counts } = guard([answer]);
  for (const call of [(signal) => guarded(url, { signal }), (signal) => guarded(new Request(url, { signal })), (signal) => guarded(new Request(url), { signal })]) {
    const controller = new AbortController();
    const running = outcomeOf(call(controller.signal));
    controller.abort("gone");
    assert.equal((await running).error, "gone");
  }
  assert.deepEqual(counts(), [["https.api.example.com", 0, 0]]);
});

test("a signal that had fired before sends nothing", async () => {
  const { guarded, calls } = guard(200);
  assert.equal((await outcomeOf(guarded(url, { signal: AbortSignal.abort("gone") }))).error, "gone");
  assert.deepEqual(calls, []);
});

test("init's null signal overrides the request's", async () => {
  const { guarded, calls } = guard(200);
  const request = new Request(url, { signal: AbortSignal.abort() });
  assert.equal((await guarded(request, { signal: null })).status, 200);
  assert.equal(calls.length, 1);
});

test("a network error while the browser is offline says nothing about the service", async () => {
  const { guarded, counts } = guard(new TypeError("offline"));
  const navigator = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { onLine: false }, configurable: true });
  try {
    await outcomeOf(guarded(url));
  } finally {
    if (navigator) Object.defineProperty(globalThis, "navigator", navigator);
    else delete globalThis.navigator;
  }
  assert.deepEqual(counts(), [["https.api.example.com", 0, 0]]);
});

test("a classifier is asked, and undefined keeps what fetch's answers mean", async () => {
  const { guarded, counts } = guard([200, 404, 503], { classify: (result) => (result.ok && result.value.status === 200 ? "failure" : undefined) });
  for (let i = 0; i < 3; i++) await guarded(url);
  assert.deepEqual(counts(), [["https.api.example.com", 0, 0]]);
  assert.equal(guarded.registry.get("https.api.example.com").state, "open");
});

test("a registry can be given, and shared", async () => {
  const registry = new CircuitRegistry(policy, { clock: fakeClock() });
  const one = guard(503, { registry, policy: undefined, clock: undefined });
  const two = guard(200, { registry, policy: undefined, clock: undefined, classify: () => "ignored" });
  assert.equal(one.guarded.registry, registry);
  await one.guarded(url);
  await two.guarded(url);
  await one.guarded(url);
  assert.ok(isCircuitOpenError((await outcomeOf(two.guarded(url))).error));
});

test("a full registry lets requests through", async () => {
  const registry = new CircuitRegistry(policy, { maxCircuits: 1, clock: fakeClock() });
  registry.get("other").force("open");
  const { guarded } = guard(503, { registry, policy: undefined, clock: undefined });
  for (let i = 0; i < 5; i++) assert.equal((await guarded(url)).status, 503);
});

test("it works unbound, and takes the fetch there is when it is made", async () => {
  const original = globalThis.fetch;
  const seen = [];
  globalThis.fetch = function (input) {
    seen.push(this === undefined || this === globalThis, input);
    return Promise.resolve(new Response("real"));
  };
  try {
    const { fetch } = { fetch: wrapFetch() };
    globalThis.fetch = fetch;
    assert.equal(await (await fetch(url)).text(), "real");
    assert.deepEqual(seen, [true, url]);
  } finally {
    globalThis.fetch = original;
  }
});

test("the default policy is the page's where there is a document, else the edge's", async () => {
  for (const [document, calls] of [[undefined, 10], [{}, 5]]) {
    if (document) globalThis.document = document;
    const { guarded } = guard(503, { policy: undefined });
    delete globalThis.document;
    const breaker = guarded.registry;
    let made = 0;
    for (; made < 20 && breaker.inspect()[0]?.state !== "open"; made++) await guarded(url).catch(() => {});
    assert.equal(made, calls);
  }
});

// ---- against a real server

let server;
let base;
before(async () => {
  server = createServer((request, response) => {
    if (request.url === "/hang") return;
    response.writeHead(request.url === "/down" ? 503 : 200, { "content-type": "text/plain" });
    if (request.url === "/drip") return void response.write("first");
    request.pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${server.address().port}`;
});
after(() => (server.closeAllConnections(), server.close()));

test("real requests trip the circuit and their bodies arrive", async () => {
  const guarded = wrapFetch(fetch, { policy });
  const echoed = await guarded(`${base}/echo`, { method: "POST", body: "hello" });
  assert.equal(await echoed.text(), "hello");
  assert.equal(echoed.url, `${base}/echo`);
  await (await guarded(`${base}/down`)).body?.cancel();
  await (await guarded(`${base}/down`)).body?.cancel();
  await assert.rejects(guarded(`${base}/echo`), { code: "ERR_CIRCUIT_OPEN" });
});

test("a time-out is about the headers: it aborts a request that hangs, and not a body", async () => {
  const guarded = wrapFetch(fetch, { policy, timeoutMs: 200 });
  const { error } = await outcomeOf(guarded(`${base}/hang`));
  assert.equal(error.name, "TimeoutError");
  const response = await guarded(`${base}/drip`);
  const reader = response.body.getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value), "first");
  const more = reader.read().catch((reason) => reason);
  assert.equal(await Promise.race([more, new Promise((resolve) => setTimeout(resolve, 400, "still reading"))]), "still reading");
  await reader.cancel();
  const [{ counts }] = guarded.registry.inspect();
  assert.deepEqual([counts.calls, counts.failures], [2, 1]);
});

test("the caller's abort reaches a body behind a time-out", async () => {
  const guarded = wrapFetch(fetch, { policy, timeoutMs: 5_000 });
  const controller = new AbortController();
  const response = await guarded(`${base}/drip`, { signal: controller.signal });
  const reader = response.body.getReader();
  await reader.read();
  const more = outcomeOf(reader.read());
  controller.abort(new Error("enough"));
  assert.equal((await more).error.message, "enough");
});

test("a refused connection is a failure", async () => {
  const guarded = wrapFetch(fetch, { policy });
  await assert.rejects(guarded("http://127.0.0.1:1/"), TypeError);
  assert.equal(guarded.registry.inspect()[0].counts.failures, 1);
});

test("what nobody is told of passes through uncounted, also while the circuit is open: no-cors and keepalive", async () => {
  const { guarded, counts, calls } = guard(503);
  await guarded(url);
  await guarded(url);
  assert.ok(isCircuitOpenError((await outcomeOf(guarded(url))).error));
  for (const init of [{ mode: "no-cors" }, { keepalive: true }]) {
    assert.equal((await guarded(url, init)).status, 503);
    assert.equal((await guarded(new Request(url, init))).status, 503);
  }
  assert.ok(isCircuitOpenError((await outcomeOf(guarded(new Request(url, { keepalive: true }), { keepalive: false }))).error));
  assert.deepEqual([calls.length, counts()[0][0]], [6, "https.api.example.com"]);
});

const unsendable = {
  "a header that is none": () => [`${base}/echo`, { headers: { "x-name": "漢" } }],
  "a method that is none": () => [`${base}/echo`, { method: "GE T" }],
  "a forbidden method": () => [new URL(`${base}/echo`), { method: "CONNECT" }],
  "a body with GET": () => [`${base}/echo`, { body: "x" }],
  "a body with a request's GET": () => [new Request(`${base}/echo`), { body: "x" }],
  "a password in its address": () => [base.replace("//", "//me:secret@")],
  "a body that is used up": async () => {
    const request = new Request(`${base}/echo`, { method: "POST", body: "x" });
    await request.text();
    return [request];
  },
};
for (const [name, make] of Object.entries(unsendable)) {
  test(`what fetch refuses to send, with ${name}, says nothing about the service`, async () => {
    for (const options of [{}, { timeoutMs: 5_000 }]) {
      const guarded = wrapFetch(fetch, { policy, ...options });
      await assert.rejects(guarded(...(await make())), TypeError);
      assert.equal(guarded.registry.inspect().reduce((sum, { counts }) => sum + counts.calls, 0), 0);
    }
  });
}

test("a used Request with another body is sent, and counted", async () => {
  const guarded = wrapFetch(fetch, { policy });
  const request = new Request(`${base}/echo`, { method: "POST", body: "x" });
  await request.text();
  assert.equal(await (await guarded(request, { body: "y" })).text(), "y");
  assert.equal(guarded.registry.inspect()[0].counts.calls, 1);
});

test("a Request as init, as a proxy has it, keeps its method and headers, also with a time-out", async () => {
  const { guarded, calls } = guard(200, { timeoutMs: 5_000 });
  await guarded(url, new Request("https://proxy.example/", { method: "DELETE", headers: { a: "b" } }));
  const [[request]] = calls;
  assert.deepEqual([request.method, request.headers.get("a"), request.url], ["DELETE", "b", url]);
});
