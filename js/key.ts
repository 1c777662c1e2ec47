// Names of circuits. `originKey` is a storage promise: the same origin has the same key in every version.

import { InvalidCircuitError } from "./errors.js";
import { baseUrl } from "./host.js";

const MOST = 87;
const GRAMMAR = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;

/** No port, no user, no escape, no address of digits, nothing in capitals: the name fits the grammar as it is. */
const PLAIN = /^(https?):\/\/((?:[a-z0-9]+[._-])*[a-z][a-z0-9]*)(?:[/?#]|$)/;

const fits = (key: string): boolean => key.length <= MOST && GRAMMAR.test(key);

export function parseKey(key: string): string {
  if (typeof key === "string" && fits(key)) return key;
  throw new InvalidCircuitError("key", key, `must be a-z and 0-9 joined by single . _ or -, at most ${MOST} bytes`);
}

/**
 * The circuit of an address: `https.api.example.com`, with a port that is not the default one as last segment. What does not fit the
 * grammar of keys or its 87 bytes becomes `url.`, the first label that fits and a dot, if one does, and a hash of the origin.
 * A relative address is relative to the page; where there is none it throws a TypeError.
 */
export function originKey(url: string | URL): string {
  // Parsing costs more than everything else a guarded call does: not where the address shows its key as it is.
  const plain = PLAIN.exec(url as string);
  if (plain && plain[0].length < MOST) return `${plain[1]}.${plain[2]}`;
  const { protocol, hostname, host, port } = new URL(url, baseUrl());
  const key = `${protocol.slice(0, -1)}.${hostname}${port && `.${port}`}`;
  if (fits(key)) return key;
  const label = hostname.split(".").find(fits);
  return `url.${label === undefined ? "" : `${label}.`}${fnv1a(`${protocol}//${host}`)}`;
}

/**
 * Joins what names a circuit: `circuitKey("shop", null, "payments")` is `shop.payments`. Empty parts are left out. A part may hold dots
 * itself, so ("a.b", "c") and ("a", "b.c") are one circuit. Throws InvalidCircuitError where the result is no key.
 */
export function circuitKey(...parts: (string | null | undefined)[]): string {
  return parseKey(parts.filter(Boolean).join("."));
}

/** FNV-1a in 64 bits, as 16 hexadecimal digits. */
function fnv1a(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, "0");
}
