// Retry-After both ways: what an answer asks for, and what a refusal says (R13).
import assert from "node:assert/strict";
import test from "node:test";
import { wrapFetch } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { outcomeOf } from "./help.mjs";

const NOW = Date.UTC(2026, 9, 21, 7, 28, 0); // Wed, 21 Oct 2026 07:28:00 GMT
const url = "https://api.example.com/orders";
const policy = { failures: 1, failureRate: null, openMs: 30_000, maxOpenMs: 600_000 };

function guard(answer, options = {}) {
  const clock = fakeClock(NOW);
  const guarded = wrapFetch(async () => answer(), { policy, clock, ...options });
  return { guarded, clock };
}

const answer = (status, header) => () => new Response(null, { status, ...(header !== undefined && { headers: { "Retry-After": header } }) });

/** How long the circuit stays open after this answer; null: it does not open. */
async function opened(status, header, options) {
  const { guarded } = guard(answer(status, header), options);
  await guarded(url);
  const [{ until }] = guarded.registry.inspect();
  return until === null ? null : until - NOW;
}

const ORDINARY = 30_000;
const CAP = 600_000;
const headers = {
  "0": ORDINARY, "120": 120_000, " 120 ": 120_000, "\t120": 120_000, "00120": 120_000, "29": ORDINARY, "31": 31_000, "600": CAP, "601": CAP,
  "-3": ORDINARY, "+3": ORDINARY, "1.5": ORDINARY, "1.": ORDINARY, "0x10": ORDINARY, "1e3": ORDINARY, "120junk": ORDINARY, "10, 20": ORDINARY, "": ORDINARY,
  ["9".repeat(30)]: CAP, ["9".repeat(400)]: CAP,
  "Wed, 21 Oct 2026 07:30:00 GMT": 120_000, "Wed, 21 Oct 2026 07:28:31 GMT": 31_000, "Wed, 21 Oct 2026 07:27:00 GMT": ORDINARY, "Fri, 21 Oct 2033 07:28:00 GMT": CAP,
  "Wednesday, 21-Oct-26 07:30:00 GMT": 120_000, "Sunday, 06-Nov-94 08:49:37 GMT": ORDINARY, "Tuesday, 21-Oct-75 07:28:00 GMT": CAP,
  "Wed Oct 21 07:30:00 2026": 120_000, "Sun Nov  6 08:49:37 1994": ORDINARY, "Fri Nov  6 08:49:37 2026": CAP,
  "2026-10-21": ORDINARY, "2026-10-21T07:30:00Z": ORDINARY, "Wed, 31 Feb 2027 07:30:00 GMT": ORDINARY, "Wed, 21 Oct 2026 25:00:00 GMT": ORDINARY,
  "Wed, 21 Oct 2026 07:60:00 GMT": ORDINARY, "wed, 21 oct 2026 07:30:00 gmt": ORDINARY, "21 Oct 2026 07:30:00 GMT": ORDINARY, "Wed, 21 Oct 2026 07:30:00 +0000": ORDINARY,
  "Wed, 00 Oct 2026 07:30:00 GMT": ORDINARY, "Wed, 21 Oct 2026 07:29:60 GMT": 119_000,
};
for (const [header, expected] of Object.entries(headers)) {
  test(`"${header.length > 40 ? `${header.slice(0, 9)}… (${header.length})` : header}" keeps it open for ${expected} ms`, async () => {
    assert.equal(await opened(503, header), expected);
    assert.equal(await opened(429, header), expected);
  });
}

test("of other answers it is not heeded, nor where it is switched off; alone it opens nothing", async () => {
  assert.equal(await opened(200, "120"), null);
  assert.equal(await opened(404, "120"), null);
  assert.equal(await opened(500, "120"), ORDINARY);
  assert.equal(await opened(503, "120", { retryAfter: false }), ORDINARY);
  assert.equal(await opened(503, "120", { policy: { failures: 2, failureRate: null } }), null);
});

test("only the failure that opens the circuit says for how long", async () => {
  const answers = [answer(503, "300"), answer(503, "60")];
  const { guarded } = guard(() => answers.shift()(), { policy: { ...policy, failures: 2 } });
  await guarded(url);
  await guarded(url);
  assert.equal(guarded.registry.inspect()[0].until, NOW + 60_000);
});

test("a refusal says when to come back, and counts down", async () => {
  const { guarded, clock } = guard(answer(503, "120"));
  await guarded(url);
  clock.advance(500);
  const { error } = await outcomeOf(guarded(url));
  assert.deepEqual([error.retryAt, error.retryAfterMs], [NOW + 120_000, 119_500]);
  clock.advance(100_000);
  assert.equal(error.retryAfterMs, 19_500);
});

