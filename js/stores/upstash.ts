// Redis over HTTP, by Upstash's REST client: for edge workers, which can keep no connection.

import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore } from "../store.js";
import { hasMethods, scriptStore, type RedisStoreOptions } from "./redis-script.js";

/** The part of a client of `@upstash/redis` that is used. */
export interface UpstashRedis {
  evalsha(sha: string, keys: string[], args: string[]): Promise<unknown>;
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
  del(key: string): Promise<unknown>;
}

/**
 * Keeps circuits in an Upstash database, as redisStore does, with the same script and under the same keys: workers and services of one
 * database share circuits. Every operation is one HTTP request. With `channel` its writes are published for those who listen by
 * redisStore; over HTTP itself nobody can listen, and learns within `refreshMs`.
 *
 * In Cloudflare Workers make the client with `enableAutoPipelining: false`: else operations of several requests may become one.
 */
export function upstashStore(client: UpstashRedis, options: RedisStoreOptions = {}): CircuitStore {
  if (!hasMethods<UpstashRedis>(client, "evalsha", "eval", "del")) throw new InvalidCircuitError("client", client, "must be a client of @upstash/redis");
  return scriptStore(
    {
      evalSha: (sha, key, args) => client.evalsha(sha, [key], args),
      eval: (script, key, args) => client.eval(script, [key], args),
      del: (key) => client.del(key),
    },
    options,
  );
}
