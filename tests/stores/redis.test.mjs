// Redis: both clients, alone and as a cluster of three masters, and Upstash's over HTTP; each on a real server.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Redis as Upstash } from "@upstash/redis";
import { Cluster, Redis } from "ioredis";
import { RESP_TYPES, createClient, createClientPool, createCluster } from "redis";
import { CircuitBreaker } from "tripcurve";
import { redisStore } from "tripcurve/stores/redis";
import { upstashStore } from "tripcurve/stores/upstash";
import { storeContract } from "tripcurve/testing";
import { SCRIPT, SHA } from "../../dist/js/stores/redis-script.js";
import { missing, startCluster, startRedis, until } from "./redis-server.mjs";
import { startProxy, token } from "./upstash-proxy.mjs";

const host = "127.0.0.1";
const channel = "circuits";
const ttlMs = 60_000;
const policy = { minimumCalls: 4, openMs: 60_000 };
const down = () => Promise.reject(new Error("down"));

/** What was opened is ended, the latest first. */
const ends = [];
const opened = (thing, end) => (ends.push(end), thing);

const nodeRedis = async (port, options = {}) => {
  const client = createClient({ socket: { host, port }, ...options }).on("error", () => {});
  await client.connect();
  return opened(client, () => client.destroy());
};
const ioRedis = (port, options = {}) => {
  const client = new Redis({ host, port, ...options }).on("error", () => {});
  return opened(client, () => client.disconnect());
};
const nodeCluster = async (ports) => {
  const cluster = createCluster({ rootNodes: ports.map((port) => ({ socket: { host, port } })) });
  await cluster.connect();
  return opened(cluster, () => cluster.destroy());
};
const ioCluster = (ports) => {
  const cluster = new Cluster(ports.map((port) => ({ host, port })));
  return opened(cluster, () => cluster.disconnect());
};

let server, admin, cluster, proxy;
const port = () => server.port;

/** Of each kind there are three: a client, another, and one that listens. */
const kinds = {
  "node-redis": { client: () => nodeRedis(port()) },
  "node-redis with RESP 3": { client: () => nodeRedis(port(), { RESP: 3 }) },
  "ioredis": { client: () => ioRedis(port()) },
  "a node-redis cluster": { client: () => nodeCluster(cluster.ports) },
  "an ioredis cluster": { client: () => ioCluster(cluster.ports) },
};
const upstash = (options) => new Upstash({ url: proxy.url, token, enableTelemetry: false, ...options });

