// The guarded fetch: a circuit for each origin, found by key, and what a Response says about its service.

import type { Awaitable } from "./awaitable.js";
import { watchBody } from "./body.js";
import { either } from "./calls.js";
import { IGNORED, isDeadline, isFailing, judgeFetch } from "./classify.js";
import { type CircuitOpenError, InvalidCircuitError, isCircuitOpenError, whole } from "./errors.js";
import { departures, isPage, report } from "./host.js";
import { originKey } from "./key.js";
import { type BreakerOptions, type CallOptions, choice, OPTIONS } from "./options.js";
import { type CircuitPolicy, known, presets } from "./policy.js";
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
  /**
   * `"headers"` (default): the outcome is known when the headers are there. `"body"`: when the body has been read to its end. An error in
   * the middle is a failure; a body its reader gives up is ignored; one that nobody reads, or that the host reads by itself (a Response
   * handed on, put into a cache), is not counted, and a probe's slot then ends with its lease. It is the same Response, with the same stream.
   */
  settleAt?: "headers" | "body";
  /** With `settleAt: "body"`: aborts a body that is not there so long after its reading began: a failure. In ms, from 1. Default: none. */
  bodyTimeoutMs?: number;
  /**
   * Heeds `Retry-After` (seconds or an HTTP date) of 429 and 503: a circuit that this answer opens stays open until then, if that is
   * longer than it would, and at most `maxOpenMs`. Of another origin a page sees it only if that origin exposes it. Default true.
   */
  retryAfter?: boolean;
  /**
   * What a refused request gives. `"throw"` (default): it rejects with the CircuitOpenError. `"respond"`: a Response with status 503,
   * `Retry-After`, and the refusal as problem+json. A function gives its own; the request it is given has no body.
   */
  onOpen?: "throw" | "respond" | ((error: CircuitOpenError, request: Request) => Awaitable<Response>);
}

/** What one request may have otherwise than the others. */
export type FetchCallOptions = Pick<FetchOptions, "timeoutMs" | "settleAt" | "bodyTimeoutMs" | "onOpen" | "classify" | "waitUntil">;
const CALL_OPTIONS = ["timeoutMs", "settleAt", "bodyTimeoutMs", "onOpen", "classify", "waitUntil"];
const FETCH_OPTIONS = [...OPTIONS, "policy", "registry", "key", "timeoutMs", "failureStatus", "settleAt", "bodyTimeoutMs", "retryAfter", "onOpen", "maxCircuits"];

/** Names and types of what is not the policy's. */
export function checkFetchOptions(options: FetchOptions): void {
  if (typeof options !== "object" || options === null) throw new InvalidCircuitError("options", options, "must be an object");
  known(options, FETCH_OPTIONS);
  const { policy, registry, key, failureStatus, retryAfter } = options;
  if (registry && policy) throw new InvalidCircuitError("policy", policy, "is the registry's: give one of them");
  if (key !== undefined && typeof key !== "function") throw new InvalidCircuitError("key", key, "must be a function of the request");
  if (retryAfter !== undefined && typeof retryAfter !== "boolean") throw new InvalidCircuitError("retryAfter", retryAfter, "must be true or false");
  if (failureStatus !== undefined && typeof failureStatus !== "function" && !(Array.isArray(failureStatus) && failureStatus.every(Number.isInteger))) {
    throw new InvalidCircuitError("failureStatus", failureStatus, "must be a list of status codes, or a function of one");
  }
  parseCall(options);
}

export interface GuardedFetch {
  (input: Input, init?: RequestInit, options?: FetchCallOptions): Promise<Response>;
  readonly registry: CircuitRegistry;
}

type Input = Parameters<typeof globalThis.fetch>[0];

/**
 * A fetch with a circuit for each origin. While a circuit is open it rejects with a CircuitOpenError, without a request, and the
 * request's body stays unused.
 *
 * A network error, a time-out, 429 and 5xx (but not 501) are failures; every other response is a success, an opaque one too. A request
 * the caller aborts is ignored, and so is a network error while the browser is offline, of a request that was under way when the page was
 * left, or that `fetch` refused to send. What has an address that is not of http (`data:`, `blob:`), is `no-cors` or `keepalive` passes
 * through uncounted.
 *
 * ```js
 * const guarded = wrapFetch(fetch, { store: localStorageStore() });
 * const response = await guarded("https://api.example.com/orders", { signal });
 * ```
 *
 * Throws InvalidCircuitError for options that cannot work.
 */
