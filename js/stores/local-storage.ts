// The browser's localStorage: the circuit survives a reload and is the same in every tab of the origin. And sessionStorage, for one tab.

import { wallClock } from "../clock.js";
import type { CircuitStore } from "../store.js";

export interface WebStorageOptions {
  /** What the keys begin with. Default `"tripcurve:"`. */
  prefix?: string;
}

type Area = "localStorage" | "sessionStorage";
type Locks = Pick<LockManager, "request">;
type Changes = {
  addEventListener(type: "storage", listener: (event: StorageEvent) => void): void;
  removeEventListener(type: "storage", listener: (event: StorageEvent) => void): void;
};

/**
 * Keeps circuits in localStorage, under `tripcurve:` and their key; no other key is ever touched. A tab reads before its first call and
 * hears of the others by `storage` events. Last write wins, so every write reads and merges first. Where storage is missing, forbidden or
 * full the circuit lives in memory, and a diagnostic says so. Nothing is touched at import.
 *
 * Probes are shared out by Web Locks, where the page has them (secure contexts; looked for when the store is made): all tabs together
 * stay within the limit, and a closed tab frees its slot at once. A tab that froze loses it between one and two lease lengths after it began.
 * Without Web Locks each tab probes within its own limit.
 *
 * Cost: one reading of about 10 µs at the first call and then every `refreshMs`, a write per move of the circuit, and at most one a second
 * while calls fail; two Web Locks, about a millisecond, per probe. Texts do not expire by themselves.
 */
export function localStorageStore(options: WebStorageOptions = {}): CircuitStore {
  return { ...webStorage("localStorage", options), claim: claimBy(options) };
}

/**
 * Keeps circuits in sessionStorage, as `localStorageStore` does in localStorage: the circuit survives a reload, but every tab has its own.
 * It also probes for itself.
 */
export function sessionStorageStore(options: WebStorageOptions = {}): CircuitStore {
  return webStorage("sessionStorage", options);
}

function webStorage(name: Area, { prefix = "tripcurve:" }: WebStorageOptions): CircuitStore {
  // Reading the property may throw (SecurityError) or give null, and later may not: asked each time.
  const area = (): Storage => {
    const found = (globalThis as { [area in Area]?: Storage | null })[name];
    if (!found) throw new Error(`There is no ${name}`);
    return found;
  };
  return {
    consistency: "last_write",
    local: true,
    get(key) {
      const snapshot = area().getItem(prefix + key);
      return snapshot === null ? null : { snapshot, version: null };
    },
    set(key, snapshot) {
      area().setItem(prefix + key, snapshot);
      return { ok: true };
    },
    delete: (key) => area().removeItem(prefix + key),
    subscribe(listener) {
      const host = globalThis as unknown as Partial<Changes>;
      // The event's own value: another process may still read the old one.
      const heard = (event: StorageEvent): void => {
        if (event.key?.startsWith(prefix) && event.storageArea === area()) listener(event.key.slice(prefix.length), event.newValue);
      };
      host.addEventListener?.("storage", heard);
      return () => host.removeEventListener?.("storage", heard);
    },
  };
}

/**
 * A claim is the holding of two locks, the lease period's by the host's clock and the next one's: both or none, and nothing is stolen.
 * Whoever asks during the lease meets one of them. Nobody asks for them two periods later, so a claim that was never released needs no timer.
 */
function claimBy({ prefix = "tripcurve:" }: WebStorageOptions): CircuitStore["claim"] {
  const locks = webLocks();
  if (!locks) return undefined;
  return async (key, slot, leaseMs: number | null) => {
    const period = leaseMs && leaseMs < Infinity ? Math.floor(wallClock() / leaseMs) : 0;
    const lock = `${prefix}${key}:${slot}/`;
    const here = await hold(locks, lock + period);
    if (!here) return null;
    const next = await hold(locks, lock + (period + 1));
    if (!next) {
      here();
      return null;
    }
    return () => {
      here();
      next();
    };
  };
}

function webLocks(): Locks | undefined {
  try {
    return (globalThis as { navigator?: { locks?: Locks } }).navigator?.locks;
  } catch {
    return undefined;
  }
}

/** Takes a lock if it is free. It is held until the function this resolves to is called, or its tab is gone. */
const hold = (locks: Locks, name: string): Promise<(() => void) | null> =>
  new Promise((resolve, reject) => {
    const over = locks.request(name, { ifAvailable: true }, (lock) => lock && new Promise<void>((release) => resolve(release)));
    over.then(() => resolve(null), reject);
  });