describe("Redis", { skip: missing }, () => {
  before(async () => {
    server = await startRedis();
    ends.push(server.close);
    admin = ioRedis(port());
    cluster = await startCluster();
    ends.push(cluster.close);
    proxy = await startProxy(admin);
    ends.push(proxy.close);
    for (const kind of Object.values(kinds)) kind.clients = [await kind.client(), await kind.client(), await kind.client()];
  });

  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  for (const [name, kind] of Object.entries(kinds)) {
    const make = () => {
      const [client, another, subscriber] = kind.clients;
      return { store: redisStore(client, { channel, subscriber }), other: redisStore(another, { channel }) };
    };
    for (const check of storeContract(make)) test(`${name}: ${check.name}`, check.run);
  }

  const overHttp = { "Upstash": {}, "Upstash, one request a command": { enableAutoPipelining: false }, "Upstash without base64": { responseEncoding: false } };
  for (const [name, options] of Object.entries(overHttp)) {
    const make = () => ({ store: upstashStore(upstash(options)), other: upstashStore(upstash(options)) });
    for (const check of storeContract(make)) test(`${name}: ${check.name}`, check.run);
  }

  test("the clients of all kinds share a circuit", async () => {
    const stores = [redisStore(kinds["node-redis"].clients[0]), redisStore(kinds.ioredis.clients[0]), upstashStore(upstash())];
    for (const [i, writer] of stores.entries()) {
      const { version } = await writer.set("mixed", `text ${i}`, { ttlMs });
      for (const store of stores) {
        const found = await store.get("mixed");
        assert.deepEqual([found.snapshot, found.version], [`text ${i}`, version]);
      }
    }
    await stores[0].delete("mixed");
  });

  test("a pool of node-redis is a client, too", async () => {
    const pool = await createClientPool({ socket: { host, port: port() } }).connect();
    const store = redisStore(pool);
    assert.equal((await store.set("pooled", "text", { ttlMs, ifVersion: null })).ok, true);
    assert.equal((await store.get("pooled")).snapshot, "text");
    await store.delete("pooled");
    pool.destroy();
  });

  test("the script's digest is the script's", () => assert.equal(createHash("sha1").update(SCRIPT).digest("hex"), SHA));

  for (const name of ["node-redis", "ioredis", "a node-redis cluster", "an ioredis cluster", "Upstash"]) {
    test(`${name}: a server that forgot the script is sent it again, once`, async () => {
      const store = name === "Upstash" ? upstashStore(upstash()) : redisStore(kinds[name].clients[0]);
      const servers = name.endsWith("cluster") ? cluster.ports.map((port) => ioRedis(port)) : [admin];
      await store.set("forgotten", "before", { ttlMs });
      for (const server of servers) await server.script("FLUSH");
      assert.equal((await store.get("forgotten")).snapshot, "before");
      assert.equal((await store.set("forgotten", "after", { ttlMs })).ok, true);
      const known = await Promise.all(servers.map((server) => server.script("EXISTS", SHA)));
      assert.equal(known.flat().filter(Boolean).length, 1);
      const calls = await evalsOf(servers);
      for (let i = 0; i < 5; i++) assert.equal((await store.get("forgotten")).snapshot, "after");
      assert.equal(await evalsOf(servers), calls);
      await store.delete("forgotten");
    });
  }

  test("a circuit is one hash, under its key in braces, so that a cluster has it in one slot", async () => {
    const store = redisStore(admin);
    const { version } = await store.set("http.shop", "text", { ttlMs });
    assert.deepEqual(await admin.keys("*http.shop*"), ["{tripcurve:http.shop}"]);
    assert.deepEqual(await admin.hgetall("{tripcurve:http.shop}"), { version, text: "text" });
    await redisStore(admin, { prefix: "{mine}/" }).set("http.shop", "text", { ttlMs });
    assert.deepEqual((await admin.keys("*http.shop*")).sort(), ["{tripcurve:http.shop}", "{{mine}/http.shop}"]);
    await admin.del("{tripcurve:http.shop}", "{{mine}/http.shop}");
  });

  test("a text expires with its time, and every write gives it a new one", async () => {
    const store = redisStore(admin);
    const left = () => admin.pttl("{tripcurve:short}");
    await store.set("short", "text", { ttlMs: 100_000 });
    assert.ok((await left()) > 50_000 && (await left()) <= 100_000, `${await left()} ms`);
    await store.set("short", "text", { ttlMs: 1_000_000.5 });
    assert.ok((await left()) > 900_000 && (await left()) <= 1_000_001, `${await left()} ms`);
    const { version } = await store.get("short");
    await store.set("short", "text", { ttlMs: 0, ifVersion: version });
    await until(async () => (await store.get("short")).snapshot === null, "the text to expire");
    assert.equal(await admin.exists("{tripcurve:short}"), 0);
    assert.equal((await store.set("short", "again", { ttlMs, ifVersion: version })).ok, false);
    assert.equal((await store.set("short", "again", { ttlMs, ifVersion: null })).ok, true);
    assert.notEqual((await store.get("short")).version, version);
    await store.delete("short");
  });

  test("the time is the server's, also where it holds nothing", async () => {
    const store = redisStore(admin);
    const told = async () => (([s, us]) => Math.floor(s * 1_000 + us / 1_000))(await admin.time());
    for (const snapshot of [null, "text"]) {
      if (snapshot) await store.set("clock", snapshot, { ttlMs });
      const earliest = await told();
      const found = await store.get("clock");
      assert.equal(found.snapshot, snapshot);
      assert.ok(Number.isInteger(found.now) && earliest <= found.now && found.now <= (await told()), `${earliest} ${found.now}`);
    }
    await store.delete("clock");
  });

  test("texts are opaque: also those that another would parse", async () => {
    const stores = [redisStore(kinds["node-redis"].clients[0]), redisStore(admin), upstashStore(upstash())];
    for (const text of ["1", "0123", "1e9999", "null", "true", '{"a":1}', "[1]", '"x"', "", " ", "=", "-", "*", "\r\n\0", "é😀", "OK"]) {
      for (const store of stores) {
        await store.set("opaque", text, { ttlMs });
        assert.equal((await store.get("opaque")).snapshot, text);
      }
    }
    await stores[0].delete("opaque");
  });

  test("clients that answer with other types, or put something before every key, are understood", async () => {
    const buffers = kinds["node-redis"].clients[0].withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String });
    const texts = ioRedis(port(), { stringNumbers: true, keyPrefix: "app:" });
    for (const client of [buffers, texts]) {
      const store = redisStore(client);
      const { version } = await store.set("typed", "text é", { ttlMs, ifVersion: null });
      const found = await store.get("typed");
      assert.deepEqual({ ...found, now: typeof found.now }, { snapshot: "text é", version, now: "number" });
      assert.equal((await store.set("typed", "again", { ttlMs, ifVersion: version })).ok, true);
      await store.delete("typed");
      assert.equal((await store.get("typed")).snapshot, null);
    }
  });

  test("what is in the way is an error, not silence, and is left alone", async () => {
    const stores = [redisStore(kinds["node-redis"].clients[0]), redisStore(admin), upstashStore(upstash())];
    await admin.set("{tripcurve:taken}", "theirs");
    for (const store of stores) {
      await assert.rejects(async () => store.get("taken"), /WRONGTYPE/);
      await assert.rejects(async () => store.set("taken", "text", { ttlMs }), /WRONGTYPE/);
      await assert.rejects(async () => store.set("taken", "text", { ttlMs, ifVersion: null }), /WRONGTYPE/);
    }
    assert.equal(await admin.get("{tripcurve:taken}"), "theirs");
    await admin.del("{tripcurve:taken}");
  });

  test("a hash that lost its text, or its version, is none, and is written over", async () => {
    const store = redisStore(admin);
    for (const field of ["text", "version"]) {
      await store.set("damaged", "text", { ttlMs });
      await admin.hdel("{tripcurve:damaged}", field);
      assert.deepEqual(await store.get("damaged").then(({ snapshot, version }) => [snapshot, version]), [null, null]);
      assert.equal((await store.set("damaged", "whole", { ttlMs, ifVersion: null })).ok, true);
      assert.equal((await store.get("damaged")).snapshot, "whole");
    }
    await store.delete("damaged");
  });

  test("a client that answers in a server's place is not believed", async () => {
    const store = upstashStore(upstash({ enableAutoPipelining: false, signal: AbortSignal.abort() }));
    await assert.rejects(async () => store.get("aborted"), /not what the script answers/);
    await assert.rejects(async () => store.set("aborted", "text", { ttlMs }), /not what the script answers/);
    assert.equal(await admin.exists("{tripcurve:aborted}"), 0);
  });

  test("without a channel nothing is published", async () => {
    const heard = [];
    const ear = ioRedis(port()).on("message", (_, message) => heard.push(message));
    await ear.subscribe(channel);
    await redisStore(admin).set("quiet", "text", { ttlMs });
    await redisStore(admin, { channel }).set("loud", "text", { ttlMs });
    await until(() => heard.length > 0, "a message");
    assert.deepEqual(heard, ["tripcurve:loud text"]);
    await admin.del("{tripcurve:quiet}", "{tripcurve:loud}");
  });

  test("a refused write is not published", async () => {
    const heard = [];
    const ear = ioRedis(port()).on("message", (_, message) => heard.push(message));
    await ear.subscribe(channel);
    const store = redisStore(admin, { channel });
    await store.set("refused", "first", { ttlMs });
    await store.set("refused", "second", { ttlMs, ifVersion: null });
    await store.set("refused", "third", { ttlMs });
    await until(() => heard.length > 1, "messages");
    assert.deepEqual(heard, ["tripcurve:refused first", "tripcurve:refused third"]);
    await store.delete("refused");
  });

  for (const name of ["node-redis", "ioredis"]) {
    test(`${name}: listeners share one subscription, hear only their prefix, and end it`, async () => {
      const subscriber = await kinds[name].client();
      const subscribers = async () => (await admin.pubsub("NUMSUB", "shared"))[1];
      const store = redisStore(admin, { channel: "shared", subscriber, prefix: "a/" });
      const [one, two] = [[], []];
      const stops = [store.subscribe((...of) => one.push(of)), store.subscribe((...of) => two.push(of))];
      await until(async () => (await subscribers()) === 1, "the subscription");
      for (const noise of ["", "a/", "a/without", "b/key text", "b/a/key text"]) await admin.publish("shared", noise);
      await redisStore(admin, { channel: "shared", prefix: "b/" }).set("key", "text", { ttlMs });
      await store.set("key", "with spaces in it", { ttlMs });
      await until(() => one.length > 0 && two.length > 0, "the message");
      assert.deepEqual([one, two], [[["key", "with spaces in it"]], [["key", "with spaces in it"]]]);
      stops[0]();
      stops[0]();
      assert.equal(await subscribers(), 1);
      stops[1]();
      await until(async () => (await subscribers()) === 0, "the end of the subscription");
      await admin.del("{a/key}", "{b/key}");
    });

    test(`${name}: where listening is forbidden the readings are left`, async () => {
      await admin.acl("SETUSER", "deaf", "on", ">word", "~*", "+@all", "resetchannels");
      const user = { username: "deaf", password: "word" };
      const subscriber = await (name === "ioredis" ? ioRedis(port(), user) : nodeRedis(port(), user));
      await assert.rejects(async () => subscriber.subscribe(channel, () => {}), /NOPERM/);
      const store = redisStore(admin, { channel, subscriber });
      const stop = store.subscribe(() => {});
      await store.set("deaf", "text", { ttlMs });
      assert.equal((await store.get("deaf")).snapshot, "text");
      stop();
      await store.delete("deaf");
    });
  }

  test("a subscription is there again when its server is", async () => {
    const own = await startRedis();
    ends.push(own.close);
    for (const name of ["node-redis", "ioredis"]) {
      const connect = () => (name === "ioredis" ? ioRedis(own.port) : nodeRedis(own.port));
      const [client, subscriber] = [await connect(), await connect()];
      const store = redisStore(client, { channel, subscriber });
      const heard = [];
      store.subscribe((key, text) => heard.push(text));
      const spreads = (text) =>
        until(async () => {
          await store.set("back", text, { ttlMs }).catch(() => {});
          return heard.includes(text);
        }, `${name} to hear ${text}`);
      await spreads("before");
      await own.stop("SIGKILL");
      await own.restart();
      await spreads("after");
    }
  });

  for (const [name, subscribes] of [["node-redis", true], ["ioredis", true], ["node-redis", false], ["an ioredis cluster", true], ["a node-redis cluster", true]]) {
    test(`${name}: what opens in one process is refused in another${subscribes ? ", at once by its channel" : ", with its next reading"}`, async () => {
      const [client, another, subscriber] = kinds[name].clients;
      const key = `opens.${Math.random().toString(36).slice(2)}`;
      const here = new CircuitBreaker(key, policy, { store: redisStore(client, { channel }) });
      const store = subscribes ? redisStore(another, { channel, subscriber }) : redisStore(another);
      const there = new CircuitBreaker(key, policy, { store, refreshMs: subscribes ? 600_000 : 20 });
      await here.run(() => 1);
      await there.run(() => 1);
      if (subscribes) await listening(store, key);
      for (let i = 0; i < 20; i++) await here.run(down).catch(() => {});
      assert.equal(here.state, "open");
      await until(async () => there.run(() => 1).then(() => false, (error) => error.code === "ERR_CIRCUIT_OPEN"), "the other to refuse");
      assert.equal(there.state, "open");
      await here.dispose();
      await there.dispose();
      await redisStore(client).delete(key);
    });
  }

  test("what is no client, prefix or channel fails when the store is made, and says which", () => {
    const invalid = (make, field) => assert.throws(make, (error) => error.name === "InvalidCircuitError" && error.field === field);
    for (const client of [undefined, null, {}, "redis://localhost", { get() {}, set() {} }]) {
      invalid(() => redisStore(client), "client");
      invalid(() => upstashStore(client), "client");
      if (client) invalid(() => redisStore(admin, { channel, subscriber: client }), "subscriber");
    }
    for (const value of [null, 5, {}]) {
      invalid(() => redisStore(admin, { prefix: value }), "prefix");
      invalid(() => upstashStore(upstash(), { prefix: value }), "prefix");
      invalid(() => redisStore(admin, { channel: value }), "channel");
    }
    invalid(() => redisStore(admin, { subscriber: admin }), "channel");
  });
});

/** How often whole scripts were sent. */
async function evalsOf(servers) {
  const stats = await Promise.all(servers.map((server) => server.info("commandstats")));
  return stats.reduce((sum, text) => sum + Number(/cmdstat_eval:calls=(\d+)/.exec(text)?.[1] ?? 0), 0);
}

/** Until a message gets through to those who listen by this store. */
async function listening(store, key) {
  let heard = false;
  const stop = store.subscribe(() => (heard = true));
  await until(async () => (await store.set(`${key}.x`, "text", { ttlMs: 1_000 })) && heard, "the subscription");
  stop();
}
