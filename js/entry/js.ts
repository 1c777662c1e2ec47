// `tripcurve/js`: the same without WebAssembly, for hosts that have none or where nothing can be loaded later (a service worker under a
// strict content security policy).

import * as api from "../api.js";
import { type Source, using } from "../runtime.js";
import * as translation from "./translated.js";

const translated: Source = { translation: () => translation };

export * from "../api.js";
export const CircuitBreaker = /* @__PURE__ */ using(translated, api.CircuitBreaker);
export type CircuitBreaker = api.CircuitBreaker;
export const CircuitRegistry = /* @__PURE__ */ using(translated, api.CircuitRegistry);
export type CircuitRegistry = api.CircuitRegistry;
export const wrapFetch = /* @__PURE__ */ using(translated, api.wrapFetch);
export const ready = /* @__PURE__ */ using(translated, api.ready);
