// tripcurve/prometheus by itself and in prom-client's registry: the same text. tests/observability has it scraped by a Prometheus.
import assert from "node:assert/strict";
import test from "node:test";
import { AggregatorRegistry, Counter, Registry } from "prom-client";
import { CircuitBreaker, CircuitRegistry, InvalidCircuitError } from "tripcurve";
import { collectMetrics } from "tripcurve/prometheus";
import { fakeClock } from "tripcurve/testing";
import { fixture, outcomeOf } from "./help.mjs";
import { counted, live, LIVED, watched } from "./telemetry.mjs";

const PAYMENTS = 'circuit_breaker_name="http.payments"';
const linesOf = (text, name) => text.split("\n").filter((line) => line.startsWith(`${name}{`));
/** The series of a text, without their order. */
const series = (text) => text.split("\n").filter((line) => line !== "").sort();

test("a circuit that opens, refuses, is probed and closes is shown with names, labels and values", async (t) => {
  const all = watched();
  const metrics = collectMetrics(all.registry);
  t.after(() => metrics.stop());
  const end = await live(all);
  const text = metrics.text();
  assert.equal(metrics.contentType, "text/plain; version=0.0.4; charset=utf-8");
  assert.ok(text.startsWith("# HELP circuit_breaker_calls_total Calls by outcome, refused ones too\n# TYPE circuit_breaker_calls_total counter\n"));
  assert.ok(text.endsWith("\n") && !text.includes("\n\n"));
  const transition = (from, to, reason) =>
    `circuit_breaker_transitions_total{${PAYMENTS},circuit_breaker_from_state="${from}",circuit_breaker_to_state="${to}",circuit_breaker_reason="${reason}"}`;
  assert.deepEqual(linesOf(text, "circuit_breaker_transitions_total"), [
    `${transition("closed", "open", "failure_rate")} 1`,
    `${transition("open", "half_open", "open_elapsed")} 2`,
    `${transition("half_open", "open", "probe_failed")} 1`,
    `${transition("half_open", "closed", "probes_succeeded")} 1`,
  ]);
  assert.deepEqual(linesOf(text, "circuit_breaker_active_calls"), [`circuit_breaker_active_calls{${PAYMENTS}} 1`]);
  for (const [name, expected] of Object.entries(LIVED)) {
    const lines = text.split("\n").filter((line) => new RegExp(`^${name.replaceAll(".", "_")}(_seconds)?(_total)?{`).test(line));
    const values = lines.map((line) => Number(line.slice(line.lastIndexOf(" ")))).filter((value) => value !== 0);
    assert.deepEqual(values.sort(), Object.values(expected).filter((value) => value !== 0).sort(), name);
  }
  await end();
  assert.deepEqual(linesOf(metrics.text(), "circuit_breaker_active_calls"), [`circuit_breaker_active_calls{${PAYMENTS}} 0`]);
});

test("through prom-client's registry come the same series, among those of others", async (t) => {
  const register = new Registry();
  register.setDefaultLabels({ region: "eu" });
  new Counter({ name: "orders_total", help: "Orders", registers: [register] }).inc(3);
  const all = watched();
  const own = collectMetrics(all.registry, { prefix: "shop" });
  const metrics = collectMetrics(all.registry, { register, prefix: "shop" });
  t.after(() => own.stop());
  await live(all);
  const text = await register.metrics();
  assert.match(text, /^orders_total{region="eu"} 3$/m);
  const others = new Set(["# HELP orders_total Orders", "# TYPE orders_total counter", 'orders_total{region="eu"} 3']);
  assert.deepEqual(series(text.replaceAll(',region="eu"', "")).filter((line) => !others.has(line)), series(own.text()));
  assert.deepEqual(series(own.text()), series(metrics.text()));

  metrics.stop();
  assert.deepEqual(series(await register.metrics()), [...others].sort());
});

