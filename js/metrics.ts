// What is measured of circuits, under which names, and how events become measurements. tripcurve/otel and tripcurve/prometheus hand
// them on. Experimental: OpenTelemetry has no convention for circuit breakers; should it get one, these names follow it.

import { InvalidCircuitError } from "./errors.js";
import type { BreakerEvents, CircuitState } from "./events.js";
import { HELD, type Inspection, STATES } from "./inspection.js";
import type { EventSource } from "./watch.js";

/** What can be measured: a CircuitBreaker, a CircuitRegistry, or the `registry` of a guarded fetch. */
export interface CircuitSource extends EventSource {
  inspect(): Inspection | Inspection[];
  get?(key: string): { readonly state: CircuitState };
}

/** One, or several that have no circuit in common. */
export type Source = CircuitSource | readonly CircuitSource[];

/** `observed` and `observed_sum` (of all processes) are read whenever somebody collects; the others are told as it happens. */
export interface Instrument {
  readonly kind: "counter" | "gauge" | "histogram" | "observed" | "observed_sum";
  readonly name: string;
  readonly unit: string;
  readonly description: string;
}

export const INSTRUMENTS = {
  calls: { kind: "counter", name: "circuit_breaker.calls", unit: "{call}", description: "Calls by outcome, refused ones too" },
  probes: { kind: "counter", name: "circuit_breaker.probes", unit: "{probe}", description: "Probes by outcome, each of them a call too" },
  refusals: { kind: "counter", name: "circuit_breaker.refusals", unit: "{call}", description: "Refused calls by reason; shadow: those that would be" },
  fallbacks: { kind: "counter", name: "circuit_breaker.fallbacks", unit: "{fallback}", description: "Fallbacks that ended, by what they stood in for" },
  callbackFailures: { kind: "counter", name: "circuit_breaker.callback_failures", unit: "{failure}", description: "Calls judged a failure, by the error or HTTP status" },
  transitions: { kind: "counter", name: "circuit_breaker.transitions", unit: "{transition}", description: "Moves of the circuit by reason" },
  diagnostics: { kind: "counter", name: "circuit_breaker.diagnostics", unit: "{diagnostic}", description: "What went wrong beside the calls, by code" },
  storeOperations: { kind: "counter", name: "circuit_breaker.store.operations", unit: "{operation}", description: "Operations of the store by outcome" },
  storeDuration: { kind: "histogram", name: "circuit_breaker.store.operation.duration", unit: "s", description: "How long operations of the store took" },
  activeCalls: { kind: "observed_sum", name: "circuit_breaker.active_calls", unit: "{call}", description: "Calls that were let in and have not ended" },
  eventTimestamp: { kind: "gauge", name: "circuit_breaker.event.timestamp", unit: "s", description: "When such an event last happened, since the epoch" },
  state: { kind: "observed", name: "circuit_breaker.state", unit: "", description: "1 for the state the circuit is in, 0 for the others" },
  held: { kind: "observed", name: "circuit_breaker.held", unit: "", description: "1 while an operator holds the circuit so" },
  windowCalls: { kind: "observed", name: "circuit_breaker.window.calls", unit: "{call}", description: "Calls in the window" },
  windowFailures: { kind: "observed", name: "circuit_breaker.window.failures", unit: "{failure}", description: "Failures in the window" },
  windowSlow: { kind: "observed", name: "circuit_breaker.window.slow_calls", unit: "{call}", description: "Slow calls in the window" },
  probeSuccesses: { kind: "observed", name: "circuit_breaker.probe.successes", unit: "{success}", description: "Probes that succeeded in this half-open period" },
} as const satisfies Record<string, Instrument>;

export type InstrumentId = keyof typeof INSTRUMENTS;

/** In seconds, as OpenTelemetry advises for the clients of databases. */
export const DURATION_BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** Names of attributes; each has few values. */
export const NAME = "circuit_breaker.name";
export const STATE = "circuit_breaker.state";
export const FROM = "circuit_breaker.from_state";
export const TO = "circuit_breaker.to_state";
export const OUTCOME = "circuit_breaker.outcome";
export const REASON = "circuit_breaker.reason";
export const EVENT = "circuit_breaker.event";
export const SHADOW = "circuit_breaker.shadow";
const AS = "circuit_breaker.as";
const CODE = "circuit_breaker.code";
const OPERATION = "circuit_breaker.store.operation";
const ERROR = "error.type";

export type Attributes = Record<string, string | boolean>;
/** Takes one measurement: how much more, or of a gauge or histogram what it is. */
export type Take = (id: InstrumentId, value: number, attributes: Attributes) => void;

