// Events to iterate over, and a short memory of them.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitRegistry } from "tripcurve";
import { keepHistory, watch } from "tripcurve/events";
import { fakeClock } from "tripcurve/testing";
import { B0, fixture, repeat, ticks } from "./help.mjs";

test("a stream begins with what holds, and goes on with what happens, in order", async () => {
  const { breaker, open } = fixture();
  const told = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const { type, key, state, to } of watch(breaker, { signal: stop.signal, events: ["state", "transition"] })) told.push([type, key, state ?? to].join(" "));
  })();
  await open();
  await ticks();
  stop.abort();
  await reading;
  assert.deepEqual(told, ["state test.circuit closed", "transition test.circuit open", "state test.circuit open"]);
  breaker.reset();
  assert.equal(told.length, 3);
});

test("leaving the loop ends the listening: calls take the quick way again", async () => {
  const { breaker } = fixture();
  for await (const { type } of watch(breaker)) if (type === "state") break;
  const events = watch(breaker, { events: ["outcome"] });
  await breaker.run(() => 1);
  assert.equal((await events.next()).value.verdict, "success");
  await events.return();
  await breaker.run(() => 1);
  assert.deepEqual(await events.next(), { done: true, value: undefined });
});

test("what nobody takes is dropped, the oldest first, and that is told", async () => {
  const { breaker } = fixture();
  const events = watch(breaker, { events: ["transition"], limit: 2 });
  for (const state of ["open", "closed", "open", "closed", "half_open"]) breaker.force(state);
  const { value } = await events.next();
  assert.deepEqual([value.type, value.code, value.message], ["diagnostic", "events_dropped", "3 events were dropped: they were not taken fast enough"]);
  assert.deepEqual([(await events.next()).value.to, (await events.next()).value.to], ["closed", "half_open"]);
  const next = events.next();
  breaker.force("open");
  assert.equal((await next).value.to, "open");
  await events.return();
});

test("a signal that is aborted already gives nothing, and what waited before one aborts is still given", async () => {
  const { breaker } = fixture();
  assert.deepEqual(await watch(breaker, { signal: AbortSignal.abort(), events: ["transition"] }).next(), { done: true, value: undefined });
  const stop = new AbortController();
  const events = watch(breaker, { signal: stop.signal, events: ["transition"] });
  breaker.force("open");
  stop.abort();
  breaker.force("closed");
  assert.equal((await events.next()).value.to, "open");
  assert.equal((await events.next()).done, true);
});

test("bad options are refused by name", () => {
  const { breaker } = fixture();
  assert.throws(() => watch(breaker, { limit: 0 }), { field: "limit", min: 1, max: 100_000 });
  assert.throws(() => watch(breaker, { event: ["state"] }), { message: /did you mean events/ });
  const heard = [];
  const source = { on: (event) => (heard.push(event), () => {}) };
  for (const of of [breaker, source]) assert.throws(() => watch(of, { events: ["state", "states"] }), { field: "events", value: "states" });
  assert.deepEqual(heard, [], "nobody listens to a part of them");
  assert.throws(() => keepHistory(breaker, { transitions: -1 }), { field: "transitions", min: 0 });
  assert.throws(() => keepHistory(breaker, { maxCircuits: 0 }), { field: "maxCircuits" });
});

test("a history keeps the last transitions and a sample of the failures of each circuit, as lines of JSON", async () => {
  const clock = fakeClock(1_000_000);
  const registry = new CircuitRegistry({ ...B0, openMs: 1 }, { clock });
  const history = keepHistory(registry, { transitions: 3, failures: 2, everyMs: 100 });
  const fail = (key, message) => registry.get(key).run(() => Promise.reject(new TypeError(message))).catch(() => {});
  await repeat(4, () => fail("one", "x".repeat(500)));
  clock.advance(50);
  await fail("two", "within");
  await fail("two", "the same 100 ms");
  clock.advance(100);
  await fail("two", "later");
  assert.deepEqual(history.failures("two").map(({ error, at }) => [error, at]), [["TypeError: within", 1_000_050], ["TypeError: later", 1_000_150]]);
  const [long] = history.failures("one");
  assert.deepEqual({ ...long, error: long.error.length }, { key: "one", at: 1_000_000, durationMs: 0, probe: false, error: 101 });
  for (const state of ["closed", "open", "half_open"]) registry.get("one").force(state);
  assert.deepEqual(history.transitions("one").map(({ to }) => to), ["closed", "open", "half_open"]);
  assert.deepEqual(history.transitions("nobody"), []);
  const lines = history.toNDJSON().trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ type, key, at }) => [type, key, at]), [
    ["failure", "one", 1_000_000],
    ["failure", "two", 1_000_050],
    ["failure", "two", 1_000_150],
    ...Array(3).fill(["transition", "one", 1_000_150]),
  ]);
  history.stop();
  registry.get("one").force("open");
  assert.equal(history.transitions("one").at(-1).to, "half_open");
});

test("a history is bounded in circuits: the quietest is forgotten", async () => {
  const registry = new CircuitRegistry(B0);
  const history = keepHistory(registry, { maxCircuits: 2, failures: 0 });
  for (const key of ["one", "two", "one", "three"]) registry.get(key).force(registry.get(key).state === "open" ? "closed" : "open");
  assert.deepEqual(["one", "two", "three"].map((key) => history.transitions(key).length), [2, 0, 1]);
});

test("a failed response is remembered by its status, where there are responses", async () => {
  const { breaker, clock } = fixture({ minimumCalls: 100 });
  const history = keepHistory(breaker);
  const answer = (value) => breaker.run(() => value, { classify: () => "failure" });
  await answer(new Response(null, { status: 502 }));
  const { Response: there } = globalThis;
  delete globalThis.Response;
  try {
    clock.advance(1_000);
    await answer("text");
  } finally {
    globalThis.Response = there;
  }
  assert.deepEqual(history.failures().map(({ error }) => error), ["HTTP status 502", "text"]);
});

test("a failure is remembered as text, whatever was thrown", async () => {
  const { breaker, clock } = fixture({ minimumCalls: 100 });
  const history = keepHistory(breaker);
  const odd = { toString() { throw new Error("no"); } };
  for (const error of [undefined, "text", Symbol("s"), odd, null]) {
    await breaker.run(() => Promise.reject(error)).catch(() => {});
    clock.advance(1_000);
  }
  assert.deepEqual(history.failures().map(({ error }) => error), ["undefined", "text", "Symbol(s)", "an error that has no text", "null"]);
});
