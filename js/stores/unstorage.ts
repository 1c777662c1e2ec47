// unstorage: whatever it has a driver for.

import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore } from "../store.js";

/** The part of an unstorage storage that is used. */
export interface Unstorage {
  getItemRaw(key: string): Promise<unknown>;
  setItemRaw(key: string, value: string, options?: { ttl?: number }): Promise<void>;
  removeItem(key: string): Promise<void>;
}

/**
 * Keeps circuits in an unstorage storage (`createStorage({ driver })`), as they are, without its parsing of values. Last write wins, whatever the
 * driver could do: every participant counts and probes for itself. Texts expire where the driver knows `ttl` (in seconds).
 *
 * Cost: what the driver costs, a reading per 10 s and a write per move, in the background.
 */
export function unstorageStore(storage: Unstorage, { prefix = "tripcurve:" }: { prefix?: string } = {}): CircuitStore {
  if (typeof storage?.getItemRaw !== "function") throw new InvalidCircuitError("storage", storage, "must be an unstorage storage");
  // unstorage drops a ? and what follows it: all circuits would be one.
  if (typeof prefix !== "string" || prefix.includes("?")) throw new InvalidCircuitError("prefix", prefix, "must be a text without ?");
  return {
    consistency: "last_write",
    async get(key) {
      const value = await storage.getItemRaw(prefix + key);
      if (value === null || value === undefined) return null;
      // Drivers give back what they keep: a text, or its bytes.
      return { snapshot: value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value), version: null };
    },
    async set(key, snapshot, { ttlMs }) {
      await storage.setItemRaw(prefix + key, snapshot, { ttl: Math.ceil(ttlMs / 1000) });
      return { ok: true };
    },
    delete: (key) => storage.removeItem(prefix + key),
  };
}
