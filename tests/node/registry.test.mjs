import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { CircuitBreaker, CircuitRegistry, memoryStore } from "tripcurve";
import { fakeClock } from "tripcurve/testing";
import { deferred, outcomeOf, reported } from "./help.mjs";

const policy = { failures: 1, failureRate: null, openMs: 1_000 };
const registryOf = (options, rules = policy) => new CircuitRegistry(rules, { clock: fakeClock(), ...options });
const failed = (breaker) => outcomeOf(breaker.run(() => { throw new Error("down"); }));

test("a key has one breaker as long as somebody holds it", () => {
  const registry = registryOf();
  const one = registry.get("a");
  assert.ok(one instanceof CircuitBreaker);
  assert.equal(one.key, "a");
  assert.equal(registry.get("a"), one);
  assert.notEqual(registry.get("b"), one);
  assert.equal(registry.size, 2);
});

test("a key that is none is refused", () => {
  const registry = registryOf();
  assert.throws(() => registry.get("A B"), { code: "ERR_INVALID_CIRCUIT", field: "key" });
  assert.equal(registry.size, 0);
});

test("listeners hear of every circuit, also of those made later, and of outcomes on the quick way", async () => {
  const registry = registryOf();
  const told = [];
  const early = registry.get("early");
  await early.run(() => 1);
  registry.on("transition", ({ key, to }) => told.push(`${key} ${to}`));
  const stop = registry.on("outcome", ({ key, verdict }) => told.push(`${key} ${verdict}`));
  await early.run(() => 1);
  await failed(registry.get("late"));
  assert.deepEqual(told, ["early success", "late failure", "late open"]);
  stop();
  await early.run(() => 1);
  assert.equal(told.length, 3);
});

test("inspect shows every circuit", async () => {
  const registry = registryOf();
  registry.get("a");
  await failed(registry.get("b"));
  assert.deepEqual(registry.inspect().map(({ key, state }) => [key, state]), [["a", "closed"], ["b", "open"]]);
});

test("a policy may be a function of the key; the same object is parsed once, a bad one is refused by get", async () => {
  const asked = [];
  const strict = { ...policy };
  const registry = registryOf({}, (key) => {
    asked.push(key);
    return key === "bad" ? { openMs: -1 } : key === "lax" ? { ...policy, failures: 2 } : strict;
  });
  await failed(registry.get("a"));
  await failed(registry.get("lax"));
  registry.get("a");
  assert.throws(() => registry.get("bad"), { field: "openMs" });
  assert.deepEqual(registry.inspect().map(({ state }) => state), ["open", "closed"]);
  assert.deepEqual(asked, ["a", "lax", "bad"]);
  assert.equal(registry.size, 2);
});

test("full: the least recently used idle closed circuit makes room", async () => {
  const registry = registryOf({ maxCircuits: 3 });
  for (const key of ["a", "b", "c"]) registry.get(key);
  registry.get("a");
  registry.get("d");
  assert.deepEqual(registry.inspect().map(({ key }) => key), ["c", "a", "d"]);
});

test("open and held circuits and those with calls in flight are not evicted", async () => {
  const registry = registryOf({ maxCircuits: 4 });
  await failed(registry.get("open"));
  registry.get("held").hold("closed");
  const call = deferred();
  const running = registry.get("busy").run(() => call.promise);
  registry.get("idle");
  registry.get("new");
  assert.deepEqual(registry.inspect().map(({ key }) => key).sort(), ["busy", "held", "new", "open"]);
  call.resolve();
  await running;
  registry.get("newer");
  assert.deepEqual(registry.inspect().map(({ key }) => key).sort(), ["held", "new", "newer", "open"]);
});

test("nothing to evict: calls pass uncounted, one diagnostic says so, and a place is taken when there is one", async () => {
  const registry = registryOf({ maxCircuits: 1 });
  const told = [];
  registry.on("diagnostic", ({ code }) => told.push(code));
  await failed(registry.get("open"));
  const outside = registry.get("outside");
  assert.equal(registry.get("outside"), outside);
  for (let i = 0; i < 3; i++) assert.equal((await failed(outside)).error.message, "down");
  assert.equal(await outside.run(() => "passes"), "passes");
  assert.deepEqual([outside.state, registry.size, told], ["closed", 1, ["registry_full"]]);
  registry.get("open").reset();
  await failed(outside);
  assert.equal(outside.state, "open");
  assert.deepEqual(registry.inspect().map(({ key }) => key), ["outside"]);
});

test("full in an outage: a call of a new key looks at a few circuits only, and what becomes idle is found all the same", async () => {
  const registry = registryOf({ maxCircuits: 200 });
  const told = [];
  registry.on("diagnostic", ({ code }) => told.push(code));
  for (let i = 0; i < 200; i++) await failed(registry.get(`open${i}`));
  await failed(registry.get("new"));
  registry.get("open199").reset();
  let calls = 0;
  for (; registry.get("new").state === "closed"; calls++) await failed(registry.get("new"));
  assert.ok(calls > 2 && calls < 40, `${calls} calls`);
  assert.deepEqual([registry.size, registry.inspect().every(({ state }) => state === "open"), told], [200, true, ["registry_full"]]);
});

