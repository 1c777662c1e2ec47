// Cloudflare Durable Objects: isolates everywhere share a circuit exactly. Each circuit is an object of its own, which compares and sets.

import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore, Stored } from "../store.js";

/** The part of a Durable Object namespace that is used. */
export interface ObjectNamespace<Id = unknown> {
  idFromName(name: string): Id;
  get(id: Id): { fetch(url: string, init?: { method: string; body?: string }): Promise<{ json(): Promise<unknown> }> };
}

/** The part of a Durable Object's state that is used; it has `kv` where the class is SQLite-backed. */
export interface ObjectState {
  readonly storage: {
    readonly kv: { get<T = unknown>(key: string): T | undefined; put<T>(key: string, value: T): void };
    deleteAll(): Promise<void>;
  };
}

interface Write {
  snapshot: string;
  ttlMs: number;
  ifVersion?: string | null;
}

interface Held {
  snapshot: string;
  version: string;
  until: number;
}

/** Objects are asked by name, so the address says nothing. */
const ADDRESS = "https://circuit/";
const HELD = "circuit";

/**
 * Keeps each circuit in a Durable Object, the one named `tripcurve:` and its key; the namespace is that of `CircuitObject`. Atomic: what two
 * isolates write at once is never lost, probes are counted over all of them, wherever they run, and `share: "tally"` works. The time is the
 * objects' own. Others learn of a verdict at their next reading, within `refreshMs`.
 *
 * Cost: one request to the object a reading, one a write, two a probe's claim. A closed circuit answers without any; it reads once per
 * `refreshMs` in the background, and a shared tally is sent in batches, inside `waitUntil`: one a second, four where calls fail.
 *
 * An object lives near whoever asked for it first. Far from there a request takes some hundred ms: raise `storeTimeoutMs`, so that probes
 * are still claimed, or give each region circuits of its own by `prefix`. To choose the place yourself, wrap the namespace:
 * `{ idFromName: (name) => ns.idFromName(name), get: (id) => ns.get(id, { locationHint: "weur" }) }`.
 */
export function durableObjectStore<Id>(namespace: ObjectNamespace<Id>, { prefix = "tripcurve:" }: { prefix?: string } = {}): CircuitStore {
  if (typeof namespace?.idFromName !== "function") throw new InvalidCircuitError("namespace", namespace, "must be a Durable Object namespace");
  const ask = async (key: string, method: string, body?: string): Promise<unknown> => {
    const object = namespace.get(namespace.idFromName(prefix + key));
    return (await object.fetch(ADDRESS, body === undefined ? { method } : { method, body })).json();
  };
  return {
    consistency: "atomic",
    get: (key) => ask(key, "GET") as Promise<Stored>,
    set: (key, snapshot, { ttlMs, ifVersion }) =>
      ask(key, "PUT", JSON.stringify({ snapshot, ttlMs, ifVersion } satisfies Write)) as Promise<{ ok: boolean; version?: string }>,
    async delete(key) {
      await ask(key, "DELETE");
    },
  };
}

/**
 * The object of durableObjectStore. Export it from your Worker, and declare it as a SQLite-backed class:
 *
 *     export { CircuitObject } from "tripcurve/stores/durable-object";
 *
 *     "durable_objects": { "bindings": [{ "name": "CIRCUITS", "class_name": "CircuitObject" }] },
 *     "migrations": [{ "tag": "v1", "new_sqlite_classes": ["CircuitObject"] }]
 *
 * It holds one text and knows nothing of circuits. The participants decide, and a write counts only for the text it was decided from: the
 * same as if the object had decided, without policies, calls or a module in it. Comparing and setting is one synchronous step. Nothing is
 * kept in memory, no timer or alarm is ever set: the object sleeps between requests, and is the same after an eviction, a restart or a
 * deployment. A text whose time is over is not told any more; it is overwritten by the next, or erased by `delete` of the store.
 */
export class CircuitObject {
  /** What Cloudflare's types know a Durable Object by. */
  declare readonly __DURABLE_OBJECT_BRAND: never;
  readonly #storage: ObjectState["storage"];

  constructor({ storage }: ObjectState) {
    this.#storage = storage;
  }

  async fetch(request: { readonly method: string; json(): Promise<unknown> }): Promise<Response> {
    if (request.method === "PUT") return Response.json(this.#write((await request.json()) as Write));
    if (request.method === "DELETE") await this.#storage.deleteAll();
    return Response.json(this.#read());
  }

  #read(): Stored {
    const now = Date.now();
    const held = this.#storage.kv.get<Held>(HELD);
    return held && held.until > now ? { snapshot: held.snapshot, version: held.version, now } : { snapshot: null, version: null, now };
  }

  /** Nothing may be awaited in here: between the comparison and the write nobody else gets a turn. */
  #write({ snapshot, ttlMs, ifVersion }: Write): { ok: boolean; version: string | null } {
    const { version, now } = this.#read();
    if (ifVersion !== undefined && ifVersion !== version) return { ok: false, version };
    const held: Held = { snapshot, version: crypto.randomUUID(), until: now! + ttlMs };
    this.#storage.kv.put(HELD, held);
    return { ok: true, version: held.version };
  }
}
