// tripcurve/otel on OpenTelemetry's own SDK and exporter: the names, units and values that arrive there.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import test from "node:test";
import { context, metrics } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { DataPointType, MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { CircuitBreaker, InvalidCircuitError, memoryStore, wrapFetch } from "tripcurve";
import { instrument, utopia } from "tripcurve/otel";
import { collectMetrics } from "tripcurve/prometheus";
import { fakeClock, faultyStore } from "tripcurve/testing";
import { fixture, outcomeOf } from "./help.mjs";
import { counted, live, LIVED, watched } from "./telemetry.mjs";

/** Collects when asked. */
class Reader extends MetricReader {
  onForceFlush() {}
  onShutdown() {}
}

/** A meter of the SDK; `read()` gives what it has collected, by name. */
function sdk(t) {
  const reader = new Reader();
  const provider = new MeterProvider({ readers: [reader] });
  t.after(() => provider.shutdown());
  return { provider, meter: provider.getMeter("test"), read: () => read(reader) };
}

async function read(reader) {
  const { resourceMetrics, errors } = await reader.collect();
  assert.deepEqual(errors, []);
  return new Map(resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics).map((metric) => [metric.descriptor.name, metric]));
}

/** The points of a metric for a circuit, by the values of their other attributes. */
const points = (metric, circuit = "http.payments") =>
  Object.fromEntries(
    metric.dataPoints.flatMap(({ attributes, value }) => {
      const { "circuit_breaker.name": name, ...others } = attributes;
      return name === circuit ? [[Object.values(others).join(" "), value]] : [];
    }),
  );

const kindOf = ({ dataPointType, isMonotonic }) =>
  ({ [DataPointType.SUM]: isMonotonic ? "counter" : "updown", [DataPointType.GAUGE]: "gauge" })[dataPointType] ?? "histogram";

test("a circuit that opens, refuses, is probed and closes arrives with names, kinds, units and values", async (t) => {
  const { meter, read } = sdk(t);
  const all = watched();
  const stop = instrument(all.registry, { meter });
  const end = await live(all);
  const measured = await read();
  for (const [name, expected] of Object.entries(LIVED)) assert.deepEqual(points(measured.get(name)), expected, name);

  const shown = Object.fromEntries([...measured].map(([name, metric]) => [name, `${kindOf(metric)} ${metric.descriptor.unit}`.trim()]));
  assert.deepEqual(shown, {
    "circuit_breaker.calls": "counter {call}",
    "circuit_breaker.probes": "counter {probe}",
    "circuit_breaker.refusals": "counter {call}",
    "circuit_breaker.fallbacks": "counter {fallback}",
    "circuit_breaker.callback_failures": "counter {failure}",
    "circuit_breaker.transitions": "counter {transition}",
    "circuit_breaker.store.operations": "counter {operation}",
    "circuit_breaker.store.operation.duration": "histogram s",
    "circuit_breaker.active_calls": "updown {call}",
    "circuit_breaker.event.timestamp": "gauge s",
    "circuit_breaker.state": "gauge",
    "circuit_breaker.held": "gauge",
    "circuit_breaker.window.calls": "gauge {call}",
    "circuit_breaker.window.failures": "gauge {failure}",
    "circuit_breaker.window.slow_calls": "gauge {call}",
    "circuit_breaker.probe.successes": "gauge {success}",
  });
  for (const [name, { descriptor }] of measured) assert.ok(descriptor.description.length > 10, name);

  await end();
  assert.deepEqual(points((await read()).get("circuit_breaker.active_calls")), { "": 0 });
  stop();
});

test("what time alone changes is seen when the SDK collects, though nothing was told", async (t) => {
  const { meter, read } = sdk(t);
  const { breaker, clock, open } = fixture();
  t.after(instrument(breaker, { meter }));
  await open();
  const state = async () => points((await read()).get("circuit_breaker.state"), "test.circuit");
  assert.deepEqual(await state(), { closed: 0, open: 1, half_open: 0 });
  clock.advance(1_000);
  assert.deepEqual(await state(), { closed: 0, open: 0, half_open: 1 });
  breaker.hold("open");
  const measured = await read();
  assert.deepEqual(points(measured.get("circuit_breaker.held"), "test.circuit"), { open: 1, closed: 0 });
  assert.deepEqual(points(measured.get("circuit_breaker.state"), "test.circuit"), { closed: 0, open: 1, half_open: 0 });
});

