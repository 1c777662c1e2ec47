// Compiled, never run: the clients as their makers type them are what the stores take, and another store's is not.
import { Redis as Upstash } from "@upstash/redis";
import { Cluster, Redis } from "ioredis";
import { createClient, createClientPool, createCluster } from "redis";
import { redisStore } from "tripcurve/stores/redis";
import { upstashStore } from "tripcurve/stores/upstash";

const node = createClient();
redisStore(node);
redisStore(node, { channel: "circuits", subscriber: node.duplicate() });
const node3 = createClient({ RESP: 3 });
redisStore(node3, { channel: "circuits", subscriber: node3.duplicate() });
redisStore(createClientPool());
const cluster = createCluster({ rootNodes: [] });
redisStore(cluster, { channel: "circuits", subscriber: cluster.duplicate() });

const io = new Redis();
redisStore(io, { prefix: "mine:", channel: "circuits", subscriber: io.duplicate() });
redisStore(new Cluster([]), { channel: "circuits", subscriber: new Cluster([]) });

const upstash = new Upstash({ url: "https://example.com", token: "secret" });
upstashStore(upstash, { channel: "circuits" });

// @ts-expect-error
redisStore(upstash);
// @ts-expect-error
upstashStore(io);
// @ts-expect-error
upstashStore(node);
// @ts-expect-error
redisStore(node, { channel: "circuits", subscriber: upstash });
