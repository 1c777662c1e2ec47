// Where time comes from. The only reader of the host's clock: everything else is given an instant.

/** Milliseconds since the epoch, as the host tells them. */
export const wallClock = (): number => Date.now();

/**
 * A clock of the caller's that cannot hurt a call: what it throws is reported, what is no instant is replaced by the last good one,
 * and a clock that calls back into its own breaker finds time standing still.
 */
export function trusted(clock: () => number, fault: (error: unknown) => void): () => number {
  let last = 0;
  let reading = false;
  return () => {
    if (reading) return last;
    reading = true;
    try {
      const now = clock();
      if (typeof now === "number" && now >= 0 && now <= Number.MAX_SAFE_INTEGER) last = now;
    } catch (error) {
      fault(error);
    }
    reading = false;
    return last;
  };
}
