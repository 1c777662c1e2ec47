// Compiled, never run: what a strict project of a user's may write, and two mistakes its compiler must see.
import {
  CircuitBreaker, CircuitRegistry, isCircuitOpenError, memoryStore, presets, StoreError, wrapFetch,
  type BreakerEvents, type CircuitPolicy, type CircuitStore, type Classify, type GuardedFetch, type Inspection,
} from "tripcurve";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { explain, fetchOptionsSchema, policyFromEnv, policySchema, snapshotSchema } from "tripcurve/core";
import { localStorageStore } from "tripcurve/stores/local-storage";
import { kvStore } from "tripcurve/stores/kv";
import { fakeClock } from "tripcurve/testing";
import { type Meter, metrics } from "@opentelemetry/api";
import { type OpenMetricsContentType, Registry } from "prom-client";
import { instrument, utopia } from "tripcurve/otel";
import { collectMetrics, type CircuitMetrics } from "tripcurve/prometheus";
const f: typeof fetch = wrapFetch(fetch, { store: localStorageStore(), policy: presets.page, timeoutMs: 5 });
const g: GuardedFetch = wrapFetch();
const r: CircuitRegistry = g.registry;
const b: CircuitBreaker = r.get("a");
const n: Promise<number> = b.run(() => 5);
const s: Promise<string> = b.run((signal) => fetch("x", signal ? { signal } : {}).then((r) => r.text()), { fallback: () => "x", timeoutMs: 3 });
const policy: CircuitPolicy = { window: { kind: "calls", last: 5 }, failureRate: [1, 3] };
const off: () => void = b.on("transition", ({ to, reason, counts }) => { if (to === "open") console.log(reason, counts.failures); }, { signal: new AbortController().signal });
r.on("rejected", (d: BreakerEvents["rejected"]) => d.retryAt);
const i: Inspection = b.inspect();
const c: Classify = (result) => (result.ok ? undefined : "ignored");
const store: CircuitStore = memoryStore({ clock: fakeClock(5) });
export class Mine extends CircuitBreaker { constructor() { super("a", policy, { classify: c, store }); } }
export async function main(error: unknown, env: { KV: { get(k: string): Promise<string | null>; put(k: string, v: string, o?: { expirationTtl?: number }): Promise<void>; delete(k: string): Promise<void> } }) {
  if (isCircuitOpenError(error)) { const ms: number | null = error.retryAfterMs; console.log(ms, error.cause, error.name, error.key.length); }
  const a = await b.admit();
  if (a.kind === "rejected") console.log(a.reason); else a.settle({ verdict: "failure", retryAt: 5 });
  kvStore(env.KV);
  new CircuitBreaker("c", {}, { store, share: "tally", adopt: "never", onStoreError: "throw", storeTimeoutMs: 50, refreshMs: 5_000 });
  if (error instanceof StoreError) { const operation: "get" | "set" | "claim" = error.operation; console.log(operation, error.key, error.callError); }
  // @ts-expect-error unknown way of sharing
  new CircuitBreaker("d", {}, { store, share: "all" });
  { using x = new CircuitBreaker("b"); x.reset(); }
  { await using x = new Mine(); x.reset(); }
  // @ts-expect-error misspelt
  new CircuitBreaker("a", { failureRte: 1 });
  // @ts-expect-error unknown event
  b.on("open", () => {});
  const policies: StandardSchemaV1<CircuitPolicy> = policySchema;
  const texts: StandardSchemaV1<string> = snapshotSchema;
  const options: StandardSchemaV1.InferOutput<typeof fetchOptionsSchema> = { timeoutMs: 5 };
  const told: readonly string[] = explain(policyFromEnv("PAY", { PAY_OPEN_MS: "5" })).opens;
  const meter: Meter = metrics.getMeter("mine");
  const stop: () => void = instrument([r, b], { meter, prefix: "shop", view: utopia });
  const shown: CircuitMetrics = collectMetrics(g.registry, { register: new Registry() });
  collectMetrics(b, { register: new Registry<OpenMetricsContentType>() });
  // @ts-expect-error no source of events
  instrument({});
  stop();
  void [shown.text(), shown.contentType];
  void [f, n, s, off, i, policies, texts, options, told];
}
