// Both browsers, one of each per test file; a server of the package and of the fixtures, and tabs, which are pages of one profile.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { after, before, describe } from "node:test";
import { chromium, firefox } from "playwright-core";
import { listen, shut } from "../../www/listen.mjs";

const ROOT = new URL("../../", import.meta.url);
const FIXTURES = new URL("fixtures/", import.meta.url);
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

const BROWSERS = {
  Chromium: () =>
    chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    }),
  Firefox: () => firefox.launch({ channel: "moz-firefox", executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr" }),
};

/** Declares the same tests for each browser, whose `name` they are given; `openTabs(count)` opens tabs of a fresh profile, until `close()`. */
export function inBrowsers(declare) {
  for (const [name, launch] of Object.entries(BROWSERS)) {
    describe(name, () => {
      let browser;
      before(async () => void (browser = await launch()));
      after(() => browser?.close());
      declare({ name, openTabs: (count) => openTabs(browser, count) });
    });
  }
}

async function openTabs(browser, count) {
  const server = createServer(respond);
  const url = await listen(server, "127.0.0.1", 0);
  const context = await browser.newContext();
  const errors = [];
  // Firefox reports here, too, what CORS keeps from a page.
  context.on("weberror", (event) => String(event.error()).startsWith("Cross-Origin Request Blocked") || errors.push(String(event.error())));
  const open = async (path = "/tab.html") => {
    const tab = await context.newPage();
    await tab.goto(url + path);
    await tab.waitForFunction(() => globalThis.tripcurve);
    return tab;
  };
  const close = async () => {
    await context.close();
    await shut(server);
    assert.deepEqual(errors, [], "what the pages reported");
  };
  const tabs = [];
  while (tabs.length < count) tabs.push(await open());
  return { tabs, open, context, close };
}

/** `/dist/` is the package as built, everything else a fixture. Readable from any origin: a sandboxed frame has one of its own. */
async function respond(request, response) {
  const path = new URL(request.url, "http://here").pathname;
  const body = await readFile(path.startsWith("/dist/") ? new URL(`.${path}`, ROOT) : new URL(`.${path}`, FIXTURES)).catch(() => null);
  if (!body) return void response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "text/plain", "Access-Control-Allow-Origin": "*", "Cache-Control": "no-cache" });
  response.end(body);
}

/** Runs a function of the fixtures in every tab at the same moment: all are waiting for the word before it is given. */
export async function together(tabs, name, ...args) {
  await Promise.all(tabs.map((tab) => tab.evaluate((call) => tripcurve.prepare(...call), [name, ...args])));
  await tabs[0].evaluate(() => tripcurve.go());
  return Promise.all(tabs.map((tab) => tab.evaluate(() => tripcurve.answer())));
}

/** Asks until the answer is true; a minute is patience enough on any machine. */
export async function eventually(ask, what) {
  for (const end = Date.now() + 60_000; Date.now() < end; await pause(50)) if (await ask()) return;
  throw new Error(`It never happened that ${what}`);
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
