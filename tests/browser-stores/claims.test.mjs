// A probe slot over localStorage is two Web Locks: whoever holds them has it, and a tab that is gone holds nothing.

import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually, inBrowsers, together } from "./harness.mjs";

const HOUR = 3_600_000;
const claim = (tab, { slots = 1, leaseMs = HOUR, kind = "localStorage" } = {}) =>
  tab.evaluate((args) => tripcurve.claim(...args), [kind, "http.shop", slots, leaseMs]);
const release = (tab) => tab.evaluate(() => tripcurve.held.splice(0).forEach((release) => release()));

inBrowsers(({ withTabs }) => {
  for (const [name, leaseMs] of [["an hour", HOUR], ["for ever", null]]) {
    test(`a slot that one tab holds is nobody else's until it is released; the lease is ${name}`, () =>
      withTabs(2, async ({ tabs: [one, two] }) => {
        assert.equal(await claim(one, { leaseMs }), true);
        assert.equal(await claim(two, { leaseMs }), false);
        assert.equal(await claim(one, { leaseMs }), false);
        await release(one);
        await eventually(() => claim(two, { leaseMs }), "the other tab has the slot");
        assert.equal(await claim(one, { leaseMs }), false);
      }));
  }

  test("releasing twice frees nothing that somebody else has taken since", () =>
    withTabs(2, async ({ tabs: [one, two] }) => {
      await claim(one);
      await one.evaluate(() => tripcurve.held[0]());
      await eventually(() => claim(two), "the other tab has the slot");
      await release(one);
      assert.equal(await claim(one), false);
    }));

  test("a tab that is closed while it holds a slot frees it at once", () =>
    withTabs(2, async ({ tabs: [one, two] }) => {
      assert.equal(await claim(one), true);
      assert.equal(await claim(two), false);
      await one.close();
      await eventually(() => claim(two), "the slot is free, long before the lease is over");
    }));

  test("a tab that never releases loses the slot after its lease, and not before", () =>
    withTabs(2, async ({ tabs: [one, two] }) => {
      const leaseMs = 1_000;
      const before = await one.evaluate(() => Date.now());
      assert.equal(await claim(one, { leaseMs }), true);
      let after;
      await eventually(async () => {
        const taken = await claim(two, { leaseMs });
        after = await two.evaluate(() => Date.now());
        return taken;
      }, "the lease is over");
      assert.ok(after - before > leaseMs, `${after - before} ms`);
    }));

  test("of ten tabs that race for one slot one wins, for two slots two", () =>
    withTabs(10, async ({ tabs }) => {
      for (const slots of [1, 2]) {
        const won = await together(tabs, "claim", "localStorage", `race.for.${slots}`, slots, HOUR);
        assert.equal(won.filter(Boolean).length, slots);
      }
    }));

  test("another prefix is another slot, and sessionStorage has none to share", () =>
    withTabs(1, async ({ tabs: [tab] }) => {
      const [here, elsewhere, session] = await tab.evaluate(async () => {
        const { localStorage: store, sessionStorage } = tripcurve.stores;
        const held = [await store().claim("a", 0, 60_000), await store({ prefix: "mine/" }).claim("a", 0, 60_000)];
        return [...held.map((release) => typeof release), typeof sessionStorage().claim];
      });
      assert.deepEqual([here, elsewhere, session], ["function", "function", "undefined"]);
      const { held } = await tab.evaluate(() => navigator.locks.query());
      assert.deepEqual(held.map(({ name }) => name.replace(/\d{2,}$/, "N")).sort(), ["mine/a:0/N", "mine/a:0/N", "tripcurve:a:0/N", "tripcurve:a:0/N"]);
    }));
});
