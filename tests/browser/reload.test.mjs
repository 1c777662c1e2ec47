// What people try first when a page fails is to reload it. The circuit survives that, open or half full.

import assert from "node:assert/strict";
import test from "node:test";
import { callsOf, open, reasons, send, setPolicy, setService, started, stateOf, untilOf, withPage } from "./harness.mjs";

test("a reload while open: still open, until the same instant, and nothing reaches the service", () =>
  withPage(async ({ page, demo }) => {
    await setPolicy(page, { openMs: 60_000 });
    await setService(page, "failing");
    await send(page, 5);
    assert.equal(await stateOf(page), "Open");
    const before = await untilOf(page);
    assert.match(String(before), /^\d{13}$/);

    await page.reload();
    await started(page);
    assert.equal(await stateOf(page), "Open");
    assert.equal(await untilOf(page), before);
    const { served } = demo.service.state();
    await send(page, 2);
    assert.equal(await callsOf(page, "refused"), 2);
    assert.equal(demo.service.state().served, served);
  }));

test("three failures before a reload and two after it open a five-failure circuit", () =>
  withPage(async ({ page }) => {
    await page.locator("input[name=rule][value=count]").check();
    await setPolicy(page, { failures: 5 });
    await setService(page, "failing");
    await send(page, 3);
    await page.reload();
    await started(page);
    assert.equal(await stateOf(page), "Closed");
    await send(page, 1);
    assert.equal(await stateOf(page), "Closed");
    assert.match(await page.locator(".reading-counts").textContent(), /^4 of 4 calls failed$/);
    await send(page, 1);
    assert.equal(await stateOf(page), "Open");
    assert.deepEqual(await reasons(page), ["failure_count"]);
  }));

test("the half-full tally is shown after a reload before any call is made", () =>
  withPage(async ({ page }) => {
    await setService(page, "failing");
    await send(page, 3);
    await page.reload();
    await started(page);
    assert.match(await page.locator(".reading-counts").textContent(), /^3 of 3 calls failed$/);
  }));

test("a tab closed while open leaves its verdict to the next one", () =>
  withPage(async ({ page, demo, context }) => {
    await setPolicy(page, { openMs: 60_000 });
    await setService(page, "failing");
    await send(page, 5);
    const before = await untilOf(page);
    await page.close();
    const next = await open(context, demo);
    assert.equal(await stateOf(next), "Open");
    assert.equal(await untilOf(next), before);
  }));

test("timeline and transitions are kept over a reload of the tab", () =>
  withPage(async ({ page }) => {
    await setService(page, "failing");
    await send(page, 5);
    await page.reload();
    await started(page);
    assert.equal(await callsOf(page, "failure"), 5);
    assert.equal((await reasons(page))[0], "failure_rate");
    assert.match(await page.locator(".timeline").textContent(), /reloaded/);
  }));
