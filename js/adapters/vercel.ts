// Vercel and hosts like it: who keeps work alive after the response is found in the context of the request.

interface RequestContext {
  get?(): { waitUntil?: (work: Promise<unknown>) => void } | undefined;
}

/** Where Next.js looks wherever it is hosted, and where Vercel's own functions do. */
const CONTEXTS = ["@next/request-context", "@vercel/request-context"];

/**
 * The option `waitUntil` for Vercel Functions, and for Next.js wherever its host tells it how to wait:
 *
 *     import { waitUntil } from "tripcurve/adapters/vercel";
 *
 *     const payments = new CircuitBreaker("http.payments", policy, { store, waitUntil });
 *
 * What a call has to write is then written before the function is frozen, in the request of that call. Outside a request, and on hosts
 * without one, it does nothing: the work goes on for as long as the host lets it. `waitUntil` of `@vercel/functions` does as well on Vercel.
 */
export function waitUntil(work: Promise<unknown>): void {
  for (const name of CONTEXTS) {
    const context = (globalThis as unknown as Record<symbol, RequestContext | undefined>)[Symbol.for(name)]?.get?.();
    if (context?.waitUntil) return context.waitUntil(work);
  }
}
