// examples/browser-vite: built by its own script, in a real browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { serving } from "../hosts/packed.mjs";
import { program, service, stranger } from "./stranger.mjs";

test("browser-vite: the page says when to come back, also after a reload and in a second tab, and comes back", async () => {
  const { folder, run, remove } = await stranger("browser-vite");
  const state = { answer: "tea, two" };
  const orders = await service(state);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  try {
    await run(program("typescript", "bin/tsc"), []);
    await run(program("vite", "bin/vite.js"), ["build"], { VITE_SERVICE: orders.url });
    await serving(join(folder, "dist"), async (url) => {
      const context = await browser.newContext();
      await context.clock.install();
      const open = async () => {
        const page = await context.newPage();
        await page.goto(url);
        return page;
      };
      const page = await open();
      const said = (of, text) => of.waitForFunction((text) => new RegExp(text).test(document.querySelector("[role=status]").textContent), text);
      const load = async (of, text) => {
        await of.locator("button").click();
        await said(of, text);
      };
      await load(page, "^tea, two$");
      state.status = 500;
      for (let call = 0; call < 4; call++) await load(page, "answered 500|Back in");
      await load(page, "^The service is down\\. Back in \\d+ s\\.$");
      assert.equal(await page.locator("button").isDisabled(), true);
      const { asked } = state;
      await page.reload();
      await load(page, "Back in \\d+ s");
      const second = await open();
      await load(second, "Back in \\d+ s");
      assert.equal(state.asked, asked, "the service is left alone");
      state.status = 200;
      await context.clock.fastForward(20_000);
      await said(second, "^Try again\\.$");
      await load(second, "^tea, two$");
      await load(page, "^tea, two$");
    });
  } finally {
    await browser.close();
    await orders.stop();
    remove();
  }
});
