// Values that are there, or come later. A store that answers at once is gone on with at once: its circuit then behaves synchronously.

export type Awaitable<T> = T | PromiseLike<T>;
export type WaitUntil = (work: Promise<unknown>) => void;

export const isThenable = <T>(value: Awaitable<T> | undefined): value is PromiseLike<T> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === "function";

export function then<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return isThenable(value) ? Promise.resolve(value).then(next) : next(value);
}

export function attempt<T>(work: () => Awaitable<T>, failed: (error: unknown) => T | void): Awaitable<T> {
  try {
    const result = work();
    return (isThenable(result) ? Promise.resolve(result).then(undefined, failed) : result) as Awaitable<T>;
  } catch (error) {
    return failed(error) as T;
  }
}

/** The same, or a rejection after so many milliseconds. */
export function deadline<T>(work: PromiseLike<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const id = setTimeout(() => reject(late(ms)), ms);
    work.then(
      (value) => (clearTimeout(id), resolve(value)),
      (error) => (clearTimeout(id), reject(error)),
    );
  });
}

export const late = (ms: number): Error => new Error(`The store did not answer within ${ms} ms`);

/** Hands work to whoever keeps it alive, if somebody does. */
export function keep(work: PromiseLike<unknown>, keeper: WaitUntil | undefined): void {
  try {
    keeper?.(Promise.resolve(work));
  } catch {
    // Outside a request there is nobody to keep it.
  }
}
