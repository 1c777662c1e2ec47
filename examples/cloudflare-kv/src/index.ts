// A gateway to a service that may fail. Each isolate counts for itself; that the service is down, all of them learn from Workers KV.

import { wrapFetch } from "tripcurve";
import { kvStore } from "tripcurve/stores/kv";

interface Env {
  CIRCUITS: KVNamespace;
  UPSTREAM: string;
}

// Kept while the isolate lives: closed calls are decided here, without a request to KV.
let guarded: typeof fetch | undefined;

export default {
  fetch(request, env) {
    guarded ??= wrapFetch(fetch, { store: kvStore(env.CIRCUITS), onOpen: "respond" }); // a refusal is a 503 with Retry-After
    const { pathname, search } = new URL(request.url);
    return guarded(new Request(env.UPSTREAM + pathname + search, request));
  },
} satisfies ExportedHandler<Env>;
