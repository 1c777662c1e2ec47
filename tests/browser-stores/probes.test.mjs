// When an open circuit is due, one tab finds out for all of them. A tab that is closed or stands still does not keep the others out.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, inBrowsers, together } from "./harness.mjs";

const HOUR = 3_600_000;
const LEASE_MS = 1_000;

const stateOf = (tab) => tab.evaluate(() => tripcurve.breaker.state);
const closed = (tab) => eventually(async () => (await stateOf(tab)) === "closed", "the circuit is closed");
const probe = (tab) => tab.evaluate(() => tripcurve.probe());
const finish = (tab, how) => tab.evaluate((how) => tripcurve.finish[how](), how);

/** All tabs have the circuit, one of them opens it, and it is due in all of them. */
async function due(tabs, kind, key, probeLeaseMs) {
  for (const tab of tabs) {
    await tab.evaluate((args) => tripcurve.join(...args), [kind, { openMs: 300, probeLeaseMs }, key]);
    assert.equal(await tab.evaluate(() => tripcurve.call()), "fine");
  }
  await tabs.at(-1).evaluate(async () => [await tripcurve.call(true), await tripcurve.call(true)]);
  for (const tab of tabs) await eventually(async () => (await stateOf(tab)) === "half_open", "the circuit is due everywhere");
}

/** A probe as soon as one is let in: the instant it starts. */
async function nextProbe(tab) {
  let started;
  await eventually(async () => typeof (started = await probe(tab)) === "number", "the next probe starts");
  return started;
}

inBrowsers(({ name, openTabs }) => {
  let ten, open, context, close;
  before(async () => void ({ tabs: ten, open, context, close } = await openTabs(10)));
  after(() => close?.());

  for (const kind of ["localStorage", "IndexedDB"]) {
    for (const count of [2, 10]) {
      test(`${count} tabs at a due circuit in ${kind} start one probe, and all close when it succeeds`, async () => {
        const tabs = ten.slice(0, count);
        await due(tabs, kind, `shared.by.${count}`, HOUR);
        const answers = await together(tabs, "probe");
        assert.equal(answers.filter((answer) => answer === "probes_busy").length, count - 1, `${answers}`);
        await finish(tabs[answers.findIndex(Number.isInteger)], "succeed");
        for (const tab of tabs) {
          await closed(tab);
          assert.deepEqual(await tab.evaluate(() => tripcurve.told), []);
        }
      });
    }

    test(`a tab closed while it probes a circuit in ${kind} frees the slot ${kind === "localStorage" ? "at once" : "when its lease ends"}`, async () => {
      const [two] = ten;
      const one = await open();
      await due([one, two], kind, "closing", kind === "localStorage" ? HOUR : 3 * LEASE_MS);
      assert.equal(typeof (await probe(one)), "number");
      assert.equal(await probe(two), "probes_busy");
      await one.close();
      await nextProbe(two);
      await finish(two, "succeed");
      await closed(two);
    });

    test(`a tab whose probe of a circuit in ${kind} never ends loses the slot after its lease, and what comes late changes nothing`, async () => {
      const [one, two] = ten;
      await due([one, two], kind, "hanging", LEASE_MS);
      const before = await one.evaluate(() => Date.now());
      await probe(one);
      assert.ok((await nextProbe(two)) - before >= LEASE_MS);
      await finish(two, "succeed");
      for (const tab of [one, two]) await closed(tab);
      await finish(one, "fail");
      assert.equal(await one.evaluate(() => tripcurve.call()), "fine");
      assert.deepEqual([await stateOf(one), await stateOf(two)], ["closed", "closed"]);
    });

    test(`a frozen tab that probes a circuit in ${kind} loses the slot after its lease`, { skip: name !== "Chromium" && "only Chromium freezes a tab when told" }, async () => {
      const [one, two] = ten;
      await due([one, two], kind, "freezing", LEASE_MS);
      const before = await one.evaluate(() => Date.now());
      await probe(one);
      const session = await context.newCDPSession(one);
      await session.send("Page.setWebLifecycleState", { state: "frozen" });
      assert.ok((await nextProbe(two)) - before >= LEASE_MS);
      await finish(two, "succeed");
      await closed(two);
      await session.send("Page.setWebLifecycleState", { state: "active" });
      await closed(one);
    });
  }
});