test("what the window holds is shown beside how many failures there were", async (t) => {
  const { meter, read } = sdk(t);
  const { breaker, clock, fail, succeed } = fixture({ slowMs: 100, slowRate: 1 });
  t.after(instrument(breaker, { meter }));
  await fail(1);
  await succeed(2);
  await breaker.run(() => clock.advance(500));
  const shown = async (name) => points((await read()).get(name), "test.circuit");
  assert.deepEqual(
    await Promise.all(["calls", "failures", "slow_calls"].map((name) => shown(`circuit_breaker.window.${name}`))),
    [{ "": 4 }, { "": 1 }, { "": 1 }],
  );
  clock.advance(60_000);
  assert.deepEqual(await shown("circuit_breaker.window.failures"), { "": 0 }, "forgotten by the window");
  assert.deepEqual(await shown("circuit_breaker.callback_failures"), { Error: 1 }, "never by the counter");
});

test("operations of the store arrive with how they went, and how long they took in seconds", async (t) => {
  const { meter, read } = sdk(t);
  const { clock, store, registry } = watched();
  t.after(instrument(registry, { meter }));
  const { get } = store;
  store.get = (key) => (clock.advance(30), get(key));
  await registry.get("a").run(() => "fine");
  registry.get("a").force("open");
  await registry.flush();
  store.down = true;
  await registry.get("b").run(() => "fine");
  const measured = await read();
  const operations = measured.get("circuit_breaker.store.operations");
  assert.equal(points(operations, "b")["get failure"], 1);
  const { "get success": gets, "set success": sets } = points(operations, "a");
  assert.ok(gets >= 1 && sets >= 1, `${gets} and ${sets}`);

  const { descriptor, dataPoints } = measured.get("circuit_breaker.store.operation.duration");
  assert.equal(descriptor.unit, "s");
  const took = dataPoints.find(({ attributes }) => attributes["circuit_breaker.store.operation"] === "get" && attributes["circuit_breaker.outcome"] === "success");
  assert.equal(took.value.count, gets);
  assert.ok(Math.abs(took.value.sum - gets * 0.03) < 1e-9, `${took.value.sum} s`);
  assert.deepEqual(took.value.buckets.boundaries, [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]);
  assert.equal(took.value.buckets.counts[3], gets, "between 10 and 50 ms");
  assert.deepEqual(points(measured.get("circuit_breaker.diagnostics"), "b"), { store_failed: 1 });
});

test("an error is known by its name, a response by its status, anything else is _OTHER", async (t) => {
  const { meter, read } = sdk(t);
  const guarded = wrapFetch(async (url) => new Response(null, { status: Number(new URL(url).pathname.slice(1)) }), { policy: { failures: 100 } });
  const breaker = new CircuitBreaker("other", { failures: 100 });
  t.after(instrument([guarded.registry, breaker], { meter }));
  for (const status of [503, 503, 429, 200]) await guarded(`https://a.example/${status}`);
  const strange = Object.assign(new Error(), { name: "user 4711 is not here" });
  for (const error of [new DOMException("", "TimeoutError"), "text", undefined, null, 7, strange, { name: { toString: () => "TypeError" } }]) {
    await outcomeOf(breaker.run(() => Promise.reject(error)));
  }
  await breaker.run(() => "no good", { classify: () => "failure" });
  const failures = (await read()).get("circuit_breaker.callback_failures");
  assert.deepEqual(points(failures, "https.a.example"), { 503: 2, 429: 1 });
  assert.deepEqual(points(failures, "other"), { TimeoutError: 1, _OTHER: 7 });
});

test("in shadow nothing is refused: what would have been is told apart", async (t) => {
  const { meter, read } = sdk(t);
  const { breaker, open, succeed } = fixture({ shadow: true });
  t.after(instrument(breaker, { meter }));
  await open();
  await succeed();
  const measured = await read();
  assert.deepEqual(points(measured.get("circuit_breaker.refusals"), "test.circuit"), { "open true": 1 });
  assert.deepEqual(points(measured.get("circuit_breaker.calls"), "test.circuit"), { failure: 4 });
});

test("calls that began before anybody listened never make fewer active than there are", async (t) => {
  const { meter, read } = sdk(t);
  const breaker = new CircuitBreaker("a", { failures: 5 });
  const permits = [await breaker.admit(), await breaker.admit()];
  t.after(instrument(breaker, { meter }));
  permits.push(await breaker.admit());
  for (const permit of permits) permit.settle("success");
  breaker.record("success");
  assert.deepEqual(points((await read()).get("circuit_breaker.active_calls"), "a"), { "": 0 });
});

