// What every store promises, kept by the browser's stores in tabs and workers. "Another client" is another tab.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { storeContract } from "tripcurve/testing";
import { inBrowsers } from "./harness.mjs";

const names = storeContract(() => assert.fail("only the names are wanted")).map(({ name }) => name);

// `without`: what a store does not promise, and the contract then passes over. sessionStorage is of one tab, without another client.
const subjects = [
  { kind: "localStorage", place: "tab", lent: true, without: /^atomic|clock/ },
  { kind: "sessionStorage", place: "tab", lent: false, without: /^atomic|clock|client|slot/ },
  { kind: "IndexedDB", place: "tab", lent: true, without: /clock|slot/ },
  { kind: "IndexedDB", place: "web worker", lent: true, without: /clock|slot/ },
  { kind: "IndexedDB", place: "service worker", lent: true, without: /clock|slot/ },
];

inBrowsers(({ openTabs }) => {
  let tab, other, close;
  before(async () => {
    ({ tabs: [other, tab], close } = await openTabs(2));
    await other.evaluate(() => tripcurve.lend());
    for (const place of ["web worker", "service worker"]) await tab.evaluate((place) => tripcurve.start(place), place);
  });
  after(() => close?.());

  for (const { kind, place, lent, without } of subjects) {
    for (const name of names.filter((name) => !without.test(name))) {
      test(`${kind}, ${place}: ${name}`, async () => {
        assert.equal(await tab.evaluate(([place, call]) => tripcurve.check(place, call), [place, { kind, name, lent }]), null);
      });
    }
  }
});
