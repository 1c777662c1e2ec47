// A circuit breaker for browsers and edge workers. This entry carries the module's bytes; entry/ has those of other hosts.

import { bytes } from "../pkg/bytes.js";
import * as api from "./api.js";
import { inlined } from "./entry/inlined.js";
import { using } from "./runtime.js";

const source = /* @__PURE__ */ inlined(bytes, () => import("./entry/translated.js"));

export * from "./api.js";
/** Guards calls to one service; see the class for its verbs. */
export const CircuitBreaker = /* @__PURE__ */ using(source, api.CircuitBreaker);
export type CircuitBreaker = api.CircuitBreaker;
/** Circuits by key, bounded, with options and listeners in common. */
export const CircuitRegistry = /* @__PURE__ */ using(source, api.CircuitRegistry);
export type CircuitRegistry = api.CircuitRegistry;
/** A fetch with a circuit for each origin. */
export const wrapFetch = /* @__PURE__ */ using(source, api.wrapFetch);
/** Compiles the module early, without blocking. Optional. */
export const ready = /* @__PURE__ */ using(source, api.ready);
