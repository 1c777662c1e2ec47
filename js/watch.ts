// Events in two more forms: as a stream to iterate over, and as a short memory of what happened, for whoever asks afterwards.

import { clipped, InvalidCircuitError, whole } from "./errors.js";
import { type BreakerEvents, EVENTS, type Transition } from "./events.js";
import { known } from "./policy.js";

/** What tells events: a CircuitBreaker, a CircuitRegistry, or the `registry` of a guarded fetch. */
export interface EventSource {
  on<E extends keyof BreakerEvents>(event: E, listener: (detail: BreakerEvents[E]) => void, options?: { signal?: AbortSignal }): () => void;
}

/** An event with its name. */
export type BreakerEvent = { [E in keyof BreakerEvents]: { readonly type: E } & BreakerEvents[E] }[keyof BreakerEvents];

export interface WatchOptions {
  /** Ends the stream. */
  signal?: AbortSignal;
  /** Which ones. Default: all. `admitted` and `outcome` cost every call a little; see docs/observability.md. */
  events?: readonly (keyof BreakerEvents)[];
  /** How many may wait to be taken, 1 to 100,000. Default 1,000. Then the oldest are dropped, which a diagnostic `events_dropped` tells. */
  limit?: number;
}

/**
 * Events as they come, from this call on: first `state`, what holds in every circuit.
 *
 *     for await (const event of watch(registry, { events: ["state", "transition"] })) console.log(event.type, event.key);
 *
 * Leaving the loop, or the signal, ends it. Throws InvalidCircuitError for options that cannot work.
 */
export function watch(source: EventSource, options: WatchOptions = {}): AsyncIterableIterator<BreakerEvent> {
  known(options, ["signal", "events", "limit"]);
  const { signal, events = EVENTS } = options;
  const limit = whole("limit", options.limit ?? 1_000, 1, 100_000);
  const waiting: BreakerEvent[] = [];
  const takers: ((result: IteratorResult<BreakerEvent>) => void)[] = [];
  let dropped = 0;
  let latest = 0;
  let over = false;

  const take = (event: BreakerEvent): void => {
    const taker = takers.shift();
    if (taker) return taker({ done: false, value: event });
    if (waiting.push(event) <= limit) return;
    const oldest = waiting.shift()!;
    if ("at" in oldest) latest = oldest.at;
    dropped++;
  };
  const next = (): BreakerEvent | undefined => {
    if (dropped === 0) return waiting.shift();
    const message = `${dropped} events were dropped: they were not taken fast enough`;
    dropped = 0;
    return { type: "diagnostic", key: "", code: "events_dropped", message, at: latest };
  };
  const end = (): void => {
    over = true;
    signal?.removeEventListener("abort", end);
    for (const stop of stops) stop();
    for (const taker of takers.splice(0)) taker({ done: true, value: undefined });
  };
  const unknown = events.find((event) => !EVENTS.includes(event));
  if (unknown !== undefined) throw new InvalidCircuitError("events", unknown, `must be some of ${EVENTS.join(", ")}`);
  const stops = events.map((type) => source.on(type, (detail) => take({ type, ...detail } as BreakerEvent)));
  if (signal?.aborted) end();
  else signal?.addEventListener("abort", end);

  return {
    async next() {
      const value = next();
      if (value) return { done: false, value };
      return over ? { done: true, value: undefined } : new Promise((resolve) => takers.push(resolve));
    },
    async return() {
      waiting.length = 0;
      end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** A failed call, as it is remembered: texts, so that nothing of the application is kept alive. */
export interface RememberedFailure {
  readonly key: string;
  readonly at: number;
  readonly durationMs: number | null;
  readonly probe: boolean;
  /** Name and message, or the HTTP status; at most 100 characters. */
  readonly error: string;
}

export interface HistoryOptions {
  /** Transitions kept of each circuit, 0 to 10,000. Default 50. */
  transitions?: number;
  /** Failures kept of each circuit, 0 to 10,000. Default 20. 0: calls are not listened to, and cost nothing. */
  failures?: number;
  /** At most one failure of a circuit is kept in so many milliseconds, so that an outage does not wash out how it began. Default 1,000. */
  everyMs?: number;
  /** Circuits, 1 to 10,000; the one that was quiet longest is forgotten first. Default 500. */
  maxCircuits?: number;
}

export interface History {
  /** Oldest first; of one circuit, or of all. */
  transitions(key?: string): Transition[];
  failures(key?: string): RememberedFailure[];
  /** Both, in order, a JSON object a line: `{"type":"transition","key":…}` and `{"type":"failure","key":…}`. */
  toNDJSON(): string;
  /** Listens no more. What is kept stays. */
  stop(): void;
}

interface Remembered {
  transitions: Transition[];
  failures: RememberedFailure[];
}

/** Remembers the last transitions and some of the failures of each circuit, in bounded memory. Throws InvalidCircuitError for options that cannot work. */
export function keepHistory(source: EventSource, options: HistoryOptions = {}): History {
  known(options, ["transitions", "failures", "everyMs", "maxCircuits"]);
  const most = {
    transitions: whole("transitions", options.transitions ?? 50, 0, 10_000),
    failures: whole("failures", options.failures ?? 20, 0, 10_000),
  };
  const everyMs = whole("everyMs", options.everyMs ?? 1_000, 0);
  const maxCircuits = whole("maxCircuits", options.maxCircuits ?? 500, 1, 10_000);
  const circuits = new Map<string, Remembered>();

  const of = (key: string): Remembered => {
    const found = circuits.get(key) ?? { transitions: [], failures: [] };
    circuits.delete(key);
    circuits.set(key, found);
    if (circuits.size > maxCircuits) circuits.delete(circuits.keys().next().value!);
    return found;
  };
  const keep = <T>(ring: T[], entry: T, limit: number): void => {
    if (ring.push(entry) > limit) ring.shift();
  };
  const stops = [
    source.on("transition", (moved) => keep(of(moved.key).transitions, moved, most.transitions)),
    most.failures > 0 &&
      source.on("outcome", ({ key, verdict, at, durationMs, probe, error }) => {
        if (verdict !== "failure") return;
        const { failures } = of(key);
        const last = failures.at(-1)?.at ?? -Infinity;
        if (at - last >= everyMs || at < last) keep(failures, { key, at, durationMs, probe, error: clipped(text(error)) }, most.failures);
      }),
  ];
  const all = <T extends { at: number }>(key: string | undefined, ring: (of: Remembered) => T[]): T[] =>
    [...circuits].flatMap(([of, found]) => (key === undefined || key === of ? ring(found) : [])).sort((a, b) => a.at - b.at);

  return {
    transitions: (key) => all(key, (of) => of.transitions),
    failures: (key) => all(key, (of) => of.failures),
    toNDJSON() {
      const lines = all(undefined, ({ transitions, failures }) => [
        ...transitions.map((moved) => ({ type: "transition", ...moved })),
        ...failures.map((failed) => ({ type: "failure", ...failed })),
      ]);
      return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    },
    stop() {
      for (const stop of stops) if (stop) stop();
    },
  };
}

function text(error: unknown): string {
  try {
    return globalThis.Response && error instanceof Response ? `HTTP status ${error.status}` : String(error);
  } catch {
    return "an error that has no text";
  }
}
