// A probe slot over localStorage is two Web Locks: whoever holds them has it, and a tab that is gone holds nothing.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, inBrowsers, together } from "./harness.mjs";

const HOUR = 3_600_000;
const claim = (tab, key, leaseMs = HOUR) => tab.evaluate((args) => tripcurve.claim(...args), ["localStorage", key, 1, leaseMs]);
const release = (tab) => tab.evaluate(() => tripcurve.held.splice(0).forEach((release) => release()));

inBrowsers(({ openTabs }) => {
  let ten, one, two, open, close;
  before(async () => {
    ({ tabs: ten, open, close } = await openTabs(10));
    [one, two] = ten;
  });
  after(() => close?.());

  for (const [name, leaseMs] of [["an hour", HOUR], ["for ever", null]]) {
    test(`a slot that one tab holds is nobody else's until it is released; the lease is ${name}`, async () => {
      assert.equal(await claim(one, name, leaseMs), true);
      assert.equal(await claim(two, name, leaseMs), false);
      assert.equal(await claim(one, name, leaseMs), false);
      await release(one);
      await eventually(() => claim(two, name, leaseMs), "the other tab has the slot");
      assert.equal(await claim(one, name, leaseMs), false);
    });
  }

  test("releasing twice frees nothing that somebody else has taken since", async () => {
    assert.equal(await claim(one, "twice"), true);
    await one.evaluate(() => tripcurve.held.at(-1)());
    await eventually(() => claim(two, "twice"), "the other tab has the slot");
    await release(one);
    assert.equal(await claim(one, "twice"), false);
  });

  test("a tab that is closed while it holds a slot frees it at once", async () => {
    const third = await open();
    assert.equal(await claim(third, "closing"), true);
    assert.equal(await claim(two, "closing"), false);
    await third.close();
    await eventually(() => claim(two, "closing"), "the slot is free, long before the lease is over");
  });

  test("a tab that never releases loses the slot after its lease, and not before", async () => {
    const leaseMs = 1_000;
    const before = await one.evaluate(() => Date.now());
    assert.equal(await claim(one, "hanging", leaseMs), true);
    await eventually(() => claim(two, "hanging", leaseMs), "the lease is over");
    const after = await two.evaluate(() => Date.now());
    assert.ok(after - before > leaseMs, `${after - before} ms`);
  });

  test("of ten tabs that race for one slot one wins, for two slots two", async () => {
    for (const slots of [1, 2]) {
      const won = await together(ten, "claim", "localStorage", `race.for.${slots}`, slots, HOUR);
      assert.equal(won.filter(Boolean).length, slots);
    }
  });

  test("another prefix is another slot, and sessionStorage has none to share", async () => {
    const got = await one.evaluate(async () => {
      const { localStorage: store, sessionStorage } = tripcurve.stores;
      const releases = [await store().claim("a", 0, 60_000), await store({ prefix: "mine/" }).claim("a", 0, 60_000)];
      return [...releases.map((release) => typeof release), typeof sessionStorage().claim];
    });
    assert.deepEqual(got, ["function", "function", "undefined"]);
    const { held } = await one.evaluate(() => navigator.locks.query());
    const names = held.map(({ name }) => name.replace(/\d+$/, "N")).filter((name) => name.includes("a:0"));
    assert.deepEqual(names.sort(), ["mine/a:0/N", "mine/a:0/N", "tripcurve:a:0/N", "tripcurve:a:0/N"]);
  });
});
