// Prometheus: the same metrics as tripcurve/otel, under the names its collector gives them, as text to be scraped or in prom-client's registry.

import {
  type Attributes, DURATION_BOUNDS, INSTRUMENTS, type Instrument, type InstrumentId, measure, NAME, OUTCOME, prefixOf, REASON, SHADOW,
  type Source, sourcesOf,
} from "./metrics.js";
import { known } from "./policy.js";

export type { CircuitSource, Source } from "./metrics.js";

/** The part of prom-client's `Registry` that is used. */
export interface PromRegistry {
  registerMetric(metric: PromMetric): void;
  removeSingleMetric(name: string): void;
}
/** What it keeps, and asks at every scrape. */
export interface PromMetric {
  get(): Promise<unknown>;
  reset(): void;
}

export interface MetricsOptions {
  /**
   * A registry of prom-client, such as its `register`, which then shows these metrics among its own. They can be in it once: give all
   * sources at once.
   */
  register?: PromRegistry;
  /** Comes before every name: `"shop"`, for `shop_circuit_breaker_calls_total`. Default none. */
  prefix?: string;
}

export interface CircuitMetrics {
  /** For the header `Content-Type` of what `text` gives. */
  readonly contentType: "text/plain; version=0.0.4; charset=utf-8";
  /** All metrics as they are now, in the text format of Prometheus. */
  text(): string;
  /** Listens no longer, and takes the metrics out of prom-client's registry. */
  stop(): void;
}

/**
 * Collects metrics of circuits from now on, for Prometheus to scrape; with `register` through prom-client, without it by itself:
 *
 *     const metrics = collectMetrics(guarded.registry);
 *     createServer((_, response) => response.setHeader("Content-Type", metrics.contentType).end(metrics.text()));
 *
 * Names and labels are those of tripcurve/otel with `_` for every dot, and `_seconds` and `_total` where Prometheus wants them. They are
 * experimental. A circuit has some 20 series, which go with it when its registry gives it up. Each call costs about a microsecond more.
 * Throws InvalidCircuitError.
 */
export function collectMetrics(source: Source, options: MetricsOptions = {}): CircuitMetrics {
  known(options, ["register", "prefix"]);
  const { register, prefix } = options;
  const sources = sourcesOf(source);
  const beginning = prefixOf(prefix);
  const families = Object.entries<Instrument>(INSTRUMENTS).map(([id, instrument]) => [id, new Family(instrument, beginning)] as const);
  const family = Object.fromEntries(families) as Record<InstrumentId, Family>;

  /** Circuits that are shown, and how many there may be before somebody looks which of them are gone. */
  const shown = new Set<string>();
  let room = 0;
  const show = (key: string): void => {
    shown.add(key);
    // From 0, so that the first increase is seen as one.
    for (const outcome of ["success", "failure", "ignored", "rejected"]) family.calls.take(0, { [NAME]: key, [OUTCOME]: outcome });
    for (const reason of ["open", "held_open", "probes_busy"]) family.refusals.take(0, { [NAME]: key, [REASON]: reason, [SHADOW]: false });
  };
  const look = (): void => {
    const here = new Set(sources.flatMap((one) => one.inspect()).map(({ key }) => key));
    const gone = new Set([...shown].filter((key) => !here.has(key)));
    for (const key of gone) shown.delete(key);
    for (const [, each] of families) each.forget(gone);
    for (const key of here) if (!shown.has(key)) show(key);
    room = 2 * here.size + 100;
  };
  const { stop, observe } = measure(sources, (id, value, attributes) => {
    const key = attributes[NAME] as string | undefined;
    if (key && !shown.has(key)) {
      if (shown.size >= room) look();
      show(key);
    }
    family[id].take(value, attributes);
  });
  const refresh = (): void => {
    look();
    observe((id, value, attributes) => family[id].take(value, attributes));
  };

  const registered: string[] = [];
  const end = (): void => {
    stop();
    for (const name of registered) register?.removeSingleMetric(name);
  };
  if (register) {
    // It asks for one metric after the other, for all of them in one turn.
    let fresh = false;
    const now = (): void => {
      if (fresh) return;
      refresh();
      fresh = true;
      queueMicrotask(() => (fresh = false));
    };
    try {
      for (const [, each] of families) {
        register.registerMetric(each.metric(now));
        registered.push(each.name);
      }
    } catch (error) {
      end();
      throw error;
    }
  }
  return {
    contentType: "text/plain; version=0.0.4; charset=utf-8",
    text() {
      refresh();
      return families.map(([, each]) => each.text()).join("");
    },
    stop: end,
  };
}

