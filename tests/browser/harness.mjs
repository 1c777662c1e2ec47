// One Chromium per test file, one demo (page server and service) per test, and the few gestures the tests share.

import { after, before } from "node:test";
import { chromium } from "playwright-core";
import { startDemo } from "../../www/server.mjs";

const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGS });
});
after(() => browser?.close());

export const theBrowser = () => browser;

/** Runs `body` with a fresh demo and a fresh profile; fails when the page reported an error of its own. */
export async function withPage(body, options = {}) {
  const demo = await startDemo();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const errors = [];
  context.on("weberror", (event) => errors.push(String(event.error())));
  context.on("console", (message) => {
    // Chromium itself logs every failing answer of the service; anything else is the page's.
    if (message.type() === "error" && !message.location().url.startsWith(demo.service.url)) errors.push(message.text());
  });
  try {
    const page = await open(context, demo);
    await body({ page, demo, context });
    if (errors.length > 0) throw new Error(`The page reported: ${errors.join("; ")}`);
  } finally {
    await context.close();
    await demo.close();
  }
}

export async function open(context, demo) {
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  await page.goto(demo.url);
  await started(page);
  return page;
}

/** The page has started and can step back in time. */
export const started = (page) => page.waitForFunction(() => !document.body.matches(".is-starting") && !document.querySelector("#scrub").disabled);

export const stateOf = (page) => page.locator("#status .row .word").textContent();

export const waitForState = (page, word) => page.locator(`#status .row .word:text-is("${word}")`).waitFor();

/** The instant at which the circuit may be probed, as the panel has it. */
export const untilOf = (page) => page.locator("#status").evaluate((panel) => panel.source.news().circuits[0].until);

/** Presses a button of the operator: "Force open", "Release the hold". */
export async function operate(page, name) {
  const more = page.locator("#status").getByRole("button", { name: /^Operate/ });
  if ((await more.getAttribute("aria-expanded")) === "false") await more.click();
  await page.locator("#status").getByRole("button", { name }).click();
}

/** Sends calls one after another, each when the one before it has ended. */
export async function send(page, count = 1) {
  for (let sent = 0; sent < count; sent += 1) {
    const before = await ended(page);
    await page.locator("#send").click();
    await page.waitForFunction((known) => [...document.querySelectorAll(".call:not([data-kind=flying])")].length > known, before);
  }
}

const ended = (page) => page.locator(".call:not([data-kind=flying])").count();

/** How many calls of a kind the timeline shows. */
export const callsOf = (page, kind) => page.locator(`.call[data-kind=${kind}]`).count();

export async function setService(page, mode) {
  const choice = page.locator(`input[name=mode][value=${mode}]`);
  if (await choice.isChecked()) return;
  const changed = page.waitForResponse((response) => response.url().endsWith("/service") && response.request().method() === "POST");
  await choice.check();
  await changed;
}

/** Fills fields of the policy form by their API names. */
export async function setPolicy(page, fields) {
  for (const [name, value] of Object.entries(fields)) {
    const field = page.locator(`#field-${name.replace(".", "-")}`);
    await field.evaluate((element) => element.closest("details")?.setAttribute("open", ""));
    await field.fill(String(value));
    await field.blur();
  }
}

/** The reasons in the list of transitions, oldest first. */
export async function reasons(page) {
  const codes = await page.locator("#transitions tbody tr").evaluateAll((rows) => rows.map((row) => row.dataset.reason));
  return codes.reverse();
}