export function wrapFetch(fetch: typeof globalThis.fetch = globalThis.fetch, options: FetchOptions = {}): GuardedFetch {
  if (typeof fetch !== "function") throw new InvalidCircuitError("fetch", fetch, "must be a function");
  checkFetchOptions(options);
  const { policy, registry: given, key: keyOf, timeoutMs, failureStatus = isFailing, settleAt, bodyTimeoutMs, retryAfter, onOpen, ...rest } = options;
  const usual = { timeoutMs, settleAt, bodyTimeoutMs, onOpen, ...(given && { classify: rest.classify, waitUntil: rest.waitUntil }) };
  const usually = parseCall(usual);
  const registry = given ?? new CircuitRegistry(policy ?? presets[isPage() ? "page" : "edge"], rest);
  const judge = judgeFetch(typeof failureStatus === "function" ? failureStatus : (status) => failureStatus.includes(status), retryAfter !== false);
  let reported = false;

  const circuit = (input: Input, init: RequestInit | undefined) => {
    try {
      if (isUnseen(input, init)) return null;
      const url = addressOf(input);
      if (!url.startsWith("http") && /^\s*(?!https?:)[a-z][a-z\d+.-]*:/i.test(url)) return null; // no service is behind it
      const key = keyOf ? keyOf(bodyless(input, init)) : originKey(url);
      return key === null ? null : registry.get(key);
    } catch (error) {
      // An address that fetch itself will refuse, or a key that is none: the request goes on without a circuit.
      if (!reported && !(error instanceof TypeError)) report(error);
      reported = true;
      return null;
    }
  };

  const guarded = (input: Input, init?: RequestInit, each?: FetchCallOptions): Promise<Response> => {
    const breaker = circuit(input, init);
    if (breaker === null) return fetch(input, init);
    let how = usually;
    try {
      if (each) known(each, CALL_OPTIONS);
      if (each) how = parseCall({ ...usual, ...each });
    } catch (error) {
      return Promise.reject(error);
    }
    const signal = init?.signal === undefined ? (input as Partial<Request>).signal : init.signal;
    const before = departures();
    const call: CallOptions<Response> = {
      judge: (ok, value, clock) => (ok || (departures() === before && isSendable(input, init)) ? judge(ok, value, clock) : IGNORED),
    };
    if (signal) call.signal = signal;
    if (how.classify) call.classify = how.classify;
    if (how.waitUntil) call.waitUntil = how.waitUntil;
    if (how.timeoutMs !== undefined) call.timeoutMs = how.timeoutMs;
    const { respond } = how;
    if (respond) call.fallback = (error) => (isCircuitOpenError(error) ? respond(error, input, init) : Promise.reject(error));
    const ending = how.bodyTimeoutMs === undefined ? undefined : new AbortController();
    if (how.toBody) {
      const wasAborted = (): boolean => (signal?.aborted === true && !isDeadline(signal.reason)) || departures() !== before;
      const abort = (reason: unknown): void => ending?.abort(reason);
      call.rest = (response, end) => watchBody(response as Response, { end, wasAborted, abort, timeoutMs: how.bodyTimeoutMs });
    }
    if (how.timeoutMs === undefined && !ending) return breaker.run(() => fetch(input, init), call);
    return breaker.run((merged) => {
      const signal = !ending ? merged! : merged ? either(merged, ending) : ending.signal;
      // A Request as init, as proxies have it, cannot be spread.
      return init && "url" in init ? fetch(new Request(input, init), { signal }) : fetch(input, { ...init, signal });
    }, call);
  };
  return Object.assign(guarded, { registry });
}

type Respond = (error: CircuitOpenError, input: Input, init: RequestInit | undefined) => Awaitable<Response>;

function parseCall({ timeoutMs, settleAt, bodyTimeoutMs, onOpen, classify, waitUntil }: FetchCallOptions) {
  if (timeoutMs !== undefined) whole("timeoutMs", timeoutMs, 1);
  if (bodyTimeoutMs !== undefined) whole("bodyTimeoutMs", bodyTimeoutMs, 1);
  const toBody = choice("settleAt", settleAt, ["headers", "body"]) === "body";
  if (bodyTimeoutMs !== undefined && !toBody) throw new InvalidCircuitError("bodyTimeoutMs", bodyTimeoutMs, 'needs settleAt: "body"');
  let respond: Respond | undefined;
  if (typeof onOpen === "function") respond = (error, input, init) => onOpen(error, bodyless(input, init));
  else if (choice("onOpen", onOpen, ["throw", "respond"]) === "respond") respond = problem;
  return { timeoutMs, toBody, bodyTimeoutMs, respond, classify, waitUntil };
}

const addressOf = (input: Input): string => (typeof input === "string" ? input : ((input as Partial<URL>).href ?? (input as Partial<Request>).url ?? String(input)));

/** Nobody is told how it went: the answer is opaque, or the page may be gone by then; or nothing will be sent, for the body is used up. */
function isUnseen(input: Input, init: RequestInit | undefined): boolean {
  const { mode, keepalive, bodyUsed } = input as Partial<Request>;
  return (init?.mode ?? mode) === "no-cors" || (init?.keepalive ?? keepalive) === true || (bodyUsed === true && init?.body == null);
}

/** A header, method or body that fetch refuses to send ends like a network error, and says nothing about the service. */
function isSendable(input: Input, init: RequestInit | undefined): boolean {
  try {
    const { method } = bodyless(input, init);
    return init?.body == null || !isBodyless(method);
  } catch (error) {
    return !(error instanceof TypeError);
  }
}

/** A refusal as an answer (RFC 9457). */
function problem({ key, message, reason, retryAt, retryAfterMs }: CircuitOpenError): Response {
  const body = { title: "Service Unavailable", status: 503, detail: message, circuit: key, reason, retryAt };
  const headers = new Headers({ "Content-Type": "application/problem+json", "Cache-Control": "no-store" });
  if (retryAfterMs !== null) headers.set("Retry-After", String(Math.ceil(retryAfterMs / 1_000)));
  return new Response(JSON.stringify(body), { status: 503, headers });
}

const isBodyless = (method: string): boolean => method === "GET" || method === "HEAD";

/** The request for `key` and `onOpen`: what names it, and no body, which could be read only once. */
function bodyless(input: Input, init: RequestInit | undefined): Request {
  const request = typeof input === "object" && "method" in input ? input : undefined;
  if (request && !init && isBodyless(request.method)) return request;
  const { method = request?.method ?? "GET", headers = request?.headers } = init ?? {};
  return new Request(addressOf(input), headers ? { method, headers } : { method });
}
