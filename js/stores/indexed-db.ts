// IndexedDB: one circuit, exactly, for all tabs and workers of an origin, also where there is no localStorage.

import { wallClock } from "../clock.js";
import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore } from "../store.js";

export interface IndexedDbOptions {
  /** The database, which is the store's own and made when it is first needed. Default `"tripcurve"`. */
  name?: string;
  /** What the keys in it begin with. Default: nothing. */
  prefix?: string;
}

/** A text that was deleted keeps its version, so that the next one is another. */
interface Entry {
  snapshot: string;
  version: number;
  /** By the host's clock, after which it says nothing any more. */
  until: number;
}

const CIRCUITS = "circuits";

/**
 * Keeps circuits in an IndexedDB database of their own: the atomic store of the browser, for pages, web workers and service workers alike.
 * Reading, and comparing and writing, are a transaction each, so probe limits and tallies hold exactly over all of them. They tell each
 * other by a BroadcastChannel, where there is one; else the next reading does.
 *
 * Every operation opens the database afresh: a database that was deleted is made again, and one that hangs holds up nothing after it.
 * Where IndexedDB is missing, forbidden or full operations reject: the circuit lives in memory, and a diagnostic says so. Nothing is
 * touched at import or when the store is made.
 *
 * Cost: 3 to 8 ms per operation, none of which a call waits for while the circuit is closed. A text that has expired stays until the next
 * one of its key.
 */
export function indexedDbStore({ name = "tripcurve", prefix = "" }: IndexedDbOptions = {}): CircuitStore {
  if (typeof name !== "string" || name === "") throw new InvalidCircuitError("name", name, "must be the name of a database");
  const channelName = `${name}:${CIRCUITS}`;
  const listeners = new Set<(key: string, snapshot: string | null) => void>();
  let channel: BroadcastChannel | undefined;

  const tell = (key: string, snapshot: string | null): void => {
    try {
      const sender = new BroadcastChannel(channelName);
      sender.postMessage({ key, snapshot });
      sender.close();
    } catch {
      // It is written; without a channel the others read it.
    }
  };

  const hear = ({ data }: MessageEvent<{ key?: unknown; snapshot?: unknown } | null>): void => {
    const { key, snapshot } = data ?? {};
    if (typeof key !== "string" || !key.startsWith(prefix) || !(typeof snapshot === "string" || snapshot === null)) return;
    for (const listener of [...listeners]) listener(key.slice(prefix.length), snapshot);
  };

  return {
    consistency: "atomic",
    async get(key) {
      const { live } = await within(name, "readonly", (circuits) => find(circuits, prefix + key));
      return live && { snapshot: live.snapshot, version: String(live.version) };
    },
    async set(key, snapshot, { ttlMs, ifVersion }) {
      const answer = await within(name, "readwrite", async (circuits) => {
        const { entry, live } = await find(circuits, prefix + key);
        const found = live ? String(live.version) : null;
        if (ifVersion !== undefined && ifVersion !== found) return { ok: false, version: found };
        // By the clock, so that a database made again does not begin with versions that somebody still knows.
        const version = Math.max(wallClock(), (entry?.version ?? 0) + 1);
        circuits.put({ snapshot, version, until: wallClock() + ttlMs } satisfies Entry, prefix + key);
        return { ok: true, version: String(version) };
      });
      if (answer.ok) tell(prefix + key, snapshot);
      return answer;
    },
    async delete(key) {
      await within(name, "readwrite", async (circuits) => {
        const { entry } = await find(circuits, prefix + key);
        if (entry) circuits.put({ ...entry, snapshot: "", until: 0 } satisfies Entry, prefix + key);
      });
      tell(prefix + key, null);
    },
    subscribe(listener) {
      listeners.add(listener);
      if (!channel && typeof BroadcastChannel === "function" && factory()) {
        channel = new BroadcastChannel(channelName);
        channel.onmessage = hear;
      }
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        channel?.close();
        channel = undefined;
      };
    },
  };
}

/** One transaction, committed when this resolves. */
async function within<T>(name: string, mode: IDBTransactionMode, work: (circuits: IDBObjectStore) => Promise<T>): Promise<T> {
  const database = await open(name);
  try {
    const transaction = database.transaction(CIRCUITS, mode);
    const [result] = await Promise.all([work(transaction.objectStore(CIRCUITS)), committed(transaction)]);
    return result;
  } finally {
    database.close();
  }
}

async function open(name: string): Promise<IDBDatabase> {
  const databases = factory();
  if (!databases) throw new Error("There is no IndexedDB");
  const opening = databases.open(name, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(CIRCUITS);
  return answered(opening);
}

/** The entry of a key; `live` if it is a text that still says something. What others left there is nothing. */
async function find(circuits: IDBObjectStore, at: string): Promise<{ entry: Entry | null; live: Entry | null }> {
  const found: Partial<Entry> | undefined = await answered(circuits.get(at));
  if (typeof found?.snapshot !== "string" || !Number.isSafeInteger(found.version)) return { entry: null, live: null };
  const entry = found as Entry;
  return { entry, live: entry.until > wallClock() ? entry : null };
}

const factory = (): IDBFactory | null | undefined => (globalThis as { indexedDB?: IDBFactory | null }).indexedDB;

const answered = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const committed = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
