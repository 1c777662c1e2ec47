// Keyv: whatever it has an adapter for.

import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore } from "../store.js";

/** The part of a Keyv that is used. */
export interface KeyvLike {
  get(key: string): Promise<unknown>;
  set(key: string, value: string, ttlMs?: number): Promise<unknown>;
  delete(key: string): Promise<unknown>;
}

/**
 * Keeps circuits in a Keyv. Last write wins, whatever its adapter could do: every participant counts and probes for itself. Texts expire.
 * Keyv does not throw when its adapter fails, but emits `error`: without a listener for that the process ends. Give it one; with
 * `throwOnErrors` the breaker hears of it as well.
 *
 * Cost: what the adapter costs, a reading per 10 s and a write per move, in the background.
 */
export function keyvStore(keyv: KeyvLike, { prefix = "tripcurve:" }: { prefix?: string } = {}): CircuitStore {
  for (const method of ["get", "set", "delete"] as const) {
    if (typeof keyv?.[method] !== "function") throw new InvalidCircuitError("keyv", keyv, "must be a Keyv");
  }
  if (typeof prefix !== "string") throw new InvalidCircuitError("prefix", prefix, "must be a text");
  return {
    consistency: "last_write",
    async get(key) {
      const value = await keyv.get(prefix + key);
      return typeof value === "string" ? { snapshot: value, version: null } : null;
    },
    async set(key, snapshot, { ttlMs }) {
      return { ok: (await keyv.set(prefix + key, snapshot, Math.ceil(ttlMs))) !== false };
    },
    async delete(key) {
      await keyv.delete(prefix + key);
    },
  };
}
