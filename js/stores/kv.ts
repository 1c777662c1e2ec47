// Cloudflare Workers KV: many isolates and places learn of an outage, within a minute or so.

import type { CircuitStore } from "../store.js";

/** The part of a KV namespace that is used. */
export interface KvNamespace {
  get(key: string): Promise<string | null>;
  put(key: string, value: string, options?: { expirationTtl?: number }): Promise<void>;
  delete(key: string): Promise<void>;
}

/**
 * Keeps circuits in a KV namespace. What KV can promise: the last write wins, a reading may be a minute old or more, one write a second
 * for each key. So every isolate counts and probes for itself, an open circuit reaches the others within a minute or two, and of several
 * moves in one second the last is written. A healthy circuit writes nothing; a reading per isolate and minute.
 */
export function kvStore(namespace: KvNamespace, { prefix = "tripcurve:" }: { prefix?: string } = {}): CircuitStore {
  return {
    consistency: "last_write",
    refreshMs: 60_000,
    writeEveryMs: 1_000,
    async get(key) {
      const snapshot = await namespace.get(prefix + key);
      return snapshot === null ? null : { snapshot, version: null };
    },
    async set(key, snapshot, { ttlMs }) {
      // KV counts in seconds and takes no less than a minute.
      await namespace.put(prefix + key, snapshot, { expirationTtl: Math.max(60, Math.ceil(ttlMs / 1000)) });
      return { ok: true };
    },
    delete: (key) => namespace.delete(prefix + key),
  };
}
