// What can be asked for, and what cannot: refused when the breaker is made, with field, value and bounds.
import assert from "node:assert/strict";
import test from "node:test";
import { CircuitBreaker, CircuitError, CircuitRegistry, circuitKey, InvalidCircuitError, originKey, presets, wrapFetch } from "tripcurve";

const make = (policy, options) => new CircuitBreaker("k", policy, options);
const most = 2 ** 53 - 1;

const numbers = {
  openMs: [0, most],
  minimumCalls: [1, 10_000],
  failures: [1, 10_000],
  slowMs: [1, most],
  probeLimit: [1, 1_000],
  probeSuccesses: [1, 1_000],
  probeLeaseMs: [1, most],
  maxOpenMs: [30_000, most],
};
for (const [field, [min, max]] of Object.entries(numbers)) {
  const bad = [NaN, Infinity, -Infinity, -1, 0.5, "5", true, {}, 5n, Symbol("s"), 1e400, 2 ** 53, min - 1, max + 1];
  if (!["failures", "slowMs", "probeLimit", "probeLeaseMs"].includes(field)) bad.push(null);
  for (const value of bad) {
    test(`${field}: ${String(value)} is refused and the bounds are named (R36)`, () => {
      assert.throws(() => make({ [field]: value }), (error) => {
        assert.ok(error instanceof InvalidCircuitError && error instanceof CircuitError);
        assert.deepEqual([error.name, error.code, error.field, error.value, error.min, error.max], ["InvalidCircuitError", "ERR_INVALID_CIRCUIT", field, value, min, max]);
        assert.match(error.message, new RegExp(`^${field} must be a whole number from ${min} to ${max} \\(got `));
        return true;
      });
    });
  }
  test(`${field}: its bounds and undefined are accepted`, () => {
    for (const value of [min, max, undefined]) make({ [field]: value, ...(field === "openMs" ? { maxOpenMs: most } : {}) }).dispose();
  });
}

const refused = [
  [{ failureRate: 0 }, "failureRate", /above 0 and at most 1/],
  [{ failureRate: 50 }, "failureRate", /above 0 and at most 1/],
  [{ failureRate: -0.5 }, "failureRate"],
  [{ failureRate: "0.5" }, "failureRate"],
  [{ failureRate: NaN }, "failureRate"],
  [{ failureRate: 1 / 3 }, "failureRate", /write a third as \[1, 3\]/],
  [{ failureRate: 1e-10 }, "failureRate", /9 decimals/],
  [{ failureRate: [3, 2] }, "failureRate"],
  [{ failureRate: [0, 2] }, "failureRate"],
  [{ failureRate: [1, 2, 3] }, "failureRate"],
  [{ failureRate: [1] }, "failureRate"],
  [{ failureRate: ["1", "2"] }, "failureRate"],
  [{ slowRate: 2 }, "slowRate"],
  [{ slowRate: null }, "slowRate"],
  [{ backoff: 0.5 }, "backoff", /from 1 to 10/],
  [{ backoff: 11 }, "backoff"],
  [{ jitter: 1.5 }, "jitter", /from 0 to 1/],
  [{ jitter: -0.1 }, "jitter"],
  [{ shadow: 1 }, "shadow"],
  [{ judgeOn: "all" }, "judgeOn", /failure, any/],
  [{ failures: 3, failureRate: 0.5 }, "failures", /excludes failureRate/],
  [{ failureRate: null }, "failureRate", /nothing would ever open/],
  [{ openMs: 10, maxOpenMs: 9 }, "maxOpenMs"],
  [{ window: { kind: "calls", last: 5 }, minimumCalls: 6 }, "minimumCalls"],
  [{ window: { kind: "calls", last: 5 }, failures: 6 }, "failures"],
  [{ window: { kind: "calls" } }, "window.last"],
  [{ window: { kind: "calls", last: 10_001 } }, "window.last"],
  [{ window: { kind: "calls", last: 5, ms: 5 } }, "window.ms", /unknown/],
  [{ window: { kind: "calls", last: 5, withinMs: 0 } }, "window.withinMs"],
  [{ window: { kind: "time" } }, "window.ms"],
  [{ window: { kind: "time", ms: 1_000, buckets: 0 } }, "window.buckets"],
  [{ window: { kind: "time", ms: 1_000, buckets: 3 } }, "window.buckets", /must divide window.ms \(1000\)/],
  [{ window: { kind: "time", ms: 1_000, bucket: 3 } }, "window.bucket", /did you mean buckets\?/],
  [{ window: { kind: "sliding" } }, "window.kind", /fixed, time, calls, consecutive/],
  [{ window: "time" }, "window"],
  [{ window: null }, "window"],
];
for (const [policy, field, message = /./] of refused) {
  test(`${JSON.stringify(policy)} is refused at ${field} (R36)`, () => {
    assert.throws(() => make(policy), { code: "ERR_INVALID_CIRCUIT", field, message });
  });
}