test('onOpen: "respond" answers a refusal with 503, Retry-After in whole seconds, and problem+json', async () => {
  const { guarded, clock } = guard(answer(503, "120"), { onOpen: "respond" });
  await guarded(url);
  clock.advance(500);
  const response = await guarded(url);
  assert.deepEqual([response.status, response.headers.get("Retry-After"), response.headers.get("Content-Type")], [503, "120", "application/problem+json"]);
  const { detail, ...body } = await response.json();
  assert.deepEqual(body, { title: "Service Unavailable", status: 503, circuit: "https.api.example.com", reason: "open", retryAt: NOW + 120_000 });
  assert.match(detail, /https\.api\.example\.com is open since 2026-10-21T07:28:00Z: .+; next probe at 2026-10-21T07:30:00Z/);
  guarded.registry.get("https.api.example.com").hold("open");
  const held = await guarded(url);
  assert.deepEqual([held.headers.get("Retry-After"), (await held.json()).reason], [null, "held_open"]);
});

test("onOpen as a function gives its own answer, and sees the request without its body", async () => {
  const seen = [];
  const { guarded } = guard(answer(503), { onOpen: (error, request) => (seen.push([error.code, request.method, request.url, request.body]), new Response("the last good one")) });
  await guarded(url);
  const request = new Request(url, { method: "POST", body: "order" });
  assert.equal(await (await guarded(request, { headers: { a: "b" } })).text(), "the last good one");
  assert.deepEqual(seen, [["ERR_CIRCUIT_OPEN", "POST", url, null]]);
  assert.equal(request.bodyUsed, false);
});

test("an error of fetch itself is never answered for", async () => {
  const down = new TypeError("fetch failed");
  const { guarded } = guard(() => Promise.reject(down), { onOpen: "respond", policy: { failures: 5, failureRate: null } });
  assert.equal((await outcomeOf(guarded(url))).error, down);
});

test("one request may have it otherwise than the others; what cannot work rejects, with the name that was meant", async () => {
  const { guarded } = guard(answer(503));
  await guarded(url);
  assert.equal((await guarded(url, undefined, { onOpen: "respond" })).status, 503);
  assert.equal((await outcomeOf(guarded(url))).error.code, "ERR_CIRCUIT_OPEN");
  for (const [field, options] of [["onOpn", { onOpn: "respond" }], ["timeoutMs", { timeoutMs: 0 }], ["onOpen", { onOpen: "answer" }]]) {
    const { error } = await outcomeOf(guarded(url, undefined, options));
    assert.deepEqual([error.code, error.field], ["ERR_INVALID_CIRCUIT", field]);
  }
  for (const options of [{ settleAt: "end" }, { bodyTimeoutMs: 5 }, { settleAt: "body", bodyTimeoutMs: 0 }, { onOpen: 5 }]) {
    assert.throws(() => wrapFetch(fetch, options), { code: "ERR_INVALID_CIRCUIT" });
  }
});

test("a probe that is answered with it reopens the circuit until then", async () => {
  const answers = [answer(503), answer(429, "120")];
  const { guarded, clock } = guard(() => answers.shift()());
  await guarded(url);
  clock.advance(ORDINARY);
  await guarded(url);
  assert.equal(guarded.registry.inspect()[0].until, NOW + ORDINARY + 120_000);
});

test("a classifier that says only that it failed leaves it heeded; null ends it, and what is no failure has none", async () => {
  assert.equal(await opened(503, "120", { classify: () => "failure" }), 120_000);
  assert.equal(await opened(503, "120", { classify: () => ({ verdict: "failure", durationMs: 5 }) }), 120_000);
  assert.equal(await opened(503, "120", { classify: () => ({ verdict: "failure", retryAt: null }) }), ORDINARY);
  assert.equal(await opened(503, "120", { classify: () => ({ verdict: "failure", retryAt: NOW + 60_000 }) }), 60_000);
  for (const verdict of ["success", "ignored"]) assert.equal(await opened(503, "120", { classify: () => verdict }), null);
  const slow = { ...policy, failures: null, slowMs: 1, slowRate: 1, minimumCalls: 1, judgeOn: "any" };
  assert.equal(await opened(503, "120", { policy: slow, classify: () => ({ verdict: "success", durationMs: 5 }) }), ORDINARY);
});

test("what onOpen throws reaches the caller with the refusal as cause, counts nowhere, and may ask again without end", async () => {
  const thrown = new Error("nothing kept");
  const { guarded } = guard(answer(503), { onOpen: () => Promise.reject(thrown) });
  await guarded(url);
  const { error } = await outcomeOf(guarded(url));
  assert.equal(error, thrown);
  assert.equal(error.cause.code, "ERR_CIRCUIT_OPEN");
  assert.equal(guarded.registry.inspect()[0].rejected, 1);
  const again = guard(answer(503), { onOpen: (_, request) => again.guarded(request) });
  await again.guarded(url);
  assert.equal((await outcomeOf(again.guarded(url))).error.code, "ERR_CIRCUIT_OPEN");
});

test("key and onOpen never hold the body of a Request, which stays the caller's", async () => {
  const read = async (_, request) => new Response(await request.text());
  const { guarded } = guard(answer(503), { onOpen: read, key: (request) => (request.text(), "a.circuit") });
  await guarded(url);
  const request = new Request(url, { method: "POST", body: "order" });
  assert.equal(await (await guarded(request)).text(), "");
  assert.equal(await request.text(), "order");
});

test("a disposed registry refuses nothing", async () => {
  const { guarded } = guard(answer(503));
  await guarded(url);
  guarded.registry.dispose();
  assert.equal((await guarded(url)).status, 503);
});
