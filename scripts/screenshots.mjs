// `npm run screenshots`: the pictures of the docs, from the real things: docs/images/panel-{light,dark}.png.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium as browserType } from "playwright-core";
import sharp from "sharp";
import { build } from "./build.mjs";
import { chromium, chromiumPath } from "./setup.mjs";
import { fail, isMain, root, say } from "./shell.mjs";
import { servePages } from "../tests/browser/panel-page.mjs";

export const folder = join(root, "docs", "images");

/** Circuits of an outage: one that is open, one that recovers, one held by hand, one that is slow, two that are well. */
const body = `<tripcurve-panel controls span-ms="20000"></tripcurve-panel><script type="module">
  import { CircuitRegistry } from "tripcurve";
  import { definePanel } from "tripcurve/panel";
  const policies = {
    "https.api.shop.example": { minimumCalls: 10, openMs: 15_000 },
    "https.search.example": { failures: 4, openMs: 2_500, probeSuccesses: 3 },
    "https.mail.example": { minimumCalls: 10, slowMs: 5, slowRate: 0.6 },
  };
  const registry = new CircuitRegistry((key) => (policies[key] ??= {}));
  definePanel();
  document.querySelector("tripcurve-panel").source = registry;
  const call = (key, ok) => registry.get(key).run(ok ? () => {} : () => Promise.reject(new Error("HTTP status 503"))).catch(() => {});
  const slow = (key) => registry.get(key).run(() => new Promise((resolve) => setTimeout(resolve, 12)));
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  for (const key of ["https.api.shop.example", "https.search.example", "https.cdn.example", "https.login.example"]) for (let calls = 0; calls < 6; calls++) await call(key, true);
  await pause(6_000);
  for (let calls = 0; calls < 6; calls++) await call("https.api.shop.example", false);
  for (let calls = 0; calls < 4; calls++) await call("https.search.example", false);
  for (let calls = 0; calls < 12; calls++) await call("https.login.example", calls % 4 > 0);
  for (let calls = 0; calls < 5; calls++) await slow("https.mail.example");
  registry.get("https.legacy.example").hold("open");
  await pause(2_600);
  await call("https.search.example", true);
  for (let calls = 0; calls < 34; calls++) await call("https.api.shop.example", true);
  await pause(4_200);
  document.body.dataset.ready = "";
</script>`;
const style = "body { margin: 0 } main { display: block; padding: 0 }";

export async function screenshots(look = {}) {
  mkdirSync(folder, { recursive: true });
  const pages = await servePages({ "/": body }, style);
  const browser = await browserType.launch({ executablePath: chromiumPath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    for (const colorScheme of ["light", "dark"]) {
      const page = await browser.newPage({ viewport: { width: 1080, height: 800 }, colorScheme, deviceScaleFactor: 1.5, ...look });
      await page.goto(pages.url);
      await page.locator("body[data-ready]").waitFor({ timeout: 60_000 });
      const path = join(look.folder ?? folder, `panel-${colorScheme}.png`);
      const picture = await page.locator("tripcurve-panel").screenshot();
      await sharp(picture).png({ palette: true, quality: 100, effort: 10, dither: 0 }).toFile(path);
      say(path);
    }
  } finally {
    await browser.close();
    await pages.close();
  }
}

async function main() {
  await chromium();
  await build();
  await screenshots();
}

if (isMain(import.meta.url)) main().catch(fail);