const misspelt = { openms: "openMs", failurerate: "failureRate", failureRatio: "failureRate", minimumCall: "minimumCalls", probelimit: "probeLimit", maxOpen: "maxOpenMs", windows: "window" };
for (const [wrong, right] of Object.entries(misspelt)) {
  test(`${wrong} is refused and ${right} suggested`, () => {
    assert.throws(() => make({ [wrong]: 1 }), { field: wrong, message: new RegExp(`did you mean ${right}\\?`) });
  });
}

test("a name that resembles nothing is refused with the names there are", () => {
  assert.throws(() => make({ somethingElse: 1 }), { message: /there are failureRate, failures/ });
});

test("unknown options of the breaker, the registry and the guard are refused", () => {
  assert.throws(() => make({}, { clocks: 1 }), { field: "clocks", message: /clock\?/ });
  assert.throws(() => make({}, { storeTimeoutMs: 0 }), { field: "storeTimeoutMs" });
  assert.throws(() => make({}, { refreshMs: "1" }), { field: "refreshMs" });
  assert.throws(() => make({}, { share: "everything" }), { field: "share" });
  assert.throws(() => new CircuitRegistry({}, { maxCircuit: 1 }), { message: /maxCircuits\?/ });
  assert.throws(() => new CircuitRegistry({}, { maxCircuits: 0 }), { field: "maxCircuits" });
  assert.throws(() => new CircuitRegistry({ openMs: -1 }), { field: "openMs" });
  assert.throws(() => wrapFetch(fetch, { timeoutMs: 0 }), { field: "timeoutMs" });
  assert.throws(() => wrapFetch(fetch, { timeout: 5 }), { code: "ERR_INVALID_CIRCUIT" });
  assert.throws(() => wrapFetch(fetch, { policy: {}, registry: new CircuitRegistry() }), { field: "policy" });
});

test("frozen options are taken, and options changed later are not looked at (R36)", () => {
  const window = { kind: "calls", last: 10 };
  const policy = { window, failures: 2 };
  const breaker = make(policy);
  policy.failures = 1;
  window.last = 1;
  breaker.record("failure");
  assert.equal(breaker.state, "closed");
  make(Object.freeze({ window: Object.freeze(window) }));
});

test("shares are the decimals that were written, exactly", () => {
  for (const [failureRate, failures, calls, state] of [
    [0.33, 1, 3, "open"],
    [0.34, 1, 3, "closed"],
    [[1, 3], 1, 3, "open"],
    [0.29, 29, 100, "open"],
    [0.29, 28, 100, "closed"],
    [0.58, 58, 100, "open"],
    [0.333333333, 1, 3, "open"],
    [1, 4, 4, "open"],
    [1, 3, 4, "closed"],
  ]) {
    const breaker = make({ failureRate, minimumCalls: calls });
    for (let i = 0; i < calls - failures; i++) breaker.record("success");
    for (let i = 0; i < failures; i++) breaker.record("failure");
    assert.equal(breaker.state, state, `${failures} of ${calls} at ${failureRate}`);
  }
});

