// unstorage and Keyv, with drivers that are really there: memory, files, Redis.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import KeyvRedis from "@keyv/redis";
import Keyv from "keyv";
import { createClient } from "redis";
import { createStorage } from "unstorage";
import fsDriver from "unstorage/drivers/fs";
import memoryDriver from "unstorage/drivers/memory";
import redisDriver from "unstorage/drivers/redis";
import { CircuitBreaker } from "tripcurve";
import { keyvStore } from "tripcurve/stores/keyv";
import { unstorageStore } from "tripcurve/stores/unstorage";
import { storeContract } from "tripcurve/testing";
import { missing, startRedis } from "./redis-server.mjs";

const folder = mkdtempSync(join(tmpdir(), "tripcurve-unstorage-"));
const ends = [];
let server;
before(async () => (server = missing ? undefined : await startRedis()));
after(async () => {
  for (const end of ends.reverse()) await end();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

const storage = (driver) => {
  const made = createStorage({ driver });
  ends.push(() => made.dispose());
  return made;
};
const keyv = (options) => {
  const made = new Keyv(options);
  made.on("error", () => {});
  ends.push(() => made.disconnect());
  return made;
};
const url = () => `redis://127.0.0.1:${server.port}`;
const shared = new Map();

/** Each makes one more client of the same backend. */
const kinds = {
  "unstorage in memory": { make: (() => { const one = storage(memoryDriver()); return () => unstorageStore(one); })() },
  "unstorage in files": { make: () => unstorageStore(storage(fsDriver({ base: folder }))) },
  "unstorage on Redis": { skip: missing, make: () => unstorageStore(storage(redisDriver({ url: url() }))) },
  "Keyv in memory": { make: () => keyvStore(keyv({ store: shared })) },
  "Keyv on Redis": { skip: missing, make: () => keyvStore(keyv({ store: new KeyvRedis(url()), useKeyPrefix: false })) },
};

for (const [name, { make, skip }] of Object.entries(kinds)) {
  describe(name, { skip }, () => {
    let pair;
    const clients = () => (pair ??= { store: make(), other: make() });
    for (const check of storeContract(() => clients())) test(check.name, check.run);

    test("what one decides the other learns at its first call", async () => {
      const { store, other } = clients();
      const policy = { failures: 2, failureRate: null, openMs: 60_000 };
      const [one, two] = [store, other].map((store) => new CircuitBreaker("learns", policy, { store, storeTimeoutMs: 5_000 }));
      for (let i = 0; i < 2; i++) await one.run(() => Promise.reject(new Error("down"))).catch(() => {});
      await one.flush();
      await assert.rejects(two.run(() => "runs"), { code: "ERR_CIRCUIT_OPEN" });
    });
  });
}

test("on Redis what is stored expires with its time", { skip: missing }, async () => {
  const client = createClient({ url: url() }).on("error", () => {});
  await client.connect();
  for (const name of ["unstorage on Redis", "Keyv on Redis"]) {
    await kinds[name].make().set("expires", "text", { ttlMs: 90_001 });
    const keys = await client.keys("*expires");
    assert.equal(keys.length, 1, name);
    const leftMs = await client.pTTL(keys[0]);
    assert.ok(leftMs > 0 && leftMs <= 91_000, `${name}: ${leftMs}`);
    await client.del(keys);
  }
  client.destroy();
});

test("what is no storage, no Keyv or no prefix is refused at construction", () => {
  const invalid = (make, field) => assert.throws(make, { code: "ERR_INVALID_CIRCUIT", field });
  for (const client of [undefined, null, {}, new Map()]) invalid(() => unstorageStore(client), "storage");
  for (const client of [undefined, null, {}, createStorage()]) invalid(() => keyvStore(client), "keyv");
  for (const prefix of [null, 5, "all?one"]) invalid(() => unstorageStore(createStorage(), { prefix }), "prefix");
  for (const prefix of [null, 5]) invalid(() => keyvStore(new Keyv(), { prefix }), "prefix");
});

test("a Keyv whose adapter is away is a store that fails, and the calls go on", { skip: missing }, async () => {
  const away = await startRedis();
  const client = createClient({ socket: { host: "127.0.0.1", port: away.port } }).on("error", () => {});
  const store = new Keyv({ store: new KeyvRedis(client, { throwOnErrors: true, connectionTimeout: 200 }), throwOnErrors: true });
  store.on("error", () => {});
  const told = [];
  const breaker = new CircuitBreaker("away", {}, { store: keyvStore(store), refreshMs: 1 });
  breaker.on("diagnostic", ({ code }) => told.push(code));
  assert.equal(await breaker.run(() => "fine"), "fine");
  await away.close();
  const end = Date.now() + 10_000;
  while (told.length === 0 && Date.now() < end) assert.equal(await breaker.run(() => new Promise((resolve) => setTimeout(resolve, 20, "fine"))), "fine");
  assert.deepEqual(told, ["store_failed"]);
  client.destroy();
});
