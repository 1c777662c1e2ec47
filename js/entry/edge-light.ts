// Vercel's edge runtime: compiling from bytes is forbidden there as well, and the module is imported by another name.

import module from "../../pkg/tripcurve_bg.wasm?module";
import * as api from "../api.js";
import { type Source, using } from "../runtime.js";

const imported: Source = { module: () => module };

export * from "../api.js";
export const CircuitBreaker = /* @__PURE__ */ using(imported, api.CircuitBreaker);
export type CircuitBreaker = api.CircuitBreaker;
export const CircuitRegistry = /* @__PURE__ */ using(imported, api.CircuitRegistry);
export type CircuitRegistry = api.CircuitRegistry;
export const wrapFetch = /* @__PURE__ */ using(imported, api.wrapFetch);
export const ready = /* @__PURE__ */ using(imported, api.ready);