test("prom-client's registry may be one of OpenMetrics, which names counters in its own way", async (t) => {
  const register = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
  const { breaker, open } = fixture();
  const metrics = collectMetrics(breaker, { register });
  t.after(() => metrics.stop());
  await open();
  for (let scrape = 0; scrape < 2; scrape++) {
    const text = await register.metrics();
    assert.match(text, /^# TYPE circuit_breaker_calls counter\ncircuit_breaker_calls_total{circuit_breaker_name="test.circuit",\w+="success"} 0$/m);
    assert.ok(text.endsWith("# EOF\n"));
  }
  metrics.stop();
  assert.equal(await register.metrics(), "\n# EOF\n");
});

test("the workers of a cluster add up in prom-client's aggregated registry, and of instants the last counts", async (t) => {
  const workers = await Promise.all(
    [0, 5_000].map(async (later) => {
      const register = new Registry();
      const all = watched({ start: 1_000_000_000 + later });
      const metrics = collectMetrics(all.registry, { register });
      t.after(() => metrics.stop());
      await live(all);
      return register.getMetricsAsJSON();
    }),
  );
  const text = await AggregatorRegistry.aggregate(JSON.parse(JSON.stringify(workers))).metrics();
  assert.ok(text.includes(`circuit_breaker_calls_total{${PAYMENTS},circuit_breaker_outcome="rejected"} 4\n`));
  assert.ok(text.includes(`circuit_breaker_event_timestamp_seconds{${PAYMENTS},circuit_breaker_event="transition"} 1000008\n`));
  assert.match(text, /circuit_breaker_store_operation_duration_seconds_bucket{[^}]*le="\+Inf"} \d/);
});

test("a metric that prom-client's registry has already is refused, and nothing of ours stays there", async () => {
  const register = new Registry();
  new Counter({ name: "circuit_breaker_transitions_total", help: "Another's", registers: [register] });
  const source = counted(new CircuitBreaker("a"));
  assert.throws(() => collectMetrics(source, { register }), /circuit_breaker_transitions_total has already been registered/);
  assert.deepEqual(register.getMetricsAsArray().map(({ name }) => name), ["circuit_breaker_transitions_total"]);
  assert.equal(source.listeners(), 0);
});

test("prom-client's reset begins the counters anew", async (t) => {
  const register = new Registry();
  const { breaker, open, fail } = fixture({ minimumCalls: 100 });
  const metrics = collectMetrics(breaker, { register });
  t.after(() => metrics.stop());
  await fail(3);
  register.resetMetrics();
  await fail(2);
  const name = "circuit_breaker_callback_failures_total";
  assert.deepEqual(linesOf(await register.metrics(), name), [`${name}{circuit_breaker_name="test.circuit",error_type="Error"} 2`]);
});

test("counters of a circuit begin at 0 before anything has happened, so that the first increase is one", () => {
  const breaker = new CircuitBreaker("a");
  const text = collectMetrics(breaker).text();
  const values = (name) => linesOf(text, name).map((line) => /^\w+{circuit_breaker_name="a",\w+="(\w+)".*} (\d+)$/.exec(line).slice(1).join(" "));
  assert.deepEqual(values("circuit_breaker_calls_total"), ["success 0", "failure 0", "ignored 0", "rejected 0"]);
  assert.deepEqual(values("circuit_breaker_refusals_total"), ["open 0", "held_open 0", "probes_busy 0"]);
});

test("what time alone changes is seen at the next scrape, through prom-client as well", async () => {
  const { breaker, clock, open } = fixture();
  const register = new Registry();
  const metrics = collectMetrics(breaker, { register });
  await open();
  const states = async () => [await register.metrics(), metrics.text()].map((text) => linesOf(text, "circuit_breaker_state").map((line) => line.slice(-1)).join(""));
  assert.deepEqual(await states(), ["010", "010"], "closed, open, half-open");
  clock.advance(1_000);
  assert.deepEqual(await states(), ["001", "001"]);
  metrics.stop();
});

