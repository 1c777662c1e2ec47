// Two tabs in two processes share the verdict through localStorage.

import assert from "node:assert/strict";
import test from "node:test";
import { open, reasons, send, setPolicy, setService, stateOf, theBrowser, untilOf, waitForState, withPage } from "./harness.mjs";

async function rendererIds() {
  const session = await theBrowser().newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  return processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
}

test("both tabs show the verdict of one, say that it came from elsewhere, and both recover", () =>
  withPage(async ({ page, demo, context }) => {
    await setPolicy(page, { openMs: 3000, jitter: 0 });
    const before = await rendererIds();
    const other = await open(context, demo);
    const added = (await rendererIds()).filter((id) => !before.includes(id));
    assert.ok(added.length >= 1, "the second tab has a process of its own");
    assert.equal(await stateOf(other), "Closed");

    await page.bringToFront();
    await setService(page, "failing");
    await send(page, 5);
    await waitForState(page, "Open");
    await waitForState(other, "Open");
    assert.deepEqual(await reasons(other), ["adopted"]);
    assert.match(await other.locator("#transitions tbody").textContent(), /taken from the store/);
    assert.equal(await untilOf(other), await untilOf(page));

    await other.bringToFront();
    await setService(other, "working");
    await waitForState(other, "Half-open");
    await send(other, 2);
    await waitForState(other, "Closed");
    await waitForState(page, "Closed");
    assert.equal((await reasons(page)).at(-1), "adopted");
  }));

test("the link opens a second tab that shows the same open circuit at once", () =>
  withPage(async ({ page, context }) => {
    await setPolicy(page, { openMs: 60_000 });
    await setService(page, "failing");
    await send(page, 5);
    const [other] = await Promise.all([context.waitForEvent("page"), page.getByRole("link", { name: "Open a second tab" }).click()]);
    await waitForState(other, "Open");
    assert.equal(await other.evaluate(() => globalThis.opener), null);
  }));

test("a policy and a service mode set in one tab are those of the other", () =>
  withPage(async ({ page, demo, context }) => {
    const other = await open(context, demo);
    await setPolicy(page, { minimumCalls: 7 });
    await other.waitForFunction(() => document.querySelector("#field-minimumCalls").value === "7");
    await setService(page, "slow");
    await other.waitForFunction(() => document.querySelector("input[name=mode][value=slow]").checked);
  }));
