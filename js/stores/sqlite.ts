// SQLite: the processes of one host share their circuits through a file.

import { wallClock } from "../clock.js";
import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore } from "../store.js";

/** The part of a database that is used: `node:sqlite`'s DatabaseSync, better-sqlite3's and Bun's Database have it. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}
export interface SqliteStatement {
  get(...values: (string | number)[]): unknown;
  run(...values: (string | number)[]): { changes: number | bigint };
}

export interface SqliteStoreOptions {
  /** Its table, made when it is missing. A letter or `_`, then letters, digits and `_`. Default `"tripcurve"`. */
  table?: string;
}

interface Row {
  snapshot: string;
  version: string;
}

/**
 * Keeps circuits in a table of an open database of SQLite 3.37 or later. Atomic, each operation one statement: what two processes write at
 * once is never lost, and probes are counted over all of them. For one host: a database on a network share has no locks to rely on. What
 * has expired is removed by a store's first write.
 *
 * Cost: synchronous, some 10 µs a reading and some 100 µs a write; nothing per call while the circuit is closed. Readers do not hold up
 * writers after `PRAGMA journal_mode = WAL`; a writer that meets another fails at once unless the database waits (`PRAGMA busy_timeout = 50`),
 * and a failure is what it always is: the circuit goes on alone and comes back later.
 */
export function sqliteStore(database: SqliteDatabase, { table = "tripcurve" }: SqliteStoreOptions = {}): CircuitStore {
  for (const method of ["exec", "prepare"] as const) {
    if (typeof database?.[method] !== "function") throw new InvalidCircuitError("database", database, "must be an open SQLite database");
  }
  if (typeof table !== "string" || !/^[A-Za-z_]\w{0,62}$/.test(table)) throw new InvalidCircuitError("table", table, "must be a letter or _, then letters, digits and _");

  let swept = false;
  const statements = new Map<string, SqliteStatement>();
  const prepared = (sql: string): SqliteStatement => {
    if (statements.size === 0) {
      // Strict: else a column would take what is no text.
      database.exec(`CREATE TABLE IF NOT EXISTS ${table} (key TEXT PRIMARY KEY, snapshot TEXT NOT NULL, version TEXT NOT NULL, ends INTEGER NOT NULL) STRICT, WITHOUT ROWID`);
    }
    const statement = statements.get(sql) ?? database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  const insert = `INSERT INTO ${table} (snapshot, version, ends, key) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET snapshot = excluded.snapshot, version = excluded.version, ends = excluded.ends`;
  return {
    consistency: "atomic",
    get(key) {
      const found = prepared(`SELECT snapshot, version FROM ${table} WHERE key = ? AND ends > ?`).get(key, wallClock()) as Row | null | undefined;
      return found ? { snapshot: found.snapshot, version: found.version } : null;
    },
    set(key, snapshot, { ttlMs, ifVersion }) {
      const now = wallClock();
      if (!swept) prepared(`DELETE FROM ${table} WHERE ends <= ?`).run(now);
      swept = true;
      // Never comes again, also after a deletion.
      const version = `${now}-${Math.random().toString(36).slice(2)}`;
      const values = [snapshot, version, now + Math.ceil(ttlMs), key] as const;
      const { changes } =
        ifVersion === undefined
          ? prepared(insert).run(...values)
          : ifVersion === null
            ? prepared(`${insert} WHERE ends <= ?`).run(...values, now)
            : prepared(`UPDATE ${table} SET snapshot = ?, version = ?, ends = ? WHERE key = ? AND version = ? AND ends > ?`).run(...values, ifVersion, now);
      return Number(changes) === 1 ? { ok: true, version } : { ok: false };
    },
    delete(key) {
      prepared(`DELETE FROM ${table} WHERE key = ?`).run(key);
    },
  };
}
