// What browsers do to a store: forbid it, fill it, leave rubbish in it. No call ever fails for that.

import assert from "node:assert/strict";
import { test } from "node:test";
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

inBrowsers(({ withTabs }) => {
  for (const kind of kinds) {
    test(`in a sandboxed frame, where ${kind} is forbidden, the circuit lives in memory and says so once (R28)`, () =>
      withTabs(0, async ({ open }) => {
        const tab = await open("/sandboxed.html");
        const frame = tab.frame({ name: "sandboxed" });
        await frame.waitForFunction(() => globalThis.tripcurve);
        assert.match(await frame.evaluate((kind) => tripcurve.reach(kind), kind), /^(Security|Unknown|Invalid|Error)/);

        await frame.evaluate((kind) => tripcurve.join(kind, { openMs: 100 }), kind);
        const call = (fails) => frame.evaluate((fails) => tripcurve.call(fails), fails);
        assert.deepEqual([await call(), await call(true), await call(true)], ["fine", "down", "down"]);
        await eventually(async () => (await call()) === "fine", "a probe closes the circuit");
        assert.equal(await frame.evaluate(() => tripcurve.breaker.state), "closed");
        assert.equal((await frame.evaluate(() => tripcurve.told)).length, 1);
      }));
  }

  test("in a sandboxed frame a claim rejects, for the circuit to go on without it", () =>
    withTabs(0, async ({ open }) => {
      const frame = (await open("/sandboxed.html")).frame({ name: "sandboxed" });
      await frame.waitForFunction(() => globalThis.tripcurve);
      assert.equal(await frame.evaluate(() => tripcurve.claim("localStorage", "a", 1, 1_000).catch((error) => error.name)), "SecurityError");
    }));

  for (const kind of ["localStorage", "sessionStorage"]) {
    test(`when ${kind} is full the circuit works, others' keys stay, and the first move after there is room is stored (R28)`, () =>
      withTabs(1, async ({ tabs: [tab] }) => {
        const before = await tab.evaluate((kind) => tripcurve.fill(kind), kind);
        assert.ok(before.characters > 1_000_000, `${before.characters} characters fit`);
        await tab.evaluate((kind) => tripcurve.join(kind, { openMs: 60_000 }), kind);
        const call = (fails) => tab.evaluate((fails) => tripcurve.call(fails), fails);
        assert.deepEqual([await call(), await call(true), await call(true), await call()], ["fine", "down", "down", "ERR_CIRCUIT_OPEN"]);
        assert.deepEqual(await tab.evaluate(() => tripcurve.told), ["store_failed QuotaExceededError"]);
        assert.deepEqual(await tab.evaluate((kind) => tripcurve.measure(kind), kind), before);

        await tab.evaluate((kind) => globalThis[kind].removeItem("theirs.0"), kind);
        await tab.evaluate(() => tripcurve.breaker.reset());
        assert.equal(await call(), "fine");
        const [stored, own] = await tab.evaluate((kind) => [globalThis[kind].getItem("tripcurve:http.shop"), tripcurve.breaker.snapshot()], kind);
        assert.equal(stored, own);
      }));
  }

  for (const kind of kinds) {
    test(`rubbish in ${kind} is a fresh closed circuit and one diagnostic, and the call runs (R11)`, () =>
      withTabs(1, async ({ tabs: [tab] }) => {
        for (const [what, text] of Object.entries(hostile)) {
          await tab.evaluate(([kind, text]) => tripcurve.stores[kind]().set("http.shop", text, { ttlMs: 600_000 }), [kind, text]);
          await tab.evaluate((kind) => tripcurve.join(kind), kind);
          assert.equal(await tab.evaluate(() => tripcurve.call()), "fine", what);
          assert.equal(await tab.evaluate(() => tripcurve.breaker.state), "closed", what);
          const [told, ...more] = await tab.evaluate(() => tripcurve.told);
          assert.match(told, /^snapshot_(unreadable|malformed|too_long|unknown_version)$/, what);
          assert.deepEqual(more, [], what);
          await tab.evaluate(() => tripcurve.breaker.dispose());
        }
        assert.equal(await tab.evaluate(() => ({}).polluted), undefined);
      }));
  }

  test("rubbish told by another tab changes nothing", () =>
    withTabs(2, async ({ tabs: [one, two] }) => {
      for (const kind of ["localStorage", "IndexedDB"]) {
        await one.evaluate((kind) => tripcurve.join(kind), kind);
        assert.equal(await one.evaluate(() => tripcurve.call()), "fine");
        await two.evaluate((kind) => tripcurve.stores[kind]().set("http.shop", "{", { ttlMs: 600_000 }), kind);
        await eventually(() => one.evaluate(() => tripcurve.told.length > 0), "the text arrives");
        assert.deepEqual(await one.evaluate(() => [tripcurve.breaker.state, ...tripcurve.told]), ["closed", "snapshot_unreadable"]);
        assert.equal(await one.evaluate(() => tripcurve.call()), "fine");
      }
    }));

  test("entries in the database that are none are nothing, and are replaced", () =>
    withTabs(1, async ({ tabs: [tab] }) => {
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
    }));
});
