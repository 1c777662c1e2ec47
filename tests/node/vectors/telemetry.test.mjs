// What utopia's breaker measures, as `instrument` with the view of its names shows it to OpenTelemetry's SDK.
import assert from "node:assert/strict";
import test from "node:test";
import { AggregationTemporality, DataPointType, MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { CircuitBreaker, CircuitRegistry } from "tripcurve";
import { instrument, utopia } from "tripcurve/otel";
import { fakeClock } from "tripcurve/testing";
import { deferred, outcomeOf } from "../help.mjs";
import { live, watched } from "../telemetry.mjs";
import { options } from "./systems/utopia.mjs";
import { rows } from "./trace.mjs";

/** Collects when asked, and each time what has come since. */
class Reader extends MetricReader {
  constructor() {
    super({ aggregationTemporalitySelector: () => AggregationTemporality.DELTA });
  }
  onForceFlush() {}
  onShutdown() {}
}

function sdk(t, source, prefix) {
  const reader = new Reader();
  const provider = new MeterProvider({ readers: [reader] });
  const stop = instrument(source, { meter: provider.getMeter("test"), prefix, view: utopia });
  t.after(() => (stop(), provider.shutdown()));
  return async () => (await reader.collect()).resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
}

const kindOf = ({ dataPointType, isMonotonic }) => (dataPointType === DataPointType.GAUGE ? "gauge" : isMonotonic ? "counter" : "updown");

for (const { prefix, instruments } of rows("utopia", "metrics")) {
  test(`the instruments of utopia with the prefix "${prefix}"`, async (t) => {
    const all = watched();
    const read = sdk(t, all.registry, prefix);
    await live(all);
    const shown = Object.fromEntries((await read()).map((metric) => [metric.descriptor.name, [kindOf(metric), metric.descriptor.unit || null]]));
    assert.deepEqual(shown, instruments);
  });
}

/** The calls of a trace: each has a fallback, as there. */
class Calls {
  #running = new Map();

  constructor({ policy, t0 }) {
    this.clock = fakeClock(t0);
    const { probeLimit: _, ...others } = options(policy);
    this.breaker = new CircuitBreaker("k", { ...others, probeLimit: policy.permitted }, { clock: this.clock });
  }

  async step({ t, op, c, out }) {
    this.clock.set(t);
    if (op === "begin") {
      const call = deferred();
      const answer = this.breaker.run(() => call.promise, { fallback: () => "instead", fallbackOn: "failure" });
      this.#running.set(c, { call, answer });
      await Promise.race([answer, new Promise(setImmediate)]); // a refused one ends at once
    } else if (op === "end") {
      const { call, answer } = this.#running.get(c);
      if (out === "success") call.resolve("fine");
      else call.reject(new TypeError("down"));
      await answer;
    } else if (op === "trip") {
      this.breaker.force("open");
    } else if (op === "get") {
      // Reading moves an open circuit that is due there; here only a call does, and one that is ignored is none.
      await this.breaker.run(() => "fine", { classify: () => "ignored" });
    } else {
      assert.equal(op, "fc"); // reading the failures, of which nothing is told
    }
  }
}

const sorted = (measured) => measured.map((one) => JSON.stringify(one)).sort();
const withSortedKeys = (attributes) => Object.fromEntries(Object.entries(attributes).sort());

/** What was told in a step, as far as somebody who collects after it can see: sums that are not zero, and gauges. */
function summed(told) {
  const sums = new Map();
  for (const [kind, name, value, attributes] of told) {
    const place = JSON.stringify([kind, name, withSortedKeys(attributes)]);
    sums.set(place, kind === "gauge" ? value : (sums.get(place) ?? 0) + value);
  }
  return [...sums].flatMap(([place, value]) => {
    const [kind, name, attributes] = JSON.parse(place);
    return kind !== "gauge" && value === 0 ? [] : [[kind, name, value, attributes]];
  });
}

for (const trace of rows("utopia", "telemetry")) {
  test(`what utopia tells in ${trace.id}: ${trace.name}`, async (t) => {
    const calls = new Calls(trace);
    const read = sdk(t, calls.breaker, trace.policy.prefix);
    for (const [index, step] of trace.steps.entries()) {
      await calls.step(step);
      const expected = summed(step.tel ?? []);
      const told = (await read()).flatMap((metric) => {
        return metric.dataPoints.map(({ attributes, value }) => {
          const type = attributes["exception.type"];
          if (type !== undefined) assert.equal(type, "TypeError");
          return [kindOf(metric), metric.descriptor.name, value, withSortedKeys(type === undefined ? attributes : { ...attributes, "exception.type": "<type>" })];
        });
      });
      // Ours are there whenever somebody collects, theirs at the end of a call.
      const observed = new Set(["state", "failures", "successes"].map((name) => `${trace.policy.prefix ? `${trace.policy.prefix}.` : ""}breaker.${name}`));
      const untold = (one) => !observed.has(one[1]) || expected.some(([, name]) => name === one[1]);
      assert.deepEqual(sorted(summed(told).filter(untold)), sorted(expected), `step ${index}: ${JSON.stringify({ ...step, tel: undefined })}`);
    }
  });
}

test("a fallback that throws, and a failure without one, have words of their own there", async (t) => {
  const registry = new CircuitRegistry({ failures: 3, window: { kind: "calls", last: 10 } });
  const read = sdk(t, registry);
  const run = (options) => outcomeOf(registry.get("k").run(() => Promise.reject(new Error("down")), options));
  const throwing = { fallback: () => Promise.reject(new Error("and the fallback")), fallbackOn: "failure" };
  await run();
  await run(throwing);
  await run({ fallback: () => "instead", fallbackOn: "failure" });
  await run(throwing);
  await run();
  const calls = (await read()).find(({ descriptor }) => descriptor.name === "breaker.calls");
  const outcomes = Object.fromEntries(calls.dataPoints.map(({ attributes, value }) => [attributes["circuit_breaker.outcome"], value]));
  assert.deepEqual(outcomes, { exception: 1, fallback_exception: 1, fallback: 1, short_circuit_exception: 1, short_circuit: 1 });
});
