// Circuits shared within one process, and the store that tests are written against.

import { wallClock } from "../clock.js";
import type { CircuitStore } from "../store.js";

/**
 * Keeps circuits in memory: several breakers of one process then share one circuit. Synchronous, atomic, notifies at once.
 * `clock` decides when a text has outlived its time; default Date.now.
 */
export function memoryStore({ clock = wallClock }: { clock?: () => number } = {}): CircuitStore {
  const texts = new Map<string, { snapshot: string; version: string; until: number }>();
  const listeners = new Set<(key: string, snapshot: string | null) => void>();
  let writes = 0;
  const find = (key: string): { snapshot: string; version: string } | null => {
    const found = texts.get(key);
    if (found && found.until > clock()) return { snapshot: found.snapshot, version: found.version };
    texts.delete(key);
    return null;
  };
  return {
    consistency: "atomic",
    get: find,
    set(key, snapshot, { ttlMs, ifVersion }) {
      const version = find(key)?.version ?? null;
      if (ifVersion !== undefined && ifVersion !== version) return { ok: false, version };
      const next = String(++writes);
      texts.set(key, { snapshot, version: next, until: clock() + ttlMs });
      for (const listener of [...listeners]) listener(key, snapshot);
      return { ok: true, version: next };
    },
    delete(key) {
      texts.delete(key);
      for (const listener of [...listeners]) listener(key, null);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
