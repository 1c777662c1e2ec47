// Deno KV in Deno, on a real file.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { denoKvStore } from "tripcurve/stores/deno-kv";
import { hosts } from "../hosts/hosts.mjs";

const { skip, run } = hosts.Deno;
const script = fileURLToPath(new URL("hosts/deno-kv.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tripcurve-deno-kv-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const ask = async (...args) => JSON.parse(await run(script, ...args));

test("Deno KV keeps the contract of a store", { skip }, async () => {
  const { checks, failed } = await ask("contract", join(folder, "contract"));
  assert.deepEqual(failed, []);
  assert.ok(checks > 10);
});

test("Deno KV: of two processes that write at once none loses a write", { skip }, async (t) => {
  const results = await Promise.all([1, 2].map(() => ask("count", join(folder, "count"), 60, 1)));
  assert.equal(Math.max(...results.map(({ counter }) => counter)), 120);
  for (const { refused, locked } of results) t.diagnostic(`${refused} refused writes, ${locked} times locked`);
});

test("Deno KV: whatever lies under its keys, calls go on, and the next decision is written over it", { skip }, async () => {
  for (const [what, told] of Object.entries(await ask("rubbish", join(folder, "rubbish")))) {
    assert.deepEqual(told, ["snapshot_unreadable", "fine", "ERR_CIRCUIT_OPEN", "1;O"], what);
  }
});

test("Deno KV: failures in two processes open one circuit at exactly the threshold", { skip }, async () => {
  const file = join(folder, "tally");
  assert.deepEqual(await ask("fail", file, 10), { state: "closed", failures: 10 });
  assert.deepEqual(await ask("fail", file, 9), { state: "closed", failures: 19 });
  assert.equal((await ask("fail", file, 1)).state, "open");
});

test("what is no Deno.Kv is refused at construction", () => {
  for (const kv of [undefined, {}, { get() {} }]) assert.throws(() => denoKvStore(kv), { code: "ERR_INVALID_CIRCUIT", field: "kv" });
  for (const prefix of [null, 5]) assert.throws(() => denoKvStore({ atomic() {} }, { prefix }), { code: "ERR_INVALID_CIRCUIT", field: "prefix" });
});
