// One tab opens the circuit, all the others refuse.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, inBrowsers, together } from "./harness.mjs";

const policy = { openMs: 3_600_000, maxOpenMs: 3_600_000 };

inBrowsers(({ openTabs }) => {
  let ten, close;
  before(async () => void ({ tabs: ten, close } = await openTabs(10)));
  after(() => close?.());

  for (const kind of ["localStorage", "IndexedDB"]) {
    for (const count of [2, 10]) {
      test(`${count} tabs share a verdict over ${kind}: one opens, the others hear of it, and neither read nor write`, async () => {
        const tabs = ten.slice(0, count);
        for (const tab of tabs) {
          await tab.evaluate((args) => tripcurve.join(...args), [kind, policy, `shared.by.${count}`]);
          assert.equal(await tab.evaluate(() => tripcurve.call()), "fine");
          await tab.evaluate(() => (tripcurve.operations.length = 0));
        }
        const [one, ...others] = tabs;
        await one.evaluate(async () => [await tripcurve.call(true), await tripcurve.call(true)]);
        assert.equal(await one.evaluate(() => tripcurve.breaker.state), "open");
        for (const tab of others) {
          await eventually(() => tab.evaluate(() => tripcurve.breaker.state === "open"), "the verdict arrives");
          assert.equal(await tab.evaluate(() => tripcurve.call()), "ERR_CIRCUIT_OPEN");
          assert.deepEqual(await tab.evaluate(() => [...tripcurve.operations, ...tripcurve.told]), []);
        }
        assert.ok((await one.evaluate(() => tripcurve.operations)).length > 0);
      });
    }
  }

  test("over sessionStorage a circuit survives the reload of its tab and is not another tab's", async () => {
    const [one, two] = ten;
    const join = (tab) => tab.evaluate((policy) => tripcurve.join("sessionStorage", policy), policy);
    await join(one);
    await one.evaluate(async () => [await tripcurve.call(true), await tripcurve.call(true)]);
    await one.reload();
    await one.waitForFunction(() => globalThis.tripcurve);
    await join(one);
    assert.equal(await one.evaluate(() => tripcurve.call()), "ERR_CIRCUIT_OPEN");
    await join(two);
    assert.equal(await two.evaluate(() => tripcurve.call()), "fine");
  });

  test("ten tabs add up in IndexedDB by comparing and setting, and nothing is lost", async () => {
    await together(ten, "increment", "IndexedDB", "a.count", 20);
    assert.equal(await ten[0].evaluate(async () => (await tripcurve.stores.IndexedDB().get("a.count")).snapshot), "200");
  });

  test("a text in IndexedDB ends with its time, and so does its version", async () => {
    const got = await ten[0].evaluate(async () => {
      const store = tripcurve.stores.IndexedDB();
      const { version } = await store.set("short", "lived", { ttlMs: 50 });
      while ((await store.get("short")) !== null) await new Promise((resolve) => setTimeout(resolve, 20));
      const late = await store.set("short", "late", { ttlMs: 60_000, ifVersion: version });
      const next = await store.set("short", "next", { ttlMs: 60_000, ifVersion: null });
      return [late.ok, next.ok, next.version > version];
    });
    assert.deepEqual(got, [false, true, true]);
  });

  test("a database that is deleted meanwhile is made again, and no version from before writes", async () => {
    const got = await ten[0].evaluate(async () => {
      const store = tripcurve.stores.IndexedDB();
      const { version } = await store.set("a", "before", { ttlMs: 60_000 });
      await new Promise((resolve, reject) => Object.assign(indexedDB.deleteDatabase("tripcurve"), { onsuccess: resolve, onerror: reject }));
      const gone = await store.get("a");
      await store.set("a", "after", { ttlMs: 60_000 });
      const { ok } = await store.set("a", "late", { ttlMs: 60_000, ifVersion: version });
      return [gone, ok, (await store.get("a")).snapshot];
    });
    assert.deepEqual(got, [null, false, "after"]);
  });
});
