// The instruments of utopia's circuit breaker, for dashboards that show its circuits and these side by side.

import type { BatchObservableResult } from "@opentelemetry/api";
import { EVENT, FROM, listenTo, NAME, OUTCOME, REASON, sourcesOf, STATE, TO, typeOf } from "./metrics.js";
import type { Inspection } from "./inspection.js";
import type { MetricView } from "./otel.js";

const VALUES = { closed: 0, open: 1, half_open: 2 };
const INITIAL = "circuit_breaker.initial_state";
const EVENT_NAME = "circuit_breaker.event_name";
const ERROR = "exception.type";

/**
 * The names, units, attributes and words of utopia's telemetry, such as `breaker.calls`: for `instrument(source, { view: utopia })`. What
 * differs: its gauges of state, failures and successes are read when the SDK collects; a refused call is never active; outcomes judged
 * `ignored`, which it does not know, are no calls; and of two calls of one circuit whose fallbacks overlap, what is told may be swapped.
 */
export const utopia: MetricView = (source, meter, prefix) => {
  const counter = (name: string, unit: string) => meter.createCounter(`${prefix}breaker.${name}`, { unit });
  const observed = (name: string, unit?: string) => meter.createObservableGauge(`${prefix}breaker.${name}`, unit === undefined ? {} : { unit });
  const calls = counter("calls", "{call}");
  const callbackFailures = counter("callback_failures", "{failure}");
  const fallbacks = counter("fallbacks", "{fallback}");
  const transitions = counter("transitions", "{transition}");
  const active = meter.createUpDownCounter(`${prefix}breaker.active_calls`, { unit: "{call}" });
  const timestamp = meter.createGauge(`${prefix}breaker.event.timestamp`, { unit: "s" });
  const [state, failures, successes] = [observed("state"), observed("failures", "{failure}"), observed("successes", "{success}")] as const;

  const stop = listenTo(source, (one) => {
    const stateOf = (key: string): string => one.get?.(key).state ?? (one.inspect() as Inspection).state;
    /** How calls that a fallback answers will be told, when it has. */
    const waiting = new Map<string, Ended[]>();
    const ended = (key: string, { initial, outcome, thrown }: Ended, at: number): void => {
      calls.add(1, { [NAME]: key, [INITIAL]: initial, [STATE]: stateOf(key), [OUTCOME]: outcome, ...thrown });
      if (initial !== "half_open") return;
      timestamp.record(at / 1000, { [NAME]: key, [EVENT]: "probe", [EVENT_NAME]: `probe: ${outcome}`, [OUTCOME]: outcome });
    };
    const answered = (key: string, after: "refusal" | "failure", reason: string, call: Ended): void => {
      fallbacks.add(1, { [NAME]: key, [REASON]: reason, [STATE]: stateOf(key) });
      const place = `${after} ${key}`;
      waiting.set(place, [...(waiting.get(place) ?? []), call]);
    };
    return {
      admitted: ({ key, state }) => active.add(1, { [NAME]: key, [STATE]: state }),
      outcome({ key, verdict, probe, fallback, error, at }) {
        const initial = probe ? "half_open" : "closed";
        active.add(-1, { [NAME]: key, [STATE]: initial });
        if (verdict === "ignored") return;
        if (verdict === "success") return ended(key, { initial, outcome: "success" }, at);
        const thrown = { [ERROR]: typeOf(error) };
        callbackFailures.add(1, { [NAME]: key, [STATE]: initial, ...thrown });
        if (fallback) answered(key, "failure", "failure", { initial, outcome: "fallback", thrown });
        else ended(key, { initial, outcome: "exception", thrown }, at);
      },
      rejected({ key, reason, shadow, fallback, at }) {
        if (shadow) return;
        const busy = reason === "probes_busy";
        const call = { initial: busy ? "half_open" : "open", outcome: "short_circuit" };
        if (fallback) answered(key, "refusal", busy ? "half_open_saturated" : "open", call);
        else ended(key, call, at);
      },
      fallback({ key, after, at, ...answer }) {
        const place = `${after} ${key}`;
        const [call, ...rest] = waiting.get(place) ?? [];
        if (rest.length > 0) waiting.set(place, rest);
        else waiting.delete(place);
        if (call) ended(key, "error" in answer ? { ...call, outcome: `${call.outcome}_exception` } : call, at);
      },
      transition({ key, from, to, at }) {
        const move = { [FROM]: from, [TO]: to };
        transitions.add(1, { [NAME]: key, ...move });
        timestamp.record(at / 1000, { [NAME]: key, [EVENT]: "transition", [EVENT_NAME]: `${from} -> ${to}`, ...move });
      },
    };
  });

  const collect = (result: BatchObservableResult): void => {
    for (const now of sourcesOf(source).flatMap((one) => one.inspect())) {
      const circuit = { [NAME]: now.key };
      result.observe(state, VALUES[now.state], circuit);
      result.observe(failures, failuresOf(now), circuit);
      result.observe(successes, now.probeSuccesses, circuit);
    }
  };
  const gauges = [state, failures, successes];
  meter.addBatchObservableCallback(collect, gauges);
  return () => {
    stop();
    meter.removeBatchObservableCallback(collect, gauges);
  };
};

/** How a call ended, but for its fallback. */
interface Ended {
  initial: string;
  outcome: string;
  thrown?: Record<string, string>;
}

/** Theirs keeps the window while it is open, and forgets it when it is half-open. */
function failuresOf({ state, counts, why }: Inspection): number {
  if (state === "open") return why === null || why.reason.startsWith("probe_") ? 0 : why.counts.failures;
  return state === "closed" ? counts.failures : 0;
}