interface Series {
  readonly labels: Record<string, string>;
  value: number;
  /** Of a histogram: how many fell below each bound and above the one before, and above the last. `value` is their sum then. */
  readonly counts: number[];
}

interface Sample {
  metricName?: string;
  labels: Record<string, string>;
  value: number;
}

/** One metric and its series. */
class Family {
  readonly name: string;
  readonly #kind: Instrument["kind"];
  readonly #help: string;
  readonly #series = new Map<string, Series>();

  constructor({ kind, name, unit, description }: Instrument, prefix: string) {
    this.name = `${labelOf(prefix + name)}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`;
    this.#kind = kind;
    this.#help = description;
  }

  get #type(): "counter" | "histogram" | "gauge" {
    return this.#kind === "counter" || this.#kind === "histogram" ? this.#kind : "gauge";
  }

  take(value: number, attributes: Attributes): void {
    let id = "";
    for (const name in attributes) id += `${attributes[name]}\n`;
    let series = this.#series.get(id);
    if (!series) {
      const labels = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [labelOf(name), String(value)]));
      series = { labels, value: 0, counts: this.#kind === "histogram" ? new Array<number>(DURATION_BOUNDS.length + 1).fill(0) : [] };
      this.#series.set(id, series);
    }
    if (this.#type === "gauge") series.value = value;
    else series.value += value;
    if (this.#kind === "histogram") {
      const above = DURATION_BOUNDS.findIndex((bound) => value <= bound);
      series.counts[above < 0 ? DURATION_BOUNDS.length : above]!++;
    }
  }

  /** Drops the series of circuits that are gone. */
  forget(gone: ReadonlySet<string>): void {
    if (gone.size === 0) return;
    for (const [id, { labels }] of this.#series) if (gone.has(labels[NAME_LABEL]!)) this.#series.delete(id);
  }

  text(): string {
    const lines = this.#samples().map(({ metricName = this.name, labels, value }) => {
      const pairs = Object.entries(labels).map(([name, text]) => `${name}="${escaped(text)}"`);
      return `${metricName}{${pairs.join(",")}} ${value}\n`;
    });
    return `# HELP ${this.name} ${this.#help}\n# TYPE ${this.name} ${this.#type}\n${lines.join("")}`;
  }

  /** As prom-client keeps metrics. `now` brings the observed ones up to date. */
  metric(now: () => void): PromMetric {
    // A worker's go to the primary, which adds them up. In OpenMetrics the registry takes the end off the name of a counter, and puts it back.
    const aggregator = this.#kind === "gauge" ? "max" : "sum";
    const metric = {
      ...{ name: this.name, help: this.#help, type: this.#type, aggregator },
      get: async () => {
        now();
        const { name, help, type } = metric;
        return { name, help, type, aggregator, values: this.#samples() };
      },
      reset: () => this.#series.clear(),
    };
    return metric;
  }

  #samples(): Sample[] {
    if (this.#kind !== "histogram") return [...this.#series.values()].map(({ labels, value }) => ({ labels, value }));
    return [...this.#series.values()].flatMap(({ labels, value, counts }) => {
      let count = 0;
      const buckets = counts.map((more, index) => {
        const le = String(DURATION_BOUNDS[index] ?? "+Inf");
        return { metricName: `${this.name}_bucket`, labels: { ...labels, le }, value: (count += more) };
      });
      return [...buckets, { metricName: `${this.name}_sum`, labels, value }, { metricName: `${this.name}_count`, labels, value: count }];
    });
  }
}

const escaped = (text: string): string => text.replace(/[\\"\n]/g, (found) => (found === "\n" ? "\\n" : `\\${found}`));
const labelOf = (name: string): string => name.replace(/[^A-Za-z0-9_]/g, "_");
const NAME_LABEL = labelOf(NAME);
