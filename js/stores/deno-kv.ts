// Deno KV: the isolates of a deployment, or the processes on one file, share their circuits.

import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore } from "../store.js";

/** The part of a `Deno.Kv` that is used. */
export interface DenoKv {
  get(key: readonly string[], options?: { consistency?: "strong" | "eventual" }): Promise<{ value: unknown; versionstamp: string | null }>;
  delete(key: readonly string[]): Promise<void>;
  atomic(): DenoKvAtomic;
}
export interface DenoKvAtomic {
  check(...checks: { key: readonly string[]; versionstamp: string | null }[]): DenoKvAtomic;
  set(key: readonly string[], value: unknown, options?: { expireIn?: number }): DenoKvAtomic;
  commit(): Promise<{ ok: boolean; versionstamp?: string }>;
}

/**
 * Keeps circuits in Deno KV (`await Deno.openKv()`), under `["tripcurve", key]`. Atomic, by the versionstamps KV has: what two isolates
 * write at once is never lost, and probes are counted over all of them. Texts expire by themselves, within a minute.
 *
 * On Deno Deploy it is shared by all isolates. In a file it is shared by the processes of one host, but of two that are busy at once one is
 * told "database is locked" now and then: a failure like any other, tried again later. There sqliteStore is the better choice.
 *
 * Cost: a strong read and a checked write, each a round trip to the primary region; nothing per call while the circuit is closed.
 */
export function denoKvStore(kv: DenoKv, { prefix = "tripcurve" }: { prefix?: string } = {}): CircuitStore {
  if (typeof kv?.atomic !== "function") throw new InvalidCircuitError("kv", kv, "must be an open Deno.Kv");
  if (typeof prefix !== "string") throw new InvalidCircuitError("prefix", prefix, "must be a text");
  const at = (key: string): readonly [string, string] => [prefix, key];
  return {
    consistency: "atomic",
    async get(key) {
      const { value, versionstamp } = await kv.get(at(key));
      return versionstamp === null ? null : { snapshot: String(value), version: versionstamp };
    },
    async set(key, snapshot, { ttlMs, ifVersion }) {
      const checked = ifVersion === undefined ? kv.atomic() : kv.atomic().check({ key: at(key), versionstamp: ifVersion });
      const { ok, versionstamp } = await checked.set(at(key), snapshot, { expireIn: Math.ceil(ttlMs) }).commit();
      return ok ? { ok, version: versionstamp ?? null } : { ok };
    },
    delete: (key) => kv.delete(at(key)),
  };
}
