// The page for those who use a keyboard, a screen reader, a phone, or want things to stand still.

import assert from "node:assert/strict";
import test from "node:test";
import { callsOf, send, setService, stateOf, waitForState, withPage } from "./harness.mjs";

test("everything can be reached and worked by keyboard, and focus is seen", () =>
  withPage(async ({ page }) => {
    const reached = new Set();
    for (let presses = 0; presses < 80; presses += 1) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        let element = document.activeElement;
        while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
        if (element === document.body) return null;
        const drawn = element.matches(".choice input") ? element.nextElementSibling : element;
        const { outlineStyle, outlineWidth } = getComputedStyle(drawn);
        return { id: element.id || element.name || element.getAttribute("aria-label") || element.textContent, seen: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
      });
      if (!at) break;
      assert.ok(at.seen, `focus on ${at.id} is seen`);
      reached.add(at.id);
    }
    assert.ok([...reached].some((id) => id.startsWith("Operate ")));
    for (const id of ["theme", "mode", "send", "rate", "scrub", "span", "Copy snapshot", "kind", "rule", "field-openMs"])
      assert.ok(reached.has(id), `${id} is reached`);

    await page.locator("#send").focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector(".call[data-kind=success]"));
    await page.locator("input[name=mode][value=working]").focus();
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction(() => document.querySelector("input[name=mode][value=failing]").checked);
    await page.locator("#rate").focus();
    await page.keyboard.press("End");
    await waitForState(page, "Open");
    await page.keyboard.press("Home");
    assert.equal(await page.locator("#rate-value").textContent(), "off");
    await page.locator("#scrub").focus();
    for (let presses = 0; (await stateOf(page)) === "Open" && presses < 60; presses += 1) await page.keyboard.press("ArrowLeft");
    assert.match(await page.locator("#scrub").getAttribute("aria-valuetext"), /Closed, \d+ of \d+ failed/);
    await page.keyboard.press("End");
    assert.equal(await page.locator("#scrub").getAttribute("aria-valuetext"), "now");
  }));

test("every control, picture and region has a name", () =>
  withPage(async ({ page, context }) => {
    await page.locator("details").evaluateAll((all) => all.forEach((details) => details.setAttribute("open", "")));
    const session = await context.newCDPSession(page);
    const { nodes } = await session.send("Accessibility.getFullAXTree");
    const wanted = new Set([
      "button",
      "radio",
      "checkbox",
      "textbox",
      "slider",
      "combobox",
      "link",
      "image",
      "img",
      "region",
      "group",
      "radiogroup",
      "form",
    ]);
    const nameless = nodes.filter((node) => !node.ignored && wanted.has(node.role?.value) && !node.name?.value && node.role.value !== "group");
    assert.deepEqual(
      nameless.map((node) => `${node.role.value} ${JSON.stringify(node.properties)}`),
      [],
    );
    const levels = await page.locator("h1, h2, h3").evaluateAll((all) => all.map((heading) => Number(heading.tagName[1])));
    assert.deepEqual([levels[0], levels.slice(1).every((level) => level === 2)], [1, true]);
    assert.equal(await page.locator("main").count(), 1);
    const ids = await page.locator("[id]").evaluateAll((all) => all.map((element) => element.id));
    assert.equal(new Set(ids).size, ids.length, "ids are unique");
    const dangling = await page.evaluate(() =>
      [...document.querySelectorAll("[aria-labelledby], [aria-describedby]")].flatMap((element) =>
        `${element.getAttribute("aria-labelledby") ?? ""} ${element.getAttribute("aria-describedby") ?? ""}`
          .split(/\s+/)
          .filter((id) => id && !document.getElementById(id)),
      ),
    );
    assert.deepEqual(dangling, []);
  }));

test("a change of state is announced once, in words", () =>
  withPage(async ({ page }) => {
    const regions = page.locator("[aria-live]:visible, [aria-live].unseen");
    await setService(page, "failing");
    await send(page, 5);
    const said = await regions.evaluateAll((all) => all.filter((region) => region.checkVisibility()).map((region) => region.textContent));
    assert.equal(said.filter((text) => text !== "").length, 1);
    assert.match(said.find((text) => text !== ""), /: open since .*5 of 5 calls in the last 60 s failed/);
  }));

for (const colorScheme of ["light", "dark"]) {
  test(`words stand out from their ground, ${colorScheme}`, () =>
    withPage(
      async ({ page }) => {
        await setService(page, "failing");
        await send(page, 6);
        const weak = await page.evaluate(weakTexts);
        assert.deepEqual(weak, []);
      },
      { colorScheme },
    ));
}

for (const width of [360, 390, 768]) {
  test(`nothing sticks out at ${width} px, open or closed`, () =>
    withPage(
      async ({ page }) => {
        const excess = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(await excess(), 0);
        await setService(page, "failing");
        await send(page, 6);
        assert.equal(await callsOf(page, "refused"), 1);
        assert.equal(await excess(), 0);
        const small = await page
          .locator("button:visible, select:visible, input[type=text]:visible")
          .evaluateAll((all) => all.filter((element) => element.getBoundingClientRect().height < 24).map((element) => element.outerHTML));
        assert.deepEqual(small, []);
      },
      { viewport: { width, height: 800 } },
    ));
}

test("nothing moves when less motion is asked for", () =>
  withPage(
    async ({ page }) => {
      await setService(page, "failing");
      await send(page, 5);
      assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
      assert.equal(await page.locator(".runner").count(), 0);
    },
    { reducedMotion: "reduce" },
  ));

test("the theme can be chosen and stays chosen", () =>
  withPage(
    async ({ page }) => {
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await ground();
      await page.locator("input[name=theme][value=dark]").check();
      const dark = await ground();
      assert.notEqual(dark, light);
      await page.reload();
      await page.waitForFunction(() => document.querySelector("input[name=theme][value=dark]").checked);
      assert.equal(await ground(), dark);
    },
    { colorScheme: "light" },
  ));

// Runs in the page: texts whose contrast with what is painted behind them is under 4.5 (3 when large).
function weakTexts() {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [lr, lg, lb] = [r, g, b].map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * lr + 0.7152 * lg + 0.0722 * lb;
  };
  const groundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const weak = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (
      !text ||
      !element.checkVisibility({ visibilityProperty: true }) ||
      element.closest("title, defs, :disabled, .flag, .phase, .unseen, .skip, script, option")
    )
      continue;
    const style = getComputedStyle(element);
    const ink = luminance(rgba(element.namespaceURI.endsWith("svg") ? style.fill : style.color));
    const ground = luminance(groundOf(element));
    const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && Number(style.fontWeight) >= 700);
    if (contrast < (large ? 3 : 4.5)) weak.push(`${text}: ${contrast.toFixed(2)}`);
  }
  return weak;
}
