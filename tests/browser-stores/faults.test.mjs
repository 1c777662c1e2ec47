// What browsers do to a store: forbid it, fill it, leave rubbish in it. No call ever fails for that.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { eventually, inBrowsers } from "./harness.mjs";

const kinds = ["localStorage", "sessionStorage", "IndexedDB"];

const hostile = {
  "nothing": "",
  "a brace": "{",
  "JSON": '{"state":"open","until":9e15,"__proto__":{"polluted":1}}',
  "an unknown version": "999;O;1;9e15;;;;;;",
  "a number": "9007199254740993",
  "controls": "\u0000\u0001\uffff",
  "four million characters": "1".repeat(4_000_000),
};

const join = (place, kind, openMs) => place.evaluate(([kind, openMs]) => tripcurve.join(kind, { openMs }), [kind, openMs]);
const call = (place, fails) => place.evaluate((fails) => tripcurve.call(fails), fails);
const told = (place) => place.evaluate(() => tripcurve.told);
const stateOf = (place) => place.evaluate(() => tripcurve.breaker.state);

inBrowsers(({ openTabs }) => {
  let tab, other, frame, close;
  before(async () => {
    const { tabs, open, ...profile } = await openTabs(2);
    ({ close } = profile);
    [tab, other] = tabs;
    frame = (await open("/sandboxed.html")).frame({ name: "sandboxed" });
    await frame.waitForFunction(() => globalThis.tripcurve);
    await tab.bringToFront();
  });
  beforeEach(() => tab.evaluate(() => tripcurve.clear()));
  after(() => close?.());

  for (const kind of kinds) {
    test(`in a sandboxed frame, where ${kind} is forbidden, the circuit lives in memory and says so once (R28)`, async () => {
      assert.equal(await frame.evaluate((kind) => tripcurve.reach(kind), kind), "SecurityError");
      await join(frame, kind, 100);
      assert.deepEqual([await call(frame), await call(frame, true), await call(frame, true)], ["fine", "down", "down"]);
      await eventually(async () => (await call(frame)) === "fine", "a probe closes the circuit");
      assert.equal(await stateOf(frame), "closed");
      assert.deepEqual(await told(frame), ["store_failed SecurityError"]);
    });
  }

  test("in a sandboxed frame a claim rejects, for the circuit to go on without it", async () => {
    assert.equal(await frame.evaluate(() => tripcurve.claim("localStorage", "a", 1, 1_000).catch((error) => error.name)), "SecurityError");
  });

  // Before storage is filled: another process may find it full for a while after it was cleared.
  for (const kind of ["localStorage", "IndexedDB"]) {
    test(`rubbish that another tab leaves in ${kind} changes nothing`, async () => {
      await join(tab, kind);
      assert.equal(await call(tab), "fine");
      await other.evaluate((kind) => tripcurve.stores[kind]().set("http.shop", "{", { ttlMs: 600_000 }), kind);
      await eventually(async () => (await told(tab)).length > 0, "the text arrives");
      assert.deepEqual([await stateOf(tab), await told(tab), await call(tab)], ["closed", ["snapshot_unreadable"], "fine"]);
    });
  }

  for (const kind of ["localStorage", "sessionStorage"]) {
    test(`when ${kind} is full the circuit works, others' keys stay, and the first move after there is room is stored (R28)`, async () => {
      const before = await tab.evaluate((kind) => tripcurve.fill(kind), kind);
      assert.ok(before.characters > 1_000_000, `${before.characters} characters fit`);
      await join(tab, kind, 60_000);
      assert.deepEqual([await call(tab), await call(tab, true), await call(tab, true), await call(tab)], ["fine", "down", "down", "ERR_CIRCUIT_OPEN"]);
      assert.deepEqual(await told(tab), ["store_failed QuotaExceededError"]);
      assert.deepEqual(await tab.evaluate((kind) => tripcurve.measure(kind), kind), before);

      await tab.evaluate((kind) => globalThis[kind].removeItem("theirs.0"), kind);
      await tab.evaluate(() => tripcurve.breaker.reset());
      assert.equal(await call(tab), "fine");
      const [stored, own] = await tab.evaluate((kind) => [globalThis[kind].getItem("tripcurve:http.shop"), tripcurve.breaker.snapshot()], kind);
      assert.equal(stored, own);
    });
  }

  for (const kind of kinds) {
    test(`rubbish in ${kind} is a fresh closed circuit and one diagnostic, and the call runs (R11)`, async () => {
      for (const [what, text] of Object.entries(hostile)) {
        await tab.evaluate(([kind, text]) => tripcurve.stores[kind]().set("http.shop", text, { ttlMs: 600_000 }), [kind, text]);
        await join(tab, kind);
        assert.equal(await call(tab), "fine", what);
        assert.equal(await stateOf(tab), "closed", what);
        const [first, ...more] = await told(tab);
        assert.match(first, /^snapshot_(unreadable|malformed|too_long|unknown_version)$/, what);
        assert.deepEqual(more, [], what);
      }
      assert.equal(await tab.evaluate(() => ({}).polluted), undefined);
    });
  }

  test("entries in the database that are none are nothing, and are replaced", async () => {
    const got = await tab.evaluate(() => {
      const later = Date.now() + 600_000;
      return tripcurve.replace([
        5,
        "a text",
        null,
        { snapshot: 5, version: 1, until: later },
        { snapshot: "a", version: "1", until: later },
        { snapshot: "a", version: Number.NaN, until: later },
        { snapshot: "a", version: 2 ** 53, until: later },
        { snapshot: "a", version: 1, until: "later" },
        { snapshot: "a", version: 1 },
      ]);
    });
    for (const each of got) assert.deepEqual(each, [null, true, "new", false]);
  });
});