test("a policy of nothing is a policy, and so is every preset", () => {
  make();
  for (const preset of Object.values(presets)) make(preset);
});

// ---- keys

for (const key of ["a", "a.b", "a-b_c.d9", "0", "https.api.example.com", "a".repeat(87)]) {
  test(`the key ${key} is one`, () => assert.equal(new CircuitBreaker(key).key, key));
}
for (const key of ["", "A", "a b", "a..b", ".a", "a.", "a.-b", "ä", "a/b", "a:b", "a\n", "a".repeat(88), null, undefined, 5, ["a"]]) {
  test(`${JSON.stringify(key)} is no key`, () => assert.throws(() => new CircuitBreaker(key), { code: "ERR_INVALID_CIRCUIT", field: "key", value: key }));
}

const origins = {
  "https://api.example.com/orders?x=1#y": "https.api.example.com",
  "HTTPS://API.Example.com": "https.api.example.com",
  "http://localhost": "http.localhost",
  "http://localhost:8080/x": "http.localhost.8080",
  "https://example.com:443": "https.example.com",
  "http://example.com:443": "http.example.com.443",
  "http://127.1/": "http.127.0.0.1",
  "https://user:pass@example.com": "https.example.com",
  "https://bücher.example": "url.example.9f50a19618bbd065",
  "http://[::1]:3000/": "url.107d0f6177ac7f8f",
  "https://my_host.example": "https.my_host.example",
  "https://example.com./": "url.example.0c8b42cfdcb3cac7",
};
for (const [url, key] of Object.entries(origins)) {
  test(`the circuit of ${url} is ${key}, for ever`, () => {
    assert.equal(originKey(url), key);
    assert.equal(originKey(new URL(url)), key);
    assert.equal(new CircuitBreaker(key).key, key);
  });
}

test("the short way to a key gives what parsing the address gives", () => {
  const hosts = ["a", "a.b", "a-b.c", "a_b.c", "1.a", "a.1a", "a1.b2", "a..b", "a.b.", "-a.b", "a--b.c", "A.b", "1.2.3.4", "0x7f.1", "a.0x1", "localhost", "b".repeat(63), "xn--a.b", "a%41.b", "a b", ""];
  for (const scheme of ["http", "https", "HTTP", "ftp"]) {
    for (const host of hosts) {
      for (const tail of ["", "/", "/x", "?q", "#h", ":80", ":443/", ":8080", "@c.d/", "\\x", "\t/"]) {
        const address = `${scheme}://${host}${tail}`;
        let expected;
        try {
          expected = originKey(new URL(address));
        } catch (error) {
          assert.throws(() => originKey(address), error.constructor, address);
          continue;
        }
        assert.equal(originKey(address), expected, address);
      }
    }
  }
});

test("an origin that is too long keeps its first label and a hash", () => {
  const host = `${"a".repeat(63)}.${"b".repeat(63)}.example`;
  const key = originKey(`https://${host}`);
  assert.match(key, /^url\.a{63}\.[0-9a-f]{16}$/);
  assert.notEqual(originKey(`https://${host}:8443`), key);
  assert.notEqual(originKey(`http://${host}`), key);
  assert.ok(new CircuitBreaker(key));
});

test("a relative address has an origin only where there is a page", () => {
  assert.throws(() => originKey("/orders"), TypeError);
  globalThis.location = { href: "https://shop.example/cart" };
  try {
    assert.equal(originKey("/orders"), "https.shop.example");
  } finally {
    delete globalThis.location;
  }
});

test("circuitKey joins what is not empty", () => {
  assert.equal(circuitKey("shop", null, "payments", undefined, ""), "shop.payments");
  assert.throws(() => circuitKey("Shop"), { field: "key" });
  assert.throws(() => circuitKey(), { field: "key" });
});
