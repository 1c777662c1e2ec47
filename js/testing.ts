// For tests of code that uses a circuit: a clock that moves when it is told.

/**
 * A clock for the `clock` option. It stands still until `advance(ms)` or `set(at)`; nothing is scheduled on it, so a circuit that became
 * due shows it at the next call. `start` is an instant in milliseconds since the epoch, default 0.
 */
export function fakeClock(start = 0): { (): number; advance(ms: number): void; set(at: number): void } {
  let now = start;
  return Object.assign(() => now, {
    advance(ms: number) {
      now += ms;
    },
    set(at: number) {
      now = at;
    },
  });
}
