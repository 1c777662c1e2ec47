// What panels are fed with, as it is in Node: news after a cursor, commands, HTML. The panel itself is in tests/browser/panel.test.mjs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CircuitBreaker, CircuitRegistry, InvalidCircuitError } from "tripcurve";
import { definePanel, panelFeed, renderCircuits } from "tripcurve/panel";

const ids = ({ circuits }) => circuits.map(({ id }) => id);
const reasons = ({ moves }) => moves.map(({ reason }) => reason);
const policy = { failures: 2, openMs: 60_000 };

test("can be imported without a document, where an element cannot be defined", () => assert.throws(() => definePanel(), ReferenceError));

test("news are all there is at first, then what is new", async () => {
  const registry = new CircuitRegistry(policy);
  const feed = panelFeed(registry);
  registry.get("a");
  registry.get("b");
  const first = feed.news();
  assert.deepEqual([first.after, ids(first), reasons(first)], [null, ["a", "b"], []]);
  assert.deepEqual([first.circuits[0].policy, first.circuits[0].state], [policy, "closed"]);
  registry.get("b").force("open");
  registry.get("c");
  const second = JSON.parse(JSON.stringify(feed.news(first.cursor)));
  assert.deepEqual([second.after, ids(second), reasons(second)], [first.cursor, ["b", "c"], ["forced"]]);
  const third = feed.news(second.cursor);
  assert.deepEqual([ids(third), reasons(third)], [[], []]);
});

test("what is counted is news without a transition", async () => {
  const breaker = new CircuitBreaker("a", policy);
  const feed = panelFeed(breaker);
  const { cursor } = feed.news();
  await breaker.run(() => 1);
  assert.equal(feed.news(cursor).circuits[0].counts.calls, 1);
});

test("a circuit that has gone, a cursor of another feed and one that is none give everything", () => {
  const registry = new CircuitRegistry(policy, { maxCircuits: 2 });
  const feed = panelFeed(registry);
  for (const key of ["a", "b"]) registry.get(key);
  const { cursor } = feed.news();
  registry.get("c");
  const news = feed.news(cursor);
  assert.deepEqual([news.after, ids(news)], [null, ["b", "c"]]);
  for (const other of [panelFeed(registry).news().cursor, "", "x.y", `${cursor}0000`, null]) assert.equal(feed.news(other).after, null, other);
});

test("several sources have the number of theirs before their keys, and commands find the right one", () => {
  const [one, two] = [new CircuitBreaker("a", policy), new CircuitRegistry(policy)];
  two.get("a");
  const feed = panelFeed([one, two], { controls: true });
  assert.deepEqual(ids(feed.news()), ["0/a", "1/a"]);
  assert.equal(feed.act({ id: "1/a", verb: "hold", to: "open" }), true);
  assert.deepEqual([one.inspect().held, two.get("a").inspect().held], [null, "open"]);
  assert.equal(feed.news().moves[0].id, "1/a");
});

test("every command does what it says, and nothing without controls, a circuit, or sense", () => {
  const breaker = new CircuitBreaker("a", policy);
  const [feed, closed] = [panelFeed(breaker, { controls: true }), panelFeed(breaker)];
  for (const [command, state, held] of [
    [{ verb: "force", to: "half_open" }, "half_open", null],
    [{ verb: "hold", to: "open" }, "open", "open"],
    [{ verb: "release" }, "closed", null],
    [{ verb: "force", to: "open" }, "open", null],
    [{ verb: "reset" }, "closed", null],
  ]) {
    assert.equal(closed.act({ id: "a", ...command }), false);
    assert.equal(feed.act({ id: "a", ...command }), true);
    const found = breaker.inspect();
    assert.deepEqual([found.state, found.held], [state, held]);
  }
  for (const command of [null, 1, "reset", {}, { id: "a" }, { id: "b", verb: "reset" }, { id: "a", verb: "dispose" }, { id: "a", verb: "force", to: "ajar" }, { id: "a", verb: "hold", to: "half_open" }, { id: ["a"], verb: "reset" }]) {
    assert.equal(feed.act(command), false, JSON.stringify(command));
  }
});

test("transitions are kept within their limit, begin with those of before, and end with stop", async () => {
  const breaker = new CircuitBreaker("a", policy);
  const before = panelFeed(breaker);
  breaker.force("open");
  const feed = panelFeed(breaker, { transitions: 3, past: before.news().moves });
  for (const verb of ["reset", "force", "reset"]) breaker[verb]("open");
  assert.deepEqual(reasons(feed.news()), ["reset", "forced", "reset"]);
  let told = 0;
  feed.on(() => told++);
  breaker.force("open");
  breaker.reset();
  await null;
  assert.equal(told, 1, "once for all of a moment");
  feed.stop();
  breaker.force("open");
  await null;
  assert.deepEqual([told, reasons(feed.news()).length, reasons(feed.news()).at(-1)], [1, 3, "reset"]);
  assert.throws(() => panelFeed(breaker, { transitions: -1 }), InvalidCircuitError);
});

test("as HTML the circuits are a table, and what a feed says is text", () => {
  const breaker = new CircuitBreaker("http.payments", policy);
  breaker.hold("open");
  assert.match(renderCircuits(breaker), /<tr data-state="open"><td>Open, held<\/td><td>http\.payments<\/td><td>held open since .* UTC: by hand, until it is released<\/td><\/tr>/);
  const feed = panelFeed(breaker);
  const news = feed.news();
  const lying = { ...feed, news: () => ({ ...news, circuits: [{ ...news.circuits[0], id: '<img src=x onerror="hit()">&' }] }) };
  assert.match(renderCircuits(lying), /<td>&lt;img src=x onerror=&quot;hit\(\)&quot;&gt;&amp;<\/td>/);
});