test("a call that its caller gives up while the store is asked for a probe is not active for ever", async (t) => {
  const { meter, read } = sdk(t);
  const clock = fakeClock(1_000_000);
  const store = memoryStore({ clock });
  const slow = faultyStore(store);
  const policy = { openMs: 1_000 };
  const breaker = new CircuitBreaker("a", policy, { store: slow, clock, storeTimeoutMs: 5_000 });
  const other = new CircuitBreaker("a", policy, { store, clock });
  t.after(instrument(breaker, { meter }));
  await Promise.all([breaker, other].map((each) => each.run(() => "fine")));
  breaker.force("open");
  await breaker.flush();
  clock.advance(1_000);
  slow.delayMs = 20;
  const caller = new AbortController();
  const given = outcomeOf(breaker.run(() => "fine", { signal: caller.signal }));
  other.reset(); // closed meanwhile: it would be no probe any more
  caller.abort();
  assert.equal((await given).error.name, "AbortError");
  const measured = await read();
  assert.deepEqual(points(measured.get("circuit_breaker.active_calls"), "a"), { "": 0 });
  assert.deepEqual(points(measured.get("circuit_breaker.calls"), "a"), { success: 1 });
});

test("a prefix comes before every name, whatever dots are around it", async (t) => {
  for (const [prefix, name] of [["shop", "shop."], ["..shop.eu.", "shop.eu."], ["", ""], [undefined, ""], ["...", ""]]) {
    const { meter, read } = sdk(t);
    const breaker = new CircuitBreaker("a");
    t.after(instrument(breaker, { meter, prefix }));
    const names = [...(await read()).keys()];
    assert.ok(names.includes(`${name}circuit_breaker.state`), prefix);
    assert.ok(names.every((each) => each.startsWith(`${name}circuit_breaker.`)), prefix);
  }
});

test("what cannot be instrumented is refused at once, and nobody listens then", () => {
  const source = counted(new CircuitBreaker("a"));
  const refused = (work, field) => assert.throws(work, (error) => error instanceof InvalidCircuitError && error.field === field, field);
  refused(() => instrument(source, { prefx: "a" }), "prefx");
  for (const prefix of ["1a", "a b", "a\n", "ä", 5, null, "a".repeat(201)]) refused(() => instrument(source, { prefix }), "prefix");
  for (const nothing of [undefined, null, {}, [], [source, null], "circuit"]) refused(() => instrument(nothing), "source");
  refused(() => instrument(source, { view: "utopia" }), "view");
  assert.equal(source.listeners(), 0);
});

test("without a meter the global provider's is taken", async (t) => {
  const reader = new Reader();
  const provider = new MeterProvider({ readers: [reader] });
  t.after(() => (metrics.disable(), provider.shutdown()));
  metrics.setGlobalMeterProvider(provider);
  t.after(instrument(new CircuitBreaker("a")));
  assert.equal(points((await read(reader)).get("circuit_breaker.state"), "a").closed, 1);
});

test("without any SDK it measures into nothing, and calls go on", async (t) => {
  const { breaker, open, succeed, clock } = fixture();
  t.after(instrument(breaker));
  await open();
  clock.advance(1_000);
  await succeed();
  assert.equal(breaker.state, "closed");
});

for (const view of [undefined, utopia]) {
  test(`stopped, nobody listens any more and nothing is measured (${view ? "utopia" : "our own names"})`, async (t) => {
    const { meter, read } = sdk(t);
    const { breaker, open } = fixture();
    const source = counted(breaker);
    const stop = instrument(source, { meter, view });
    assert.ok(source.listeners() > 5);
    stop();
    assert.equal(source.listeners(), 0);
    await open();
    const measured = await read();
    assert.deepEqual([...measured.values()].flatMap(({ dataPoints }) => dataPoints), []);
    stop();
  });
}

