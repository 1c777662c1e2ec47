// The page against the real service: a circuit that opens, refuses, and closes again by probes.

import assert from "node:assert/strict";
import test from "node:test";
import { callsOf, operate, reasons, send, setPolicy, setService, stateOf, untilOf, waitForState, withPage } from "./harness.mjs";

test("opens with a closed, empty circuit", () =>
  withPage(async ({ page }) => {
    assert.equal(await stateOf(page), "Closed");
    assert.equal(await page.locator(".reading-share").textContent(), "–");
    assert.equal(await page.locator("#notice").isHidden(), true);
    assert.deepEqual(await reasons(page), []);
  }));

test("failures open the circuit, which refuses without asking the service, and two probes close it", () =>
  withPage(async ({ page, demo }) => {
    await setPolicy(page, { openMs: 1200, jitter: 0 });
    await send(page, 2);
    await setService(page, "failing");
    await send(page, 2);
    assert.match(await page.locator(".reading-counts").textContent(), /^2 of 4 calls failed$/);
    assert.equal(await stateOf(page), "Closed", "the minimum of five calls is not there yet");
    await send(page, 1);
    assert.equal(await stateOf(page), "Open");
    assert.match(await page.locator("#status .reason").textContent(), /3 of 5 calls in the last 60 s failed/);

    const { served } = demo.service.state();
    await send(page, 3);
    assert.equal(demo.service.state().served, served);
    assert.equal(await callsOf(page, "refused"), 3);

    await setService(page, "working");
    await waitForState(page, "Half-open");
    await send(page, 2);
    await waitForState(page, "Closed");
    assert.deepEqual(await reasons(page), ["failure_rate", "open_elapsed", "probes_succeeded"]);
    assert.equal(await page.locator(".call .diamond").count(), 2);
  }));

test("a failed probe opens the circuit again", () =>
  withPage(async ({ page }) => {
    await setPolicy(page, { openMs: 400, jitter: 0, minimumCalls: 1 });
    await setService(page, "failing");
    await send(page, 1);
    await waitForState(page, "Half-open");
    await send(page, 1);
    assert.equal(await stateOf(page), "Open");
    assert.equal((await reasons(page)).at(-1), "probe_failed");
    assert.equal(await page.locator(".arc.is-taken .arc-reason").textContent(), "a probe failed");
  }));

for (const [mode, kind] of [
  ["working", "success"],
  ["failing", "failure"],
  ["limiting", "failure"],
  ["refusing", "failure"],
  ["hanging", "failure"],
  ["slow", "slow"],
]) {
  test(`a call to a service that is ${mode} is shown as ${kind}`, () =>
    withPage(async ({ page, demo }) => {
      demo.service.apply({ latencyMs: 350 });
      await setPolicy(page, { slowMs: 250, timeoutMs: 700 });
      await setService(page, mode);
      await send(page, 1);
      assert.equal(await callsOf(page, kind), 1);
    }));
}

test("a service that is gone altogether opens the circuit like any failure", () =>
  withPage(async ({ page, demo }) => {
    await demo.service.close();
    await send(page, 5);
    assert.equal(await callsOf(page, "failure"), 5);
    assert.equal(await stateOf(page), "Open");
  }));

test("while the service hangs under steady traffic the page answers and the service can be switched back", () =>
  withPage(async ({ page }) => {
    await setPolicy(page, { timeoutMs: 500, openMs: 800, jitter: 0 });
    await setService(page, "hanging");
    await page.locator("#rate").fill("5");
    await waitForState(page, "Open");
    await setService(page, "working");
    await waitForState(page, "Closed");
  }));

test("a policy that cannot be is told beside its field and the circuit goes on under the one before", () =>
  withPage(async ({ page }) => {
    await setPolicy(page, { openMs: -1 });
    const error = page.locator("#field-openMs-error");
    assert.match(await error.textContent(), /openMs.*-1/);
    assert.equal(await page.locator("#field-openMs").getAttribute("aria-invalid"), "true");
    await setPolicy(page, { minimumCalls: "many" });
    assert.match(await page.locator("#policy").textContent(), /"many"/);
    await page.locator("#policy-initial").click();
    assert.equal(await error.textContent(), "");
    await send(page, 1);
    assert.equal(await callsOf(page, "success"), 1);
  }));

test("an open circuit stays open under another policy, for the same reason", () =>
  withPage(async ({ page }) => {
    await setPolicy(page, { openMs: 60_000 });
    await setService(page, "failing");
    await send(page, 5);
    const before = await untilOf(page);
    await setPolicy(page, { minimumCalls: 8 });
    assert.equal(await stateOf(page), "Open");
    assert.equal(await untilOf(page), before);
    assert.match(await page.locator("#status .reason").textContent(), /5 of 5 calls in the last 60 s failed/);
  }));

test("the line on the curve follows the policy", () =>
  withPage(async ({ page }) => {
    const line = page.locator(".curve .line-open");
    const before = await line.getAttribute("d");
    await setPolicy(page, { failureRate: 0.25 });
    assert.notEqual(await line.getAttribute("d"), before);
    await page.locator("input[name=rule][value=count]").check();
    assert.match(await page.locator(".reading-limit").textContent(), /^opens at 5 failures/);
  }));

test("by hand: forced, held, released and reset", () =>
  withPage(async ({ page }) => {
    await operate(page, "Force open");
    assert.equal(await stateOf(page), "Open");
    await operate(page, "Force half-open");
    assert.equal(await stateOf(page), "Half-open");
    await operate(page, "Hold open");
    assert.equal(await stateOf(page), "Open, held");
    await send(page, 1);
    assert.equal(await callsOf(page, "refused"), 1);
    await operate(page, "Release the hold");
    assert.equal(await stateOf(page), "Closed");
    await operate(page, "Force open");
    await operate(page, "Reset");
    assert.equal(await stateOf(page), "Closed");
    assert.deepEqual(await reasons(page), ["forced", "forced", "held", "released", "forced", "reset"]);
  }));

test("the scrubber shows what held at a recorded moment, and the way back", () =>
  withPage(async ({ page }) => {
    await setService(page, "failing");
    await send(page, 6);
    assert.equal(await stateOf(page), "Open");
    const now = await untilOf(page);
    const name = await page.locator("#status .row .key").textContent();
    for (let presses = 0; (await stateOf(page)) === "Open" && presses < 10; presses += 1) await page.locator("#scrub-back").click();
    assert.equal(await stateOf(page), "Closed");
    assert.equal(await page.locator(".recorded").isVisible(), true);
    assert.equal(await page.locator("#status .row .key").textContent(), name);
    assert.match(await page.locator("#status .reason").textContent(), /^closed: 4 of 4 calls in the last 60 s failed/);
    assert.deepEqual(await reasons(page), []);
    assert.match(await page.locator(".reading-counts").textContent(), /^4 of 4 calls failed$/);
    await page.locator("#scrub-live").click();
    assert.equal(await stateOf(page), "Open");
    assert.equal(await untilOf(page), now);
    await page.locator(".timeline").click();
    assert.equal(await page.locator(".recorded").isVisible(), true);
    await page.locator("#scrub").press("Escape");
    assert.equal(await page.locator(".recorded").isHidden(), true);
  }));