test("an evicted breaker that is still held comes back to the registry at its next call, as the same one", async () => {
  const registry = registryOf({ maxCircuits: 1 });
  const a = registry.get("a");
  const b = registry.get("b");
  assert.deepEqual(registry.inspect().map(({ key }) => key), ["b"]);
  assert.equal(registry.get("a"), a);
  await failed(a);
  assert.deepEqual(registry.inspect().map(({ key, state }) => `${key} ${state}`), ["a open"]);
  assert.equal(await b.run(() => "b"), "b");
  assert.equal(registry.size, 1);
});

test("a disposed circuit is forgotten, and made afresh", async () => {
  const registry = registryOf();
  const one = registry.get("a");
  await failed(one);
  one.dispose();
  assert.equal(registry.size, 0);
  const two = registry.get("a");
  assert.notEqual(two, one);
  assert.equal(two.state, "closed");
});

test("after dispose calls pass, and verbs throw", async () => {
  const registry = registryOf();
  const early = registry.get("a");
  await failed(early);
  registry.dispose();
  registry.dispose();
  for (const breaker of [early, registry.get("a"), registry.get("b")]) {
    assert.equal(await breaker.run(() => "passes"), "passes");
    assert.throws(() => breaker.force("open"), { code: "ERR_CIRCUIT_DISPOSED" });
  }
  assert.deepEqual([registry.size, registry.inspect()], [0, []]);
});

test("flush writes what the store lacks, of every circuit", async () => {
  const texts = new Map();
  let slow = true;
  const store = { consistency: "last_write", get: async () => null, set: async (key, text) => (slow ? { ok: false } : (texts.set(key, text), { ok: true })) };
  const registry = registryOf({ store });
  await failed(registry.get("a"));
  await failed(registry.get("b"));
  slow = false;
  await registry.flush();
  assert.deepEqual([...texts.keys()].sort(), ["a", "b"]);
});

test("circuits of two registries meet in a store", async () => {
  const store = memoryStore({ clock: () => 0 });
  const [one, two] = [registryOf({ store }), registryOf({ store })];
  await failed(one.get("a"));
  assert.equal((await outcomeOf(two.get("a").run(() => 1))).error.code, "ERR_CIRCUIT_OPEN");
});

test("a failing clock of a registry is reported once", async () => {
  const registry = registryOf({ clock: () => { throw new Error("clock"); } });
  const faults = await reported(async () => {
    for (const key of ["a", "b", "c"]) await failed(registry.get(key));
  });
  assert.equal(faults.length, 1);
});

test("an idle circuit keeps its state without its breaker, a watched or open one keeps its breaker", () => {
  const script = `
    import { CircuitRegistry } from "tripcurve";
    const registry = new CircuitRegistry({ window: { kind: "calls", last: 10 }, failures: 3, failureRate: null }, { maxCircuits: 10_000 });
    const refs = {};
    const heard = [];
    const down = new Error("down");
    const fail = (key, times) => Promise.all(Array.from({ length: times }, () => registry.get(key).run(() => { throw down }).catch(() => {})));
    for (const [key, times] of [["idle", 2], ["open", 3], ["watched", 0]]) {
      await fail(key, times);
      refs[key] = new WeakRef(registry.get(key));
    }
    registry.get("watched").on("transition", ({ to }) => heard.push(to));
    for (let i = 0; i < 5; i++) { await new Promise((resolve) => setTimeout(resolve, 10)); gc(); }
    const alive = Object.entries(refs).filter(([, ref]) => ref.deref()).map(([key]) => key);
    const { counts } = registry.get("idle").inspect();
    await fail("idle", 1);
    await fail("watched", 3);
    const { cause } = await registry.get("open").run(() => 1).catch((error) => error);
    console.log(JSON.stringify({ alive, failures: counts.failures, idle: registry.get("idle").state, heard, cause: cause === down, size: registry.size }));`;
  const out = execFileSync(process.execPath, ["--expose-gc", "--input-type=module", "-e", script], { cwd: new URL("../..", import.meta.url), encoding: "utf8" });
  assert.deepEqual(JSON.parse(out), { alive: ["open", "watched"], failures: 2, idle: "open", heard: ["open"], cause: true, size: 3 });
});

test("without WeakRef circuits are kept all the same, and as many breakers that lost theirs are remembered", () => {
  const script = `
    globalThis.WeakRef = globalThis.FinalizationRegistry = undefined;
    const { CircuitRegistry } = await import("tripcurve");
    const registry = new CircuitRegistry({}, { maxCircuits: 2 });
    const a = registry.get("a");
    registry.get("b"); registry.get("c");
    const found = registry.get("a") === a;
    for (const key of ["c", "d", "e", "f", "g"]) registry.get(key);
    const again = registry.get("a");
    await a.run(() => { throw new Error("down"); }).catch(() => {});
    console.log(registry.size, found, again === a, await a.run(() => "passes"), again.inspect().counts.calls, registry.size);`;
  const out = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: new URL("../..", import.meta.url), encoding: "utf8" });
  assert.equal(out, "2 true false passes 0 2\n");
});
