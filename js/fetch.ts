// The guarded fetch: a circuit for each origin, found by key, and what a Response says about its service.

import { isFailing, judgeFetch } from "./classify.js";
import { InvalidCircuitError, whole } from "./errors.js";
import { isPage, report } from "./host.js";
import { originKey } from "./key.js";
import type { BreakerOptions, CallOptions } from "./options.js";
import { type CircuitPolicy, presets } from "./policy.js";
import { CircuitRegistry } from "./registry.js";

/** Either a policy, or a registry that has one. */
export interface FetchOptions extends BreakerOptions {
  /** One for all circuits, or one for each key. Default: `presets.page` where there is a document, else `presets.edge`. */
  policy?: CircuitPolicy | ((key: string) => CircuitPolicy);
  /** Circuits to share with other guards. Then `policy` and what else belongs to a registry is that registry's. */
  registry?: CircuitRegistry;
  /** The circuit of a request; null: let it through uncounted. Default: `originKey(request.url)`. The request has no body here. */
  key?: (request: Request) => string | null;
  /** Aborts a request whose headers have not come by then: a failure. Default: none. */
  timeoutMs?: number;
  /** Status codes that are failures. Default: 429 and every 5xx but 501. The response is returned all the same. */
  failureStatus?: readonly number[] | ((status: number) => boolean);
}

export type GuardedFetch = typeof globalThis.fetch & { readonly registry: CircuitRegistry };

type Input = Parameters<typeof globalThis.fetch>[0];

/**
 * A fetch with a circuit for each origin. While a circuit is open it rejects with a CircuitOpenError, without a request, and the
 * request's body stays unused.
 *
 * A network error, a time-out, 429 and 5xx (but not 501) are failures; every other response is a success, an opaque one too. A request
 * the caller aborts is ignored, and so is a network error while the browser is offline. `data:` and `blob:` addresses pass through.
 *
 * ```js
 * const guarded = wrapFetch(fetch, { store: localStorageStore() });
 * const response = await guarded("https://api.example.com/orders", { signal });
 * ```
 *
 * Throws InvalidCircuitError for options that cannot work.
 */
export function wrapFetch(fetch: typeof globalThis.fetch = globalThis.fetch, options: FetchOptions = {}): GuardedFetch {
  const { policy, registry: given, key: keyOf, timeoutMs, failureStatus = isFailing, ...rest } = options;
  if (timeoutMs !== undefined) whole("timeoutMs", timeoutMs, 1);
  if (given && policy) throw new InvalidCircuitError("policy", policy, "is the registry's: give one of them");
  const registry = given ?? new CircuitRegistry(policy ?? presets[isPage() ? "page" : "edge"], rest);
  const judge = judgeFetch(typeof failureStatus === "function" ? failureStatus : (status) => failureStatus.includes(status));
  const { classify, waitUntil } = given ? rest : {};
  let reported = false;

  const circuit = (input: Input, init: RequestInit | undefined) => {
    try {
      const url = typeof input === "string" ? input : ((input as Partial<URL>).href ?? (input as Request).url);
      if (!url.startsWith("http") && /^\s*(?:data|blob):/i.test(url)) return null;
      const key = keyOf ? keyOf(bodyless(input, init, url)) : originKey(url);
      return key === null ? null : registry.get(key);
    } catch (error) {
      // An address that fetch itself will refuse, or a key that is none: the request goes on without a circuit.
      if (!reported && !(error instanceof TypeError)) report(error);
      reported = true;
      return null;
    }
  };

  const guarded = (input: Input, init?: RequestInit): Promise<Response> => {
    const breaker = circuit(input, init);
    if (breaker === null) return fetch(input, init);
    const signal = init?.signal === undefined ? (input as Partial<Request>).signal : init.signal;
    const call: CallOptions<Response> = { judge };
    if (signal) call.signal = signal;
    if (classify) call.classify = classify;
    if (waitUntil) call.waitUntil = waitUntil;
    if (timeoutMs === undefined) return breaker.run(() => fetch(input, init), call);
    call.timeoutMs = timeoutMs;
    return breaker.run((merged) => fetch(input, { ...init, signal: merged as AbortSignal }), call);
  };
  return Object.assign(guarded as typeof globalThis.fetch, { registry });
}

/** The request for `key`: what names it, and no body, which could be read only once. */
function bodyless(input: Input, init: RequestInit | undefined, url: string): Request {
  const request = typeof input === "object" && "method" in input ? input : undefined;
  if (request && !init) return request;
  const { method = request?.method ?? "GET", headers = request?.headers } = init ?? {};
  return new Request(url, headers ? { method, headers } : { method });
}