export function sourcesOf(source: Source): readonly CircuitSource[] {
  const sources = [source].flat() as CircuitSource[];
  if (sources.length > 0 && sources.every((one) => typeof one?.on === "function" && typeof one.inspect === "function")) return sources;
  throw new InvalidCircuitError("source", source, "must be a CircuitBreaker, a CircuitRegistry or an array of them");
}

/** A prefix without dots around it, and one after it: `"..shop."` gives `"shop."`, nothing gives nothing. */
export function prefixOf(prefix = ""): string {
  const trimmed = typeof prefix === "string" ? prefix.replace(/^\.+|\.+$/g, "") : prefix;
  if (trimmed === "") return "";
  if (typeof trimmed === "string" && /^[A-Za-z][\w./-]{0,199}$/.test(trimmed)) return `${trimmed}.`;
  throw new InvalidCircuitError("prefix", prefix, "must begin with a letter and have at most 200 letters, digits and any of _ . - /");
}

type Hears = { [E in keyof BreakerEvents]?: (detail: BreakerEvents[E]) => void };

/** Listens to all sources, each with listeners of its own, until the returned function is called. */
export function listenTo(source: Source, hears: (one: CircuitSource) => Hears): () => void {
  const stops = sourcesOf(source).flatMap((one) => {
    return Object.entries(hears(one)).map(([event, hear]) => one.on(event as keyof BreakerEvents, hear as (detail: unknown) => void));
  });
  return () => {
    for (const stop of stops) stop();
  };
}

/** Tells `take` what happens from now on, until `stop`, and what holds whenever `observe` is called. */
export function measure(source: Source, take: Take): { stop(): void; observe(take: Take): void } {
  const active = new Map<string, number>();
  const seen = (key: string, event: string, at: number): void => take("eventTimestamp", at / 1000, { [NAME]: key, [EVENT]: event });
  const stop = listenTo(source, () => ({
    admitted: ({ key }) => void active.set(key, (active.get(key) ?? 0) + 1),
    outcome({ key, verdict, probe, error, at }) {
      const attributes = { [NAME]: key, [OUTCOME]: verdict };
      take("calls", 1, attributes);
      if (verdict === "failure") take("callbackFailures", 1, { [NAME]: key, [ERROR]: typeOf(error) });
      if (probe) {
        take("probes", 1, attributes);
        seen(key, "probe", at);
      }
      const left = (active.get(key) ?? 0) - 1; // below 0: it began before anybody listened
      if (left > 0) active.set(key, left);
      else active.delete(key);
    },
    rejected({ key, reason, shadow, at }) {
      take("refusals", 1, { [NAME]: key, [REASON]: reason, [SHADOW]: shadow });
      if (!shadow) take("calls", 1, { [NAME]: key, [OUTCOME]: "rejected" });
      seen(key, "rejected", at);
    },
    fallback({ key, after, ...ended }) {
      take("fallbacks", 1, { [NAME]: key, [REASON]: after, [OUTCOME]: "error" in ended ? "failure" : "success" });
    },
    transition({ key, from, to, reason, at }) {
      take("transitions", 1, { [NAME]: key, [FROM]: from, [TO]: to, [REASON]: reason });
      seen(key, "transition", at);
    },
    diagnostic: ({ key, code }) => take("diagnostics", 1, { [NAME]: key, [CODE]: code }),
    store_operation({ key, operation, durationMs, ok }) {
      const done = { [OPERATION]: operation, [OUTCOME]: ok ? "success" : "failure" };
      take("storeOperations", 1, { [NAME]: key, ...done });
      take("storeDuration", durationMs / 1000, done); // of the store, whichever circuit it is for: a histogram a circuit would be many
    },
  }));
  const observe = (take: Take): void => {
    for (const { key, state, held, counts, probeSuccesses } of sourcesOf(source).flatMap((one) => one.inspect())) {
      const circuit = { [NAME]: key };
      for (const each of STATES) take("state", Number(each === state), { ...circuit, [STATE]: each });
      for (const each of HELD) take("held", Number(each === held), { ...circuit, [AS]: each });
      take("activeCalls", active.get(key) ?? 0, circuit);
      take("windowCalls", counts.calls, circuit);
      take("windowFailures", counts.failures, circuit);
      take("windowSlow", counts.slow, circuit);
      take("probeSuccesses", probeSuccesses, circuit);
    }
  };
  return { stop, observe };
}

/** The name of what was thrown, or a response's status. `_OTHER` is OpenTelemetry's word for the rest. */
export function typeOf(error: unknown): string {
  if (typeof error === "string") return /^HTTP status (\d{3})$/.exec(error)?.[1] ?? "_OTHER";
  const name = (error as { name?: unknown } | null | undefined)?.name;
  return typeof name === "string" && /^[A-Za-z][\w.$]{0,63}$/.test(name) ? name : "_OTHER";
}
