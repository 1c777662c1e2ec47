// SQLite, as Node, Deno, Bun and better-sqlite3 have it, on a real file: the contract, processes that write at once, and a file in trouble.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sqliteStore } from "tripcurve/stores/sqlite";
import { hosts } from "../hosts/hosts.mjs";

const script = fileURLToPath(new URL("hosts/sqlite.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tripcurve-sqlite-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = (name) => join(folder, `${name.replace(/\W/g, "-")}.db`);

// Mostly it has to be compiled, which takes minutes: whoever wants it installs it.
const library = "better-sqlite3";
const found = await import(library).then(() => true, () => false);
const better = {
  skip: found ? false : `${library} is not installed: npm install --no-save ${library}@12.11.1`,
  run: async (script, verb, file, times = 0, others = 0) => (await promisify(execFile)(process.execPath, [script, verb, file, times, others, library].map(String))).stdout,
};

for (const [name, { skip, run }] of Object.entries({ ...hosts, [library]: better })) {
  const ask = async (...args) => JSON.parse(await run(script, ...args));

  test(`SQLite of ${name} keeps the contract of a store`, { skip }, async () => {
    const { checks, failed } = await ask("contract", file(`contract ${name}`));
    assert.deepEqual(failed, []);
    assert.ok(checks > 10);
  });

  test(`SQLite of ${name}: of two processes that write at once none loses a write`, { skip }, async (t) => {
    const at = file(`count ${name}`);
    await ask("sweep", at); // whoever is first changes the mode of the file, which has to be done alone
    const results = await Promise.all([1, 2].map(() => ask("count", at, 500, 1)));
    assert.equal(Math.max(...results.map(({ counter }) => counter)), 1_000);
    t.diagnostic(`${results.map(({ refused }) => refused).join(" and ")} refused writes`);
  });

  test(`SQLite of ${name}: failures in two processes open one circuit at exactly the threshold`, { skip }, async () => {
    const at = file(`tally ${name}`);
    assert.deepEqual(await ask("fail", at, 10), { state: "closed", failures: 10 });
    assert.deepEqual(await ask("fail", at, 9), { state: "closed", failures: 19 });
    assert.equal((await ask("fail", at, 1)).state, "open");
  });

  test(`SQLite of ${name}: while the file is locked calls go on, told once, and the verdict is written afterwards`, { skip }, async () => {
    const { results, told, newcomer } = await ask("locked", file(`locked ${name}`));
    assert.deepEqual(results, ["fine", "down", "down", "ERR_CIRCUIT_OPEN"]);
    assert.deepEqual(told, ["store_failed"]);
    assert.equal(newcomer, "ERR_CIRCUIT_OPEN");
  });

  test(`SQLite of ${name}: whatever lies in its rows, calls go on, and the next decision is written over it`, { skip }, async () => {
    for (const [what, told] of Object.entries(await ask("rubbish", file(`rubbish ${name}`)))) {
      assert.deepEqual(told, ["snapshot_unreadable", "fine", "ERR_CIRCUIT_OPEN", "1;O"], what);
    }
  });

  test(`SQLite of ${name}: what has expired is gone with a store's first write`, { skip }, async () => {
    assert.deepEqual(await ask("sweep", file(`sweep ${name}`)), [3, 2]);
  });
}

test("what is no database, or no name of a table, is refused at construction", () => {
  for (const database of [undefined, {}, { exec() {} }]) assert.throws(() => sqliteStore(database), { code: "ERR_INVALID_CIRCUIT", field: "database" });
  const database = { exec() {}, prepare() {} };
  for (const table of ["", "a b", "1a", "x; DROP TABLE y", 5, null]) assert.throws(() => sqliteStore(database, { table }), { code: "ERR_INVALID_CIRCUIT", field: "table" });
});
