// Keys: phil's grammar is ours, two of the others are looser. JavaScript and Rust each have the rule once; they have to agree.
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { CircuitBreaker, circuitKey, InvalidCircuitError } from "tripcurve";
import { parseKey } from "tripcurve/core";
import { rows } from "./trace.mjs";

/** Does the constructor take it? */
function isKey(key) {
  try {
    assert.equal(new CircuitBreaker(key).key, key);
    return true;
  } catch (error) {
    assert.ok(error instanceof InvalidCircuitError, error);
    assert.deepEqual([error.field, error.value, error.code], ["key", key, "ERR_INVALID_CIRCUIT"]);
    return false;
  }
}

function isKeyInRust(key) {
  try {
    return parseKey(key) === key;
  } catch (error) {
    assert.ok(error instanceof InvalidCircuitError, error);
    assert.equal(error.field, "key");
    return false;
  }
}

function joined(...parts) {
  try {
    return circuitKey(...parts);
  } catch (error) {
    assert.ok(error instanceof InvalidCircuitError && error.field === "key", error);
    return null;
  }
}

test("keys of phil are ours", (t) => {
  for (const { key, ok } of rows("phil", "keys")) assert.equal(isKey(key), ok, JSON.stringify(key));
  t.diagnostic(JSON.stringify({ table: "phil/keys", rows: rows("phil", "keys").length }));
});

// Theirs is looser in six rows: capitals, `:`, separators anywhere, any length. Nothing is the other way.
test("every key is a name of rasuvaeff", (t) => {
  const looser = [];
  for (const { key, ok } of rows("rasuvaeff", "keys")) {
    assert.ok(ok || !isKey(key), key);
    if (ok && !isKey(key)) looser.push(key.length > 87 ? "(long)" : key);
  }
  assert.deepEqual(looser, ["A.b_c-d:e", "..", "-", ":", "UPPER", "(long)"]);
  t.diagnostic(JSON.stringify({ table: "rasuvaeff/keys", rows: rows("rasuvaeff", "keys").length, looser: looser.length }));
});

// Theirs has no grammar and joins by `:`, so none of its names is a key here. Joined by `.` three are refused: a `:` inside a part,
// nothing at all, capitals with a space.
test("names of fuse are keys once joined by dots", (t) => {
  const refused = [];
  for (const { prefix, app, name, operation, key } of rows("fuse", "keys")) {
    assert.equal(isKey(key), false, key);
    const ours = joined(prefix, app, name, operation);
    if (ours === null) refused.push(key);
    else assert.equal(ours, key.replaceAll(":", "."));
  }
  assert.deepEqual(refused, ["cb:d:a:b:c", "", "fuse:app:UPPER case:op"]);
  t.diagnostic(JSON.stringify({ table: "fuse/keys", rows: rows("fuse", "keys").length, looser: refused.length }));
});

test("both rules agree on every key of the tables", () => {
  const keys = ["phil", "rasuvaeff", "fuse"].flatMap((system) => rows(system, "keys").map(({ key }) => key));
  for (const key of [...keys, ...keys.map((key) => key.replaceAll(":", "."))]) assert.equal(isKey(key), isKeyInRust(key), JSON.stringify(key));
});

const segment = fc.string({ unit: fc.constantFrom(..."abz019"), minLength: 1, maxLength: 6 });
const separator = fc.constantFrom(".", "_", "-");
const near = fc.string({ unit: fc.constantFrom(..."az09._-AZ /:`{@[é€\n\0\ud800"), maxLength: 10 });
const long = fc.tuple(fc.string({ unit: fc.constantFrom(..."a0."), minLength: 80, maxLength: 95 }), fc.constantFrom("", "a", ".", "é"));
const key = fc.array(fc.tuple(segment, separator), { maxLength: 30 }).chain((pairs) => segment.map((last) => pairs.flat().join("") + last));

test("both rules agree on strings, near misses and strings of any units", () => {
  const anything = fc.oneof(key, near, long.map((parts) => parts.join("")), fc.string({ unit: "binary" }), fc.string({ maxLength: 3 }), fc.anything());
  fc.assert(
    fc.property(anything, (string) => assert.equal(isKey(string), isKeyInRust(string))),
    { numRuns: 4_000 },
  );
});

test("parts that are keys make a key, unless it becomes too long", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(key, fc.constantFrom("", null, undefined)), { maxLength: 5 }), (parts) => {
      const given = parts.filter(Boolean).join(".");
      assert.equal(joined(...parts), given !== "" && given.length <= 87 ? given : null);
    }),
    { numRuns: 500 },
  );
});
