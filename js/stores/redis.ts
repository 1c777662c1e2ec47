// Redis and what speaks its language (Valkey, KeyDB, a cluster of them): the processes of a service share their circuits.

import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore } from "../store.js";
import { PREFIX, hasMethods, scriptStore, type RedisStoreOptions, type ScriptClient } from "./redis-script.js";

/** The part of node-redis (`redis`) that is used: a client, a pool or a cluster. */
export interface NodeRedis {
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  del(key: string): Promise<unknown>;
}

/** The part of `ioredis` that is used: a client or a cluster. */
export interface IoRedis {
  evalsha(sha: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(script: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>;
  del(key: string): Promise<unknown>;
}

/** The part of a node-redis client that listens. */
export interface NodeRedisSubscriber {
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  evalSha: unknown;
}

/** The part of an ioredis client that listens. */
export interface IoRedisSubscriber {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: "message", listener: (channel: string, message: string) => void): unknown;
  off(event: "message", listener: (channel: string, message: string) => void): unknown;
  evalsha: unknown;
}

/**
 * Keeps circuits in Redis 7.0 or later, with the client you have: node-redis or ioredis, alone or as a cluster. Atomic: what two processes
 * write at once is never lost, and probes are counted over all of them. The time is the server's, so the clocks of the processes need not
 * agree. A circuit `http.shop` is the hash `{tripcurve:http.shop}`, one slot of a cluster, with fields `version` and `text`, and expires
 * when it says nothing any more.
 *
 * Cost: one round trip a reading, one a write; nothing per call while the circuit is closed. A server without the script is sent it once.
 *
 * With `channel` every write is published there, and with `subscriber` too, a second client that serves nothing but this store
 * (`client.duplicate()`, connected), the others' writes are heard at once instead of at the next reading. Should subscribing fail, or a
 * message be lost, the readings still come.
 *
 * Let the client fail fast where it can (`disableOfflineQueue` of node-redis, `enableOfflineQueue: false` of ioredis): the breaker
 * carries on by itself, and comes back later. What a fail-over of Redis loses is written again by those who know of an open circuit.
 */
export function redisStore(
  client: NodeRedis | IoRedis,
  { subscriber, ...options }: RedisStoreOptions & { readonly subscriber?: NodeRedisSubscriber | IoRedisSubscriber } = {},
): CircuitStore {
  const store = scriptStore(scriptClient(client), options);
  if (!subscriber) return store;
  if (options.channel === undefined) throw new InvalidCircuitError("channel", undefined, "must be given with subscriber");
  return { ...store, subscribe: subscription(subscriber, options.channel, options.prefix) };
}

function scriptClient(client: NodeRedis | IoRedis): ScriptClient {
  if (hasMethods<NodeRedis>(client, "evalSha", "eval", "del")) {
    return {
      evalSha: (sha, key, args) => client.evalSha(sha, { keys: [key], arguments: args }),
      eval: (script, key, args) => client.eval(script, { keys: [key], arguments: args }),
      del: (key) => client.del(key),
    };
  }
  if (hasMethods<IoRedis>(client, "evalsha", "eval", "del")) {
    return {
      evalSha: (sha, key, args) => client.evalsha(sha, 1, key, ...args),
      eval: (script, key, args) => client.eval(script, 1, key, ...args),
      del: (key) => client.del(key),
    };
  }
  throw unknownClient("client", client);
}

/** One subscription for all who listen, of whatever circuit: made when the first comes, ended when the last has gone. */
function subscription(subscriber: NodeRedisSubscriber | IoRedisSubscriber, channel: string, prefix = PREFIX): CircuitStore["subscribe"] {
  const listeners = new Set<(key: string, snapshot: string) => void>();
  const heard = (message: string): void => {
    const end = message.indexOf(" ", prefix.length);
    if (end < 0 || !message.startsWith(prefix)) return;
    for (const listener of [...listeners]) listener(message.slice(prefix.length, end), message.slice(end + 1));
  };
  const { join, leave } = line(subscriber, channel, heard);
  return (listener) => {
    if (listeners.size === 0) quietly(join());
    listeners.add(listener);
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) quietly(leave());
    };
  };
}

function line(subscriber: NodeRedisSubscriber | IoRedisSubscriber, channel: string, heard: (message: string) => void) {
  if (hasMethods<NodeRedisSubscriber>(subscriber, "evalSha", "subscribe", "unsubscribe")) {
    return { join: () => subscriber.subscribe(channel, heard), leave: () => subscriber.unsubscribe(channel) };
  }
  if (!hasMethods<IoRedisSubscriber>(subscriber, "evalsha", "subscribe", "unsubscribe", "on", "off")) throw unknownClient("subscriber", subscriber);
  const said = (on: string, message: string): void => {
    if (on === channel) heard(message);
  };
  return {
    join: () => {
      subscriber.on("message", said);
      return subscriber.subscribe(channel);
    },
    leave: () => {
      subscriber.off("message", said);
      return subscriber.unsubscribe(channel);
    },
  };
}

/** Whoever does not hear still reads. */
const quietly = (work: Promise<unknown>): void => void work.catch(() => {});

const unknownClient = (field: string, value: unknown): InvalidCircuitError => new InvalidCircuitError(field, value, "must be a client of redis or ioredis");
