// One line in a service worker guards the requests of its pages, which need not know.

import { type FetchOptions, type GuardedFetch, presets, wrapFetch } from "../index.js";
import { InvalidCircuitError } from "../errors.js";
import { indexedDbStore } from "../stores/indexed-db.js";

interface FetchEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
  waitUntil(work: Promise<unknown>): void;
}
interface Worker {
  readonly location: { readonly origin: string };
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
}

/** A response is over at its headers here: the browser reads the bodies itself. */
export interface GuardFetchesOptions extends Omit<FetchOptions, "settleAt" | "bodyTimeoutMs"> {
  /** Which requests are guarded. Default: all but navigations and what the page's own origin serves as a part of it (scripts, styles, images, fonts). */
  guards?: (request: Request) => boolean;
}

/**
 * Guards every request of the pages a service worker controls, one circuit per origin, kept in IndexedDB for all of them and for when the
 * worker is stopped:
 *
 *     import { guardFetches } from "tripcurve/adapters/service-worker";
 *
 *     guardFetches();
 *
 * Call it while the worker starts. A page that knows nothing of it sees a refusal as a 503 with `Retry-After` (`onOpen`: default
 * `"respond"` here). Requests it does not guard are left to other listeners and to the browser. Options are those of `wrapFetch` (`policy`:
 * default `presets.page`, for it is pages that ask); gives the guarded fetch, with its `registry`. Throws InvalidCircuitError for options
 * that cannot work.
 *
 * Where a policy of the page's server refuses WebAssembly in the worker, calls pass uncounted: a service worker loads nothing later.
 */
export function guardFetches({ guards = isGuarded, ...options }: GuardFetchesOptions = {}): GuardedFetch {
  if (typeof guards !== "function") throw new InvalidCircuitError("guards", guards, "must be a function of the request");
  const { settleAt } = options as FetchOptions;
  if (settleAt === "body") throw new InvalidCircuitError("settleAt", settleAt, 'must be "headers": the browser reads the bodies itself, and nobody would see a success');
  const usual: FetchOptions = { store: indexedDbStore(), onOpen: "respond", ...(!options.registry && { policy: presets.page }) };
  const guarded = wrapFetch(fetch, { ...usual, ...options });
  worker.addEventListener("fetch", (event) => {
    const { request } = event;
    if (!guards(request)) return;
    event.respondWith(guarded(request, undefined, { waitUntil: (work) => event.waitUntil(work) }));
  });
  return guarded;
}

const worker = globalThis as unknown as Worker;

const isGuarded = ({ mode, destination, url }: Request): boolean =>
  (mode as string) !== "navigate" && (destination === "" || new URL(url).origin !== worker.location.origin);
