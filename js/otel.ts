// OpenTelemetry: what circuits do, as metrics and as events on the spans of the calls. Needs nothing of it but its API.

import { type Attributes, type BatchObservableResult, type Meter, metrics, type Observable, trace } from "@opentelemetry/api";
import { InvalidCircuitError } from "./errors.js";
import {
  DURATION_BOUNDS, FROM, INSTRUMENTS, type Instrument, type InstrumentId, listenTo, measure, NAME, OUTCOME, prefixOf, REASON,
  SHADOW, type Source, sourcesOf, TO,
} from "./metrics.js";
import { known } from "./policy.js";

export { utopia } from "./otel-utopia.js";
export type { CircuitSource, Source } from "./metrics.js";

/** Which instruments there are: makes them, records, and gives back how to stop. `prefix` is empty or ends in a dot. */
export type MetricView = (source: Source, meter: Meter, prefix: string) => () => void;

export interface InstrumentOptions {
  /** Default: the global provider's meter `tripcurve`, so register your provider before. */
  meter?: Meter;
  /** Comes before every instrument's name, with a dot between: `"shop"`, for `shop.circuit_breaker.calls`. Default none. */
  prefix?: string;
  /** Default: the instruments of docs/observability.md. `utopia`: those of utopia's breaker. */
  view?: MetricView;
}

/**
 * Records metrics of circuits, and what befalls a call as events on the span that is active then (`circuit_breaker.transition`,
 * `circuit_breaker.adopted`, `circuit_breaker.rejected`). It makes no spans. Until the returned function is called.
 *
 *     const stop = instrument(guarded.registry);
 *
 * State and counts are read when the SDK collects, so what time alone changes is seen as well. The names are experimental. A circuit has
 * some 20 series, at most 4 of them for its calls and 12 for its transitions; of an instrument the SDK keeps 2,000, unless told otherwise.
 * Each call costs a few microseconds more, most of them in the SDK. Throws InvalidCircuitError.
 */
export function instrument(source: Source, options: InstrumentOptions = {}): () => void {
  known(options, ["meter", "prefix", "view"]);
  const { meter = metrics.getMeter("tripcurve"), prefix, view = tripcurve } = options;
  const sources = sourcesOf(source);
  if (typeof view !== "function") throw new InvalidCircuitError("view", view, "must be a function");
  const stopMetrics = view(sources, meter, prefixOf(prefix));
  const stopEvents = tellSpans(sources);
  return () => {
    stopMetrics();
    stopEvents();
  };
}

const tripcurve: MetricView = (source, meter, prefix) => {
  const told = {} as Record<InstrumentId, (value: number, attributes: Attributes) => void>;
  const observed = {} as Record<InstrumentId, Observable>;
  for (const [key, { kind, name, unit, description }] of Object.entries<Instrument>(INSTRUMENTS)) {
    const id = key as InstrumentId;
    const [full, options] = [prefix + name, { unit, description }] as const;
    if (kind === "observed") {
      observed[id] = meter.createObservableGauge(full, options);
    } else if (kind === "observed_sum") {
      observed[id] = meter.createObservableUpDownCounter(full, options);
    } else if (kind === "counter") {
      const counter = meter.createCounter(full, options);
      told[id] = (value, attributes) => counter.add(value, attributes);
    } else {
      const advice = { explicitBucketBoundaries: DURATION_BOUNDS };
      const recorder = kind === "gauge" ? meter.createGauge(full, options) : meter.createHistogram(full, { ...options, advice });
      told[id] = (value, attributes) => recorder.record(value, attributes);
    }
  }
  const { stop, observe } = measure(source, (id, value, attributes) => told[id](value, attributes));
  const collect = (result: BatchObservableResult): void => {
    observe((id, value, attributes) => result.observe(observed[id], value, attributes));
  };
  const observables = Object.values(observed);
  meter.addBatchObservableCallback(collect, observables);
  return () => {
    stop();
    meter.removeBatchObservableCallback(collect, observables);
  };
};

const tellSpans = (source: Source): (() => void) =>
  listenTo(source, () => ({
    transition({ key, from, to, reason, counts }) {
      trace.getActiveSpan()?.addEvent(`circuit_breaker.${reason === "adopted" ? "adopted" : "transition"}`, {
        ...{ [NAME]: key, [FROM]: from, [TO]: to, [REASON]: reason },
        ...{ [INSTRUMENTS.windowCalls.name]: counts.calls, [INSTRUMENTS.windowFailures.name]: counts.failures },
      });
    },
    rejected({ key, reason, shadow }) {
      const span = trace.getActiveSpan();
      span?.addEvent("circuit_breaker.rejected", { [NAME]: key, [REASON]: reason, [SHADOW]: shadow });
      // What traces are searched by.
      if (!shadow) span?.setAttributes({ [NAME]: key, [OUTCOME]: "rejected", [REASON]: reason });
    },
  }));