test("what befalls a call is told on the span that is active, and no span is made", async (t) => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  t.after(() => (context.disable(), provider.shutdown()));
  const tracer = provider.getTracer("test");
  const inSpan = (name, work) =>
    tracer.startActiveSpan(name, async (span) => {
      await outcomeOf(Promise.resolve(work()));
      span.end();
    });

  const store = memoryStore();
  const [breaker, other] = [1, 2].map(() => new CircuitBreaker("http.payments", { failures: 2, window: { kind: "calls", last: 4 } }, { store }));
  await other.run(() => "fine");
  const stops = [breaker, other].map((each) => instrument(each, { meter: sdk(t).meter }));
  const fail = () => breaker.run(() => Promise.reject(new Error("down")));
  await inSpan("first", fail);
  await inSpan("second", fail);
  await inSpan("third", fail);
  await inSpan("apart", () => other.run(() => "never run"));
  await outcomeOf(fail()); // in no span
  for (const stop of stops) stop();
  await inSpan("unheard", fail);

  const told = Object.fromEntries(
    exporter.getFinishedSpans().map(({ name, events, attributes }) => {
      return [name, { events: events.map((event) => [event.name, event.attributes]), attributes }];
    }),
  );
  const circuit = { "circuit_breaker.name": "http.payments" };
  const opening = { ...circuit, "circuit_breaker.from_state": "closed", "circuit_breaker.to_state": "open" };
  const refusal = { "circuit_breaker.reason": "open" };
  const rejected = {
    events: [["circuit_breaker.rejected", { ...circuit, ...refusal, "circuit_breaker.shadow": false }]],
    attributes: { ...circuit, ...refusal, "circuit_breaker.outcome": "rejected" },
  };
  const decided = { "circuit_breaker.window.calls": 2, "circuit_breaker.window.failures": 2 };
  assert.deepEqual(told.first, { events: [], attributes: {} });
  // The store tells the other at once, within the same call.
  assert.deepEqual(new Map(told.second.events), new Map([
    ["circuit_breaker.transition", { ...opening, "circuit_breaker.reason": "failure_count", ...decided }],
    ["circuit_breaker.adopted", { ...opening, "circuit_breaker.reason": "adopted", ...decided }],
  ]));
  assert.deepEqual(told.third, rejected);
  assert.deepEqual(told.apart.attributes, rejected.attributes);
  assert.deepEqual(told.unheard, { events: [], attributes: {} });
  assert.equal(exporter.getFinishedSpans().length, 5, "the test's own");
});

test("OpenTelemetry's Prometheus exporter and tripcurve/prometheus show the same series with the same values", async (t) => {
  const exporter = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true, withoutTargetInfo: true });
  const provider = new MeterProvider({ readers: [exporter] });
  const server = createServer((request, response) => exporter.getMetricsRequestHandler(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => (server.close(), provider.shutdown()));
  const all = watched();
  const metrics = collectMetrics(all.registry, { prefix: "shop" });
  t.after(instrument(all.registry, { meter: provider.getMeter("test"), prefix: "shop" }));
  await live(all);
  all.registry.get("http.payments").hold("open");

  const series = (text) => {
    const lines = [...text.matchAll(/^([a-z]\w*)\{(.*)\} (\S+)$/gm)];
    return new Map(lines.map(([, name, labels, value]) => [`${name}{${labels.split(",").sort()}}`, value]));
  };
  const ours = series(metrics.text());
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/metrics`);
  // This exporter leaves out the unit that OpenTelemetry's collector and Prometheus itself add.
  const theirs = series((await answer.text()).replaceAll(/(duration|timestamp)(_sum|_count|_bucket)?\{/g, "$1_seconds$2{"));
  const zero = [...ours].filter(([name, value]) => value === "0" && !theirs.has(name)).map(([name]) => name);
  for (const name of zero) {
    assert.match(name, /_(calls|refusals)_total/, "counters begin at 0");
    ours.delete(name);
  }
  assert.ok(theirs.size > 30, `${theirs.size} series`);
  assert.deepEqual(Object.fromEntries([...ours].sort()), Object.fromEntries([...theirs].sort()));
  assert.deepEqual(answer.headers.get("content-type"), "text/plain");
});

test("the table of docs/observability.md is what there is", async (t) => {
  const { meter, read } = sdk(t);
  const all = watched();
  t.after(instrument(all.registry, { meter }));
  const shown = collectMetrics(all.registry);
  await live(all);
  all.store.down = true;
  await all.registry.get("http.other").run(() => "fine");
  const prometheus = new Set(shown.text().match(/(?<=# TYPE )\w+/g));
  const text = readFileSync(new URL("../../docs/observability.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| `(circuit_breaker[\w.]+)` \| (\w+) \| (?:`(\S+)` )?\|(.*)\| `(\w+)` \|$/gm)];
  const measured = await read();
  assert.deepEqual(rows.map(([, name]) => name).sort(), [...measured.keys()].sort());
  for (const [, name, kind, unit = "", attributes, promName] of rows) {
    const metric = measured.get(name);
    assert.deepEqual([kind, unit], [kindOf(metric), metric.descriptor.unit], name);
    assert.ok(prometheus.delete(promName), promName);
    const told = new Set(metric.dataPoints.flatMap(({ attributes }) => Object.keys(attributes)));
    told.delete("circuit_breaker.name");
    const documented = [...attributes.replace("no `.name`", "").matchAll(/`(error\.type|\.[a-z_.]+)`/g)].map(([, name]) => name.replace(/^\./, "circuit_breaker."));
    assert.deepEqual([...told].sort(), documented.sort(), name);
  }
  assert.equal(prometheus.size, 0);
});
