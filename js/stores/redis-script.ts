// What both Redis stores have in common: one constant script that reads, or compares and sets. It sees keys, texts and versions, no rules.

import { InvalidCircuitError } from "../errors.js";
import type { CircuitStore } from "../store.js";

// A circuit is a hash of `version` and `text`. A version is the server's time and a random mark of the write: it never comes again, also
// after the key expired or was deleted, nor when the server's clock is set back. A text is answered with a mark before it, so that no
// client takes it for JSON. The commands used: TIME, HMGET, HSET, PEXPIRE and PUBLISH, as of Redis 7.0.
export const SCRIPT = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HMGET', KEYS[1], 'version', 'text')
local version = held[1] and held[2] and held[1] or '-'
local text, ttl, expected, mark, channel, message = unpack(ARGV)
if not text then
  if version == '-' then return {now} end
  return {now, version, '=' .. held[2]}
end
if expected ~= '*' and expected ~= version then return {now} end
version = time[1] .. '.' .. time[2] .. '-' .. mark
redis.call('HSET', KEYS[1], 'version', version, 'text', text)
redis.call('PEXPIRE', KEYS[1], ttl)
if channel then redis.call('PUBLISH', channel, message .. text) end
return {now, version}`;

/** The script's SHA-1. */
export const SHA = "e5fdb6605fe0166ec5bc3cfa616ec3908708fe1c";

export const PREFIX = "tripcurve:";

export interface RedisStoreOptions {
  /** Before every key. Default `"tripcurve:"`. */
  readonly prefix?: string;
  /** Writes are published on this channel. Default: they are not. */
  readonly channel?: string;
}

/** How a client runs a script with one key. */
export interface ScriptClient {
  evalSha(sha: string, key: string, args: string[]): PromiseLike<unknown>;
  eval(script: string, key: string, args: string[]): PromiseLike<unknown>;
  del(key: string): PromiseLike<unknown>;
}

/** Texts may come as buffers, numbers as texts: it depends on the client. */
type Answer = readonly [now: unknown, version?: unknown, text?: unknown];

export function scriptStore(client: ScriptClient, { prefix = PREFIX, channel }: RedisStoreOptions): CircuitStore {
  parseText("prefix", prefix);
  if (channel !== undefined) parseText("channel", channel);
  // In a cluster what is in the braces chooses the slot: all of it, so that whoever adds to the name stays in the slot.
  const name = (key: string): string => `{${prefix}${key}}`;
  const run = async (key: string, args: string[]): Promise<Answer> => {
    let answer: unknown;
    try {
      answer = await client.evalSha(SHA, name(key), args);
    } catch (error) {
      // The server forgets scripts when it restarts or is told to; EVAL makes it remember.
      if (!String((error as Error | undefined)?.message).includes("NOSCRIPT")) throw error;
      answer = await client.eval(SCRIPT, name(key), args);
    }
    // Some clients answer themselves what the server should have, as when they are told to abort.
    if (!Array.isArray(answer)) throw new Error(`This is not what the script answers: ${String(answer)}`);
    return answer as unknown as Answer;
  };
  return {
    consistency: "atomic",
    async get(key) {
      const [now, version, text] = await run(key, []);
      const held = version === undefined ? { snapshot: null, version: null } : { snapshot: String(text).slice(1), version: String(version) };
      return { ...held, now: Number(now) };
    },
    async set(key, snapshot, { ttlMs, ifVersion }) {
      const expected = ifVersion === undefined ? "*" : (ifVersion ?? "-");
      const mark = Math.random().toString(36).slice(2);
      const told = channel === undefined ? [] : [channel, `${prefix}${key} `];
      const [, version] = await run(key, [snapshot, String(Math.ceil(ttlMs)), expected, mark, ...told]);
      return version === undefined ? { ok: false } : { ok: true, version: String(version) };
    },
    async delete(key) {
      await client.del(name(key));
    },
  };
}

export const hasMethods = <T>(value: unknown, ...names: (keyof T)[]): value is T =>
  names.every((name) => typeof (value as Partial<T> | null | undefined)?.[name] === "function");

function parseText(field: string, value: unknown): void {
  if (typeof value !== "string") throw new InvalidCircuitError(field, value, "must be a text");
}
