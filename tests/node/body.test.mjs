// settleAt: "body" on real responses: the outcome is known when the body has been read (R12).
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { wrapFetch } from "tripcurve";
import { outcomeOf } from "./help.mjs";

let origin, server;
before(async () => {
  server = createServer((request, response) => {
    const path = request.url.slice(1);
    if (path === "empty") return response.writeHead(204).end();
    response.writeHead(200, { "Content-Type": "application/json", "X-Kept": "yes" });
    if (request.method === "HEAD") return response.end();
    response.write('{"part":1');
    if (path === "whole") response.end("}");
    else if (path === "rubbish") response.end("…");
    else if (path === "breaks") setTimeout(() => response.destroy(), 5);
    // "hangs" goes on for ever
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const policy = { window: { kind: "calls", last: 20 }, failures: 20, failureRate: null };
function guard(options = {}) {
  const guarded = wrapFetch(fetch, { policy, settleAt: "body", ...options });
  const get = (path, init, each) => guarded(`${origin}/${path}`, init, each);
  const counts = () => {
    const [{ counts }] = guarded.registry.inspect();
    return [counts.calls, counts.failures];
  };
  const counted = async (calls) => {
    for (const end = Date.now() + 5_000; counts()[0] < calls && Date.now() < end; ) await new Promise((resolve) => setTimeout(resolve, 5));
    return counts();
  };
  return { get, counts, counted, registry: guarded.registry };
}
const later = (ms = 30) => new Promise((resolve) => setTimeout(resolve, ms));
const drain = async (stream) => { for await (const chunk of stream) void chunk; };

const ways = {
  "text()": (response) => response.text(),
  "json()": (response) => response.json(),
  "arrayBuffer()": (response) => response.arrayBuffer(),
  "blob()": (response) => response.blob(),
  "the async iterator": (response) => drain(response.body),
  "a reader": async (response) => {
    const reader = response.body.getReader();
    while (!(await reader.read()).done);
  },
  "a reader of its own buffer": async (response) => {
    const reader = response.body.getReader({ mode: "byob" });
    while (!(await reader.read(new Uint8Array(4))).done);
  },
  "pipeTo": (response) => response.body.pipeTo(new WritableStream()),
  "pipeThrough": (response) => drain(response.body.pipeThrough(new TextDecoderStream())),
  "tee": (response) => Promise.all(response.body.tee().map(drain)),
  "a clone": async (response) => {
    const copy = response.clone();
    await Promise.all([response.text(), copy.text()]);
  },
  "only the clone": (response) => response.clone().text(),
};
for (const [name, read] of Object.entries(ways)) {
  test(`by ${name}: read to its end it is a success, broken off a failure, before neither`, async () => {
    const { get, counts, counted } = guard();
    const whole = await get("whole");
    await later();
    assert.deepEqual(counts(), [0, 0]);
    await read(whole);
    assert.deepEqual(await counted(1), [1, 0]);
    await assert.rejects(async () => read(await get("breaks")));
    assert.deepEqual(await counted(2), [2, 1]);
  });
}

test("four bodies that break open the circuit (R12)", async () => {
  const { get, registry } = guard({ policy: { failures: 4, failureRate: null } });
  for (let i = 0; i < 4; i++) await assert.rejects((await get("breaks")).text());
  await later(5);
  assert.equal(registry.inspect()[0].state, "open");
  assert.equal((await outcomeOf(get("whole"))).error.code, "ERR_CIRCUIT_OPEN");
});

test("what has no body is settled at its headers", async () => {
  const { get, counts } = guard();
  await get("empty");
  await get("whole", { method: "HEAD" });
  assert.deepEqual(counts(), [2, 0]);
});

const given = {
  "a reader": async (response) => {
    const reader = response.body.getReader();
    await reader.read();
    await reader.cancel();
  },
  "the stream": (response) => response.body.cancel(),
  "a loop that ends early": async (response) => { for await (const chunk of response.body) return void chunk; },
  "the other end of a pipe": async (response) => {
    const full = new WritableStream({ write() { throw new Error("full"); } });
    await response.body.pipeTo(full).catch(() => {});
  },
  "both copies": async (response) => {
    const copy = response.clone();
    await Promise.all([response.body.cancel(), copy.body.cancel()]);
  },
};
for (const [name, give] of Object.entries(given)) {
  test(`given up by ${name} it is ignored`, async () => {
    const { get, counts } = guard();
    await give(await get("whole"));
    await later();
    assert.deepEqual(counts(), [0, 0]);
  });
}

test("one copy given up decides nothing, the other does", async () => {
  const { get, counts, counted } = guard();
  const response = await get("whole");
  const copy = response.clone();
  void copy.body.cancel();
  await later();
  assert.deepEqual(counts(), [0, 0]);
  await response.text();
  assert.deepEqual(await counted(1), [1, 0]);
});

test("aborted by its caller it is ignored, by a deadline of the caller's a failure", async () => {
  const { get, counts, counted } = guard();
  const controller = new AbortController();
  const aborted = await get("hangs", { signal: controller.signal });
  setTimeout(() => controller.abort(), 5);
  await assert.rejects(aborted.text());
  await later();
  assert.deepEqual(counts(), [0, 0]);
  const late = await get("hangs", { signal: AbortSignal.timeout(20) });
  await assert.rejects(late.text(), { name: "TimeoutError" });
  assert.deepEqual(await counted(1), [1, 1]);
});

test("bodyTimeoutMs begins with the reading and aborts it: a failure", async () => {
  const { get, counts, counted } = guard({ bodyTimeoutMs: 40 });
  const response = await get("hangs");
  await later(80);
  assert.deepEqual(counts(), [0, 0], "nobody reads yet");
  await assert.rejects(response.text(), { name: "TimeoutError", message: "The body took longer than 40 ms" });
  assert.deepEqual(await counted(1), [1, 1]);
  await (await get("whole")).text();
  assert.deepEqual(await counted(2), [2, 1]);
});

test("timeoutMs is about the headers, bodyTimeoutMs about the body, and the caller's signal about both", async () => {
  const { get } = guard({ timeoutMs: 5_000, bodyTimeoutMs: 5_000 });
  const controller = new AbortController();
  const response = await get("hangs", { signal: controller.signal });
  setTimeout(() => controller.abort(new Error("gone")), 5);
  await assert.rejects(response.text(), { message: "gone" });
});

test("what is no JSON has arrived all the same: no failure", async () => {
  const { get, counts } = guard();
  await assert.rejects((await get("rubbish")).json(), SyntaxError);
  await later();
  assert.equal(counts()[1], 0);
});

test("it is the same Response with the same stream: brand, url, headers, identity of body, reading twice refused as ever", async () => {
  const { get } = guard();
  const response = await get("whole");
  assert.ok(response instanceof Response);
  assert.equal(Object.prototype.toString.call(response), "[object Response]");
  assert.deepEqual([response.url, response.status, response.type, response.redirected, response.headers.get("X-Kept")], [`${origin}/whole`, 200, "basic", false, "yes"]);
  assert.ok(response.body instanceof ReadableStream);
  assert.equal(response.body, response.body);
  assert.equal(response.bodyUsed, false);
  assert.deepEqual(await response.json(), { part: 1 });
  assert.equal(response.bodyUsed, true);
  await assert.rejects(response.text(), TypeError);
  const copied = new Response((await get("whole")).body);
  assert.equal(await copied.text(), '{"part":1}');
});

test("a probe whose body nobody reads ends by its lease and counts nothing", async () => {
  let now = 1_000;
  const policy = { failures: 1, failureRate: null, openMs: 1_000, probeLeaseMs: 5_000 };
  const { get, registry } = guard({ policy, clock: () => now });
  await assert.rejects((await get("breaks")).text());
  await later(5);
  now = 2_000;
  await get("whole");
  assert.equal((await outcomeOf(get("whole"))).error.reason, "probes_busy");
  now = 7_000;
  await (await get("whole")).text();
  await later(5);
  assert.equal(registry.inspect()[0].state, "closed");
});

test("one request may settle at its body while the others settle at their headers", async () => {
  const { get, counts } = guard({ settleAt: "headers" });
  await get("whole");
  assert.deepEqual(counts(), [1, 0]);
  const response = await get("whole", undefined, { settleAt: "body" });
  assert.deepEqual(counts(), [1, 0]);
  await response.text();
  await later(5);
  assert.deepEqual(counts(), [2, 0]);
});
