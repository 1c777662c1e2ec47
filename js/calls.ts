// The mechanics of one call: started so that it is always a promise, ended by a timer or by either of two signals.

import type { Awaitable } from "./awaitable.js";

/** Milliseconds a timer of the host can take at once; beyond, it would fire immediately. */
const LONGEST_TIMER = 2 ** 31 - 1;

export function timer(ms: number, fire: () => void): () => void {
  let left = ms;
  let id: ReturnType<typeof setTimeout>;
  const next = (): void => {
    if (left <= 0) return fire();
    const part = Math.min(left, LONGEST_TIMER);
    left -= part;
    id = setTimeout(next, part);
  };
  next();
  return () => clearTimeout(id);
}

/** A signal that aborts with either. It goes on to do so after the call: a body may still be being read. */
export function either(signal: AbortSignal, controller: AbortController): AbortSignal {
  if (AbortSignal.any) return AbortSignal.any([signal, controller.signal]);
  signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
  return controller.signal;
}

/** Always a promise of this realm: a value, a foreign thenable and what is thrown become one. */
export function started<T>(fn: (signal: AbortSignal | undefined) => Awaitable<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    const result = fn(signal);
    return result instanceof Promise ? result : Promise.resolve(result);
  } catch (error) {
    return Promise.reject(error);
  }
}
