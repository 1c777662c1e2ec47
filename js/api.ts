// What users can import, one line each. The entries add where the module comes from.

export { CircuitBreaker, type Permit, type Refusal, type Admission } from "./breaker.js";
export type { BreakerOptions, RunOptions } from "./options.js";
export type { Inspection } from "./inspection.js";
export { CircuitRegistry } from "./registry.js";
export { wrapFetch, type FetchCallOptions, type FetchOptions, type GuardedFetch } from "./fetch.js";
export { ready, type Backend } from "./runtime.js";
export { presets, type CircuitPolicy, type Share, type Window } from "./policy.js";
export { originKey, circuitKey } from "./key.js";
export { CircuitError, CircuitOpenError, InvalidCircuitError, StoreError, isCircuitOpenError } from "./errors.js";
export { memoryStore } from "./stores/memory.js";
export type { Verdict, CallOutcome, Classify } from "./classify.js";
export type { Awaitable, WaitUntil } from "./awaitable.js";
export type { CircuitStore, Stored } from "./store.js";
export type { CircuitState, RefusalReason, TransitionReason, Counts, Why, Transition, BreakerEvents } from "./events.js";
