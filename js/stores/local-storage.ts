// The browser's localStorage: the circuit survives a reload and is the same in every tab of the origin.

import type { CircuitStore } from "../sharing.js";

type Area = Pick<Storage, "getItem" | "setItem" | "removeItem">;
type Changes = {
  addEventListener(type: "storage", listener: (event: StorageEvent) => void): void;
  removeEventListener(type: "storage", listener: (event: StorageEvent) => void): void;
};

/**
 * Keeps circuits in localStorage, under `tripcurve:` and their key; no other key is ever touched. A tab reads before its first call and
 * hears of the others by `storage` events. Last write wins, so every write reads and merges first; each tab probes within its own limit.
 * Where storage is missing, forbidden or full the circuit lives in memory, and a diagnostic says so. Nothing is touched at import.
 *
 * Cost: one reading of about 10 µs at the first call and then every `refreshMs`, a write per move of the circuit, and at most one a second
 * while calls fail. Texts do not expire by themselves.
 */
export function localStorageStore({ prefix = "tripcurve:" }: { prefix?: string } = {}): CircuitStore {
  // Reading the property may throw (SecurityError) or give null, and later may not: asked each time.
  const area = (): Area => {
    const found = (globalThis as { localStorage?: Area | null }).localStorage;
    if (!found) throw new Error("There is no localStorage");
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
      const heard = (event: StorageEvent): void => {
        if (event.key?.startsWith(prefix)) listener(event.key.slice(prefix.length), event.newValue);
      };
      host.addEventListener?.("storage", heard);
      return () => host.removeEventListener?.("storage", heard);
    },
  };
}
