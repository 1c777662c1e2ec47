// Cloudflare Workers: compiling from bytes is forbidden there, so the module is imported; waitUntil comes with the runtime.

import * as workers from "cloudflare:workers";
import module from "../../pkg/tripcurve_bg.wasm";
import * as api from "../api.js";
import { type Source, using } from "../runtime.js";

const imported: Source = { module: () => module, waitUntil: (work) => workers.waitUntil?.(work) };

export * from "../api.js";
export const CircuitBreaker = /* @__PURE__ */ using(imported, api.CircuitBreaker);
export type CircuitBreaker = api.CircuitBreaker;
export const CircuitRegistry = /* @__PURE__ */ using(imported, api.CircuitRegistry);
export type CircuitRegistry = api.CircuitRegistry;
export const wrapFetch = /* @__PURE__ */ using(imported, api.wrapFetch);
export const ready = /* @__PURE__ */ using(imported, api.ready);
