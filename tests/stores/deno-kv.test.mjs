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

test("Deno KV: failures in two processes open one circuit at exactly the threshold", { skip }, async () => {
  const file = join(folder, "tally");
  assert.deepEqual(await ask("fail", file, 10), { state: "closed", failures: 10 });
  assert.deepEqual(await ask("fail", file, 9), { state: "closed", failures: 19 });
  assert.equal((await ask("fail", file, 1)).state, "open");
});

test("what is no Deno.Kv is refused at construction", () => {
  for (const kv of [undefined, {}, { get() {} }]) assert.throws(() => denoKvStore(kv), { code: "ERR_INVALID_CIRCUIT", field: "kv" });
});
