// SQLite, as Node, Deno and Bun have it, on a real file: the contract, and processes that write at once.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sqliteStore } from "tripcurve/stores/sqlite";
import { hosts } from "../hosts/hosts.mjs";

const script = fileURLToPath(new URL("hosts/sqlite.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tripcurve-sqlite-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = (name) => join(folder, `${name.replace(/\W/g, "-")}.db`);

for (const [name, { skip, run }] of Object.entries(hosts)) {
  const ask = async (...args) => JSON.parse(await run(script, ...args));

  test(`SQLite of ${name} keeps the contract of a store`, { skip }, async () => {
    const { checks, failed } = await ask("contract", file(`contract ${name}`));
    assert.deepEqual(failed, []);
    assert.ok(checks > 10);
  });

  test(`SQLite of ${name}: of two processes that write at once none loses a write`, { skip }, async (t) => {
    await ask("count", file(`count ${name}`), 1); // whoever is first changes the mode of the file, which has to be done alone
    const results = await Promise.all([1, 2].map(() => ask("count", file(`count ${name}`), 300)));
    assert.equal(Math.max(...results.map(({ counter }) => counter)), 601);
    t.diagnostic(`${results.map(({ refused }) => refused).join(" and ")} refused writes`);
  });

  test(`SQLite of ${name}: failures in two processes open one circuit at exactly the threshold`, { skip }, async () => {
    const at = file(`tally ${name}`);
    assert.deepEqual(await ask("fail", at, 10), { state: "closed", failures: 10 });
    assert.deepEqual(await ask("fail", at, 9), { state: "closed", failures: 19 });
    assert.equal((await ask("fail", at, 1)).state, "open");
  });
}

test("what is no database, or no name of a table, is refused at construction", () => {
  for (const database of [undefined, {}, { exec() {} }]) assert.throws(() => sqliteStore(database), { code: "ERR_INVALID_CIRCUIT", field: "database" });
  const database = { exec() {}, prepare() {} };
  for (const table of ["", "a b", "1a", "x; DROP TABLE y", 5, null]) assert.throws(() => sqliteStore(database, { table }), { code: "ERR_INVALID_CIRCUIT", field: "table" });
});