test("how long the store took is a histogram that Prometheus can read: cumulative, in seconds, bounds included", async () => {
  const { clock, store, registry } = watched();
  const metrics = collectMetrics(registry);
  const { get } = store;
  for (const [index, ms] of [1, 30, 100, 101, 20_000].entries()) {
    store.get = (key) => (clock.advance(ms), get(key));
    await registry.get(`circuit-${index}`).run(() => "fine");
  }
  const gets = metrics.text().split("\n").filter((line) => line.includes('_operation="get"') && line.startsWith("circuit_breaker_store_operation_duration_seconds"));
  const shown = gets.flatMap((line) => {
    const found = /_seconds_(\w+){.*?circuit_breaker_outcome="success"(?:,le="(.*?)")?} (.*)$/.exec(line);
    return found ? [found.slice(1)] : [];
  });
  assert.deepEqual(shown.filter(([kind]) => kind === "bucket").map(([, le, count]) => `${le}: ${count}`), [
    "0.001: 1", "0.005: 1", "0.01: 1", "0.05: 2", "0.1: 3", "0.5: 4", "1: 4", "5: 4", "10: 4", "+Inf: 4",
  ]);
  assert.equal(shown.find(([kind]) => kind === "count")[2], "4");
  assert.ok(Math.abs(Number(shown.find(([kind]) => kind === "sum")[2]) - 0.232) < 1e-9);
  assert.ok(gets.some((line) => line.endsWith('circuit_breaker_outcome="failure",le="+Inf"} 1')), "too late is a failure");
});

test("several sources are shown together", async () => {
  const one = new CircuitBreaker("one");
  const registry = new CircuitRegistry();
  await registry.get("two").run(() => "fine");
  const states = linesOf(collectMetrics([one, registry]).text(), "circuit_breaker_state");
  const closed = (key) => `circuit_breaker_state{circuit_breaker_name="${key}",circuit_breaker_state="closed"} 1`;
  assert.deepEqual(states.filter((line) => line.endsWith(" 1")), [closed("one"), closed("two")]);
});

test("the series of a circuit that its registry has given up go with it, also when nobody scrapes", async () => {
  const clock = fakeClock();
  const registry = new CircuitRegistry({}, { clock, maxCircuits: 10 });
  let looks = 0;
  const metrics = collectMetrics({ on: (...args) => registry.on(...args), inspect: () => (looks++, registry.inspect()) });
  for (let index = 0; index < 5_000; index++) await registry.get(`circuit-${index}`).run(() => "fine");
  const circuits = (text) => new Set(text.match(/circuit_breaker_name="[^"]*"/g));
  assert.ok(looks > 10 && looks < 100, `looked ${looks} times for who is gone`);
  assert.equal(circuits(metrics.text()).size, 10);
});

test("a label is escaped as Prometheus wants it", async () => {
  const { breaker } = fixture();
  const code = 'a "quoted" \\ and\nbroken';
  const source = { on: (event, hear) => (event === "diagnostic" && hear({ key: "test.circuit", code }), () => {}), inspect: () => breaker.inspect() };
  assert.ok(collectMetrics(source).text().includes('circuit_breaker_code="a \\"quoted\\" \\\\ and\\nbroken"} 1\n'));
});

test("stopped, nobody listens any more", async () => {
  const { breaker, open } = fixture();
  const source = counted(breaker);
  const metrics = collectMetrics(source);
  assert.ok(source.listeners() > 5);
  metrics.stop();
  assert.equal(source.listeners(), 0);
  await open();
  assert.deepEqual(linesOf(metrics.text(), "circuit_breaker_callback_failures_total"), []);
});

test("what cannot be collected is refused at once", () => {
  const refused = (work, field) => assert.throws(work, (error) => error instanceof InvalidCircuitError && error.field === field, field);
  refused(() => collectMetrics(new CircuitBreaker("a"), { prefix: "1" }), "prefix");
  refused(() => collectMetrics(new CircuitBreaker("a"), { registry: {} }), "registry");
  refused(() => collectMetrics("a"), "source");
  refused(() => collectMetrics([]), "source");
});
