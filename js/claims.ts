// Probes that are asked for, not taken: where a store can arbitrate, over all participants no more run than the limit.

import { type Awaitable, attempt, deadline, isThenable, then } from "./awaitable.js";
import type { StoreError } from "./errors.js";
import type { Rules } from "./policy.js";
import { isProbe } from "./runtime.js";
import type { SharingOptions } from "./sharing.js";
import type { Line, Stored } from "./store.js";

/** What a claim needs of its circuit, and of the loop that shares it. */
export interface Claimant {
  readonly line: Line;
  readonly options: Pick<Rules & SharingOptions, "probeLimit" | "leaseMs" | "storeTimeoutMs" | "onStoreError">;
  generation(): number;
  /** A token, or why not; see the boundary. */
  admit(): number;
  /** The probe was not let in after all. */
  giveBack(token: number): void;
  meet(found: Stored | null): void;
  /** Writes the circuit's text over this version. */
  write(version: string | null): Awaitable<boolean>;
  failed(error: unknown, operation?: StoreError["operation"]): void;
}

export interface Claims {
  /** How many are being asked for. */
  readonly asking: number;
  /** A token, or why not. It rejects only where store errors are to be thrown. */
  ask(): Awaitable<number>;
  /** The same without the store, which fails. */
  outage(): Awaitable<number>;
  /** The probe has come back. */
  release(token: number): void;
  close(): void;
}

const BUSY = -3;
/** A lock is let go when everybody has heard what its probe decided. */
const LINGER_MS = 100;
const TRIES = 4;

interface Lock {
  readonly release: () => void;
  readonly until: number;
  /** Its probe has come back. */
  lingering?: boolean;
}

/** One claim on its way. A probe that is in the text already may still start if the answer is lost. */
interface Claim {
  probe: { token: number; since: number; generation: number } | undefined;
  /** Its time is over. */
  over: boolean;
}

export function claims({ line, options, ...circuit }: Claimant): Claims {
  const { leaseMs, onStoreError } = options;
  const locks = new Map<number, Lock>();
  let asking = 0;

  /** A probe is in the store's text before it starts: of two that try at once one finds the text changed. */
  const byVersion = (claim: Claim, tries: number): Awaitable<number> =>
    then(line.get(), (found) => {
      if (claim.over) return BUSY;
      line.works();
      circuit.meet(found);
      const token = circuit.admit();
      if (!isProbe(token)) return token;
      const probe = (claim.probe = { token, since: line.clock(), generation: circuit.generation() });
      return then(circuit.write(found?.version ?? null), (ok) => {
        if (claim.over) return BUSY;
        if (ok && holds(probe)) return token;
        circuit.giveBack(token);
        claim.probe = undefined;
        return tries > 1 ? byVersion(claim, tries - 1) : BUSY;
      });
    });

  /** Meanwhile somebody may have decided otherwise, or the process slept until the lease was over. */
  const holds = ({ generation, since }: NonNullable<Claim["probe"]>): boolean =>
    circuit.generation() === generation && line.clock() - since < leaseMs;

  /** Holding the lock of a slot is the claim; the store is read once more before the probe starts. */
  const byLock = (claim: Claim, slot: number): Awaitable<number> => {
    if (slot >= options.probeLimit!) return BUSY;
    const again = slot === 0 ? reuse() : BUSY;
    if (again !== BUSY) return again;
    return then(line.lock(slot, leaseMs), (release) => {
      if (!release) return claim.over ? BUSY : byLock(claim, slot + 1);
      const read = attempt(() => then(line.get(), circuit.meet), (error) => circuit.failed(error));
      return then(read, () => {
        const token = claim.over ? BUSY : circuit.admit();
        if (isProbe(token)) locks.set(token, { release, until: line.clock() + leaseMs });
        else release();
        return token;
      });
    });
  };

  /**
   * The next probe may follow at once: its lock is the one that lingers. That one was taken for the lease of the last probe, so the text
   * says that there is another.
   */
  const reuse = (): Awaitable<number> => {
    for (const [last, { lingering, release, until }] of locks) {
      if (!lingering) continue;
      const token = circuit.admit();
      if (!isProbe(token)) return token;
      locks.delete(last);
      locks.set(token, { release, until: until + leaseMs });
      return then(attempt(() => circuit.write(null), (error) => circuit.failed(error)), () => token);
    }
    return BUSY;
  };

  const unlock = (token: number): void => {
    locks.get(token)?.release();
    locks.delete(token);
  };

  const outage = (token = circuit.admit()): Awaitable<number> => {
    if (onStoreError === "continue" || !isProbe(token)) return token;
    circuit.giveBack(token);
    return onStoreError === "throw" ? Promise.reject(line.fault) : BUSY;
  };

  return {
    get asking() {
      return asking;
    },
    ask() {
      for (const [token, { until }] of locks) if (line.clock() >= until) unlock(token);
      const claim: Claim = { probe: undefined, over: false };
      const lost = (error: unknown): Awaitable<number> => {
        claim.over = true;
        circuit.failed(error, "claim");
        const { probe } = claim;
        if (probe && holds(probe)) return outage(probe.token);
        if (probe) circuit.giveBack(probe.token);
        return outage();
      };
      const ask = (): Awaitable<number> => (line.store.consistency === "atomic" ? byVersion(claim, TRIES) : byLock(claim, 0));
      const answer = attempt(ask, (error) => Promise.reject(error) as never);
      if (!isThenable(answer)) return answer;
      asking++;
      return deadline(answer, options.storeTimeoutMs).catch(lost).finally(() => void asking--);
    },
    outage: () => outage(),
    release(token) {
      const lock = locks.get(token);
      if (!lock) return;
      lock.lingering = true;
      setTimeout(() => unlock(token), LINGER_MS);
    },
    close() {
      for (const token of [...locks.keys()]) unlock(token);
    },
  };
}
