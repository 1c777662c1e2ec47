// A gateway to a service that may fail: all isolates, wherever they run, share one circuit, count failures together and send one probe.

import { isCircuitOpenError, wrapFetch } from "tripcurve";
import { type CircuitObject, durableObjectStore } from "tripcurve/stores/durable-object";

export { CircuitObject } from "tripcurve/stores/durable-object";

interface Env {
  CIRCUITS: DurableObjectNamespace<CircuitObject>;
  UPSTREAM: string;
}

// Kept while the isolate lives: closed calls are decided here, without a request to the object.
let guarded: typeof fetch | undefined;

export default {
  async fetch(request, env) {
    guarded ??= wrapFetch(fetch, { store: durableObjectStore(env.CIRCUITS), share: "tally", storeTimeoutMs: 500 });
    const { pathname, search } = new URL(request.url);
    try {
      return await guarded(new Request(env.UPSTREAM + pathname + search, request));
    } catch (error) {
      if (!isCircuitOpenError(error)) throw error;
      const seconds = Math.ceil((error.retryAfterMs ?? 1_000) / 1_000);
      return new Response("The service behind this has failed. Try again later.\n", { status: 503, headers: { "retry-after": String(seconds) } });
    }
  },
} satisfies ExportedHandler<Env>;
