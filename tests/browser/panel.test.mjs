// The panel in Chromium, on pages of its own: what it shows of real circuits, to whom, and what it leaves behind.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { theBrowser } from "./harness.mjs";
import { servePages } from "./panel-page.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const app = (attributes = "", after = "") => `<h1>App</h1><tripcurve-panel ${attributes}></tripcurve-panel><script type="module">
  import { CircuitRegistry } from "tripcurve";
  import { broadcast, definePanel, panelFeed } from "tripcurve/panel";
  const registry = new CircuitRegistry((key) => (key === "quick" ? quick : policy), { maxCircuits: 1000 });
  const policy = { minimumCalls: 4, openMs: 60_000 };
  const quick = { failures: 3, openMs: 700, probeSuccesses: 2 };
  const panel = document.querySelector("tripcurve-panel");
  const call = (key, ok = true) => registry.get(key).run(ok ? () => "done" : () => Promise.reject(new Error("<b>broken</b>"))).catch(() => {});
  const fail = async (key, times) => { for (let calls = 0; calls < times; calls++) await call(key, false); };
  Object.assign(window, { registry, panel, call, fail, broadcast, panelFeed, definePanel });
  definePanel();
  ${after}
  document.body.dataset.ready = "";
</script>`;
const shown = "panel.source = registry;";

const pages = {
  "/app": app("", shown),
  "/controls": app("controls", shown),
  "/broadcast": app("hidden", 'window.stop = broadcast(registry, "shop");'),
  "/broadcast-controls": app("hidden", 'window.stop = broadcast(registry, "shop", { controls: true });'),
  "/watch": '<h1>Watch</h1><tripcurve-panel channel="shop" controls></tripcurve-panel><script type="module">import { definePanel } from "tripcurve/panel"; definePanel(); document.body.dataset.ready = "";</script>',
};

// The pages of docs/panel.md, as they are written.
const docs = [...readFileSync(new URL("../../docs/panel.md", import.meta.url), "utf8").matchAll(/```html\n(.*?)```/gs)].map(([, code]) => code);
docs.forEach((code, index) => (pages[`/docs-${index}`] = `<h1>Docs</h1>${code.replace("</script>", 'document.body.dataset.ready = "";</script>')}`));

let site;
before(async () => (site = await servePages(pages)));
after(() => site.close());

/** Opens pages of one profile, closes them, and fails when one reported an error. */
async function withPages(paths, body, options = {}) {
  const context = await theBrowser().newContext({ viewport: { width: 1000, height: 800 }, ...options });
  const errors = [];
  context.on("weberror", (event) => errors.push(String(event.error())));
  context.on("console", (message) => message.type() === "error" && !message.text().includes("404") && errors.push(message.text()));
  try {
    const opened = [];
    for (const path of paths) {
      const page = await context.newPage();
      page.setDefaultTimeout(15_000);
      await page.goto(site.url + path);
      await page.locator("body[data-ready]").waitFor();
      opened.push(page);
    }
    await body(...opened);
    assert.deepEqual(errors, []);
  } finally {
    await context.close();
  }
}

const row = (page, key) => page.locator("li.row").filter({ has: page.locator(".key", { hasText: new RegExp(`^${key}$`) }) });
const word = (page, key, text) => row(page, key).locator(".word", { hasText: new RegExp(`^${text}$`) }).waitFor();
const announced = (page) => page.locator("section > [aria-live]").textContent();
const withoutTimes = (text) => text.replace(/\d\d:\d\d:\d\d/g, "…").replace(/in [\d.]+ m?s/g, "in …");

test("a circuit that trips is shown with its state, reason, counts and countdown, before those that are well", () =>
  withPages(["/app"], async (page) => {
    assert.equal(await page.locator(".empty").first().isVisible(), true);
    await page.evaluate(() => Promise.all([call("calm"), call("steady"), call("steady")]));
    await word(page, "steady", "Closed");
    await page.evaluate(() => fail("steady", 2));
    await word(page, "steady", "Open");
    assert.match(await row(page, "steady").locator(".left").textContent(), /^(\d\d s|1 min)$/);
    assert.equal(withoutTimes(await row(page, "steady").locator(".reason").textContent()), "open since … UTC: 2 of 4 calls in the last 30 s failed, limit 50 %; next probe in …");
    assert.equal(await row(page, "steady").getByRole("meter").getAttribute("aria-valuetext"), "2 of 4 failed");
    assert.equal(await page.locator(".summary").textContent(), "2 circuits: 1 open");
    assert.equal(await page.locator("li.row").first().locator(".key").textContent(), "steady");
    assert.match(await row(page, "steady").getByRole("img").getAttribute("aria-label"), /^Last 5 min: open for/);
    await page.evaluate(() => Promise.all([call("steady"), call("steady")]));
    await page.locator('.note:text-is("2 refused")').waitFor();
  }));

test("a circuit that recovers is shown half-open when its time has come, then closed, and how that came", () =>
  withPages(["/app"], async (page) => {
    await page.evaluate(() => fail("quick", 3));
    await word(page, "quick", "Half-open"); // by time alone
    await page.evaluate(() => call("quick"));
    await page.locator('.counted:text-is("1 of 2 probes")').waitFor();
    await page.evaluate(() => call("quick"));
    await word(page, "quick", "Closed");
    const reasons = await page.locator("tbody tr").evaluateAll((rows) => rows.map(({ dataset }) => dataset.reason));
    assert.deepEqual(reasons, ["probes_succeeded", "open_elapsed", "failure_count"]);
    assert.equal(await page.locator(".summary").textContent(), "1 circuit: all closed");
  }));

test("the trace shows what is known, and nothing of before", () =>
  withPages(["/app"], async (page) => {
    const width = (key, state) => row(page, key).locator(`.trace-${state}`).evaluate((path) => path.getBBox().width);
    await page.evaluate(() => panel.setAttribute("span-ms", "60000"));
    await page.evaluate(() => registry.get("held").hold("open"));
    await page.evaluate(() => call("young"));
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 1_100)));
    await page.evaluate(() => registry.get("young").force("open"));
    await word(page, "young", "Open");
    assert.equal(await width("held", "closed"), 0, "it was held as soon as it was there");
    assert.ok((await width("held", "open")) > 2);
    const closed = await width("young", "closed");
    assert.ok(closed > 2 && closed < 240, `${closed} of 240`);
  }));

test("what is counted moves the gauge towards the limit, without a listener to every call", () =>
  withPages(["/app"], async (page) => {
    await page.evaluate(() => fail("steady", 1));
    await page.locator('.counted:text-is("1 of 1 failed")').waitFor();
    assert.equal(await row(page, "steady").locator(".is-early").count(), 1, "too few to be judged");
    await page.evaluate(() => Promise.all([call("steady"), call("steady"), call("steady")]));
    await page.locator('.counted:text-is("1 of 4 failed")').waitFor();
    const { bar, tick } = await row(page, "steady").locator(".gauge").evaluate((gauge) => ({ bar: gauge.querySelector(".bar").style.inlineSize, tick: gauge.querySelector(".tick").style.insetInlineStart }));
    assert.deepEqual([bar, tick], ["25%", "50%"]);
  }));

test("a change is announced once, in words; the countdown is not", () =>
  withPages(["/app"], async (page) => {
    await page.evaluate(() => call("steady"));
    await word(page, "steady", "Closed");
    assert.equal(await announced(page), "", "what was there before is no news");
    await page.evaluate(() => {
      window.said = [];
      const region = panel.shadowRoot.querySelector("section > [aria-live]");
      new MutationObserver(() => said.push(region.textContent)).observe(region, { childList: true, characterData: true });
    });
    await page.evaluate(() => fail("steady", 4));
    await word(page, "steady", "Open");
    const left = await row(page, "steady").locator(".left").textContent();
    await page.waitForFunction(([left]) => panel.shadowRoot.querySelector(".left").textContent !== left, [left]);
    const said = await page.evaluate(() => window.said);
    assert.deepEqual(said.map(withoutTimes), ["steady: open since … UTC: 3 of 4 calls in the last 30 s failed, limit 50 %; next probe in …."]);
    assert.equal(await page.locator("section > [aria-live]").getAttribute("aria-live"), "polite");
  }));

test("many changes are announced as one", () =>
  withPages(["/app"], async (page) => {
    await page.evaluate(() => ["a", "b", "c", "d", "e"].forEach((key) => void call(key)));
    await page.locator('.summary:text-is("5 circuits: all closed")').waitFor();
    await page.evaluate(() => ["a", "b", "c", "d"].forEach((key) => registry.get(key).force("open")));
    await page.locator('.summary:text-is("5 circuits: 4 open")').waitFor();
    assert.equal(await announced(page), "4 circuits changed. Now 5 circuits: 4 open.");
  }));

test("nothing can be operated unless the page says so", () =>
  withPages(["/app"], async (page) => {
    await page.evaluate(() => call("steady"));
    await word(page, "steady", "Closed");
    assert.equal(await page.getByRole("button", { name: "Operate" }).count(), 0);
    await page.evaluate(() => panel.setAttribute("controls", ""));
    assert.equal(await page.getByRole("button", { name: "Operate" }).count(), 1);
    await page.getByRole("button", { name: "Operate steady" }).click();
    await page.evaluate(() => panel.removeAttribute("controls"));
    assert.equal(await page.getByRole("button", { name: "Force open" }).count(), 0);
  }));

test("an operator can force, hold, release and reset by keyboard alone, and sees the focus", () =>
  withPages(["/controls"], async (page) => {
    await page.evaluate(() => Promise.all([call("steady"), call("aside")]));
    await word(page, "steady", "Closed");
    const press = async (name) => {
      for (let tabs = 0; tabs < 40; tabs++) {
        const focused = await page.evaluate(() => {
          const element = panel.shadowRoot.activeElement;
          return element && { name: element.getAttribute("aria-label") ?? element.textContent, outline: getComputedStyle(element).outlineStyle };
        });
        if (focused) assert.notEqual(focused.outline, "none", `focus on ${focused.name} is seen`);
        if (focused?.name === name) return page.keyboard.press("Enter");
        await page.keyboard.press("Tab");
      }
      throw new Error(`${name} was not reached`);
    };
    await press("Operate steady");
    await press("Force open");
    await word(page, "steady", "Open");
    await press("Hold closed");
    await word(page, "steady", "Closed, held");
    await press("Release the hold");
    await word(page, "steady", "Closed");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter"); // hold open
    await word(page, "steady", "Open, held");
    await press("Reset: closed and empty");
    await word(page, "steady", "Closed");
    assert.equal(await page.evaluate(() => registry.get("aside").inspect().generation), 0, "the other one was left alone");
  }));

test("a command that is not taken is said so", () =>
  withPages(["/controls"], async (page) => {
    await page.evaluate(() => {
      registry.get("steady");
      panel.source = { ...panelFeed(registry, { controls: true }), act: () => false };
    });
    await page.getByRole("button", { name: "Operate steady" }).click();
    await page.getByRole("button", { name: "Force open" }).click();
    await page.locator(".notice", { hasText: "The last command was not taken." }).waitFor();
  }));

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing, ${colorScheme}, and nothing sticks out, at 1000 and at 390 px`, () =>
    withPages(
      ["/controls"],
      async (page) => {
        const long = "https.a-rather-long-name-of-a-service.in-some-region-far-away.example.com.and-more.8443";
        await page.evaluate((long) => Promise.all([fail("steady", 4), fail("quick", 3), call("calm"), registry.get("held").hold("open"), fail(long, 4)]), long);
        await word(page, "quick", "Half-open");
        await word(page, "held", "Open, held");
        await page.getByRole("button", { name: "Operate steady" }).click();
        await page.evaluate(axe);
        for (const width of [1000, 390]) {
          await page.setViewportSize({ width, height: 800 });
          const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
          assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html)}`), []);
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
        }
        const ground = await page.locator("tripcurve-panel").evaluate((element) => getComputedStyle(element).backgroundColor);
        assert.equal(ground, colorScheme === "dark" ? "rgb(20, 24, 27)" : "rgb(255, 255, 255)");
      },
      { colorScheme },
    ));
}

test("nothing moves when less motion is asked for", () =>
  withPages(
    ["/app"],
    async (page) => {
      await page.evaluate(() => fail("steady", 2));
      await page.locator('.counted:text-is("2 of 2 failed")').waitFor();
      assert.equal(await page.locator(".bar").evaluate((bar) => getComputedStyle(bar).transitionDuration), "0s");
    },
    { reducedMotion: "reduce" },
  ));

test("colours and parts can be set from outside", () =>
  withPages(["/app"], async (page) => {
    await page.evaluate(() => fail("steady", 4));
    await word(page, "steady", "Open");
    await page.evaluate(() => {
      panel.style.setProperty("--tripcurve-open", "rgb(1, 2, 3)");
      const sheet = new CSSStyleSheet();
      sheet.replaceSync("tripcurve-panel::part(log) { display: none }");
      document.adoptedStyleSheets = [sheet];
    });
    assert.equal(await row(page, "steady").locator(".word").evaluate((element) => getComputedStyle(element).color), "rgb(1, 2, 3)");
    assert.equal(await page.locator(".log").isVisible(), false);
  }));

test("a second window shows the circuits of the first, is told of a change, and says when nobody answers any more", () =>
  withPages(["/broadcast", "/watch"], async (app, watch) => {
    await app.evaluate(() => call("steady"));
    await word(watch, "steady", "Closed");
    await app.evaluate(() => fail("steady", 4));
    await word(watch, "steady", "Open");
    assert.equal(await watch.locator("tbody tr").getAttribute("data-reason"), "failure_rate");
    assert.match(await announced(watch), /^steady: open since/);
    await app.evaluate(() => window.stop());
    await watch.locator(".notice", { hasText: /^No news for .* this is what was known at \d\d:\d\d:\d\d UTC\.$/ }).waitFor();
  }));

test("a second window operates only what its app lets it", () =>
  withPages(["/broadcast", "/watch"], async (app, watch) => {
    await app.evaluate(() => call("steady"));
    await word(watch, "steady", "Closed");
    assert.equal(await watch.getByRole("button", { name: "Operate" }).count(), 0);
    // Whoever asks all the same.
    await watch.evaluate(async () => {
      const channel = new BroadcastChannel("shop");
      const from = await new Promise((resolve) => {
        channel.onmessage = ({ data }) => data?.from && resolve(data.from);
      });
      channel.postMessage({ tripcurve: "act", to: from, command: { id: "steady", verb: "force", to: "open" } });
      channel.postMessage({ tripcurve: "ask", to: from, cursor: null });
      await new Promise((resolve) => (channel.onmessage = resolve));
    });
    assert.equal(await app.evaluate(() => registry.get("steady").state), "closed");
  }));

test("a second window operates the circuits of an app that allows it, and makes none", () =>
  withPages(["/broadcast-controls", "/watch"], async (app, watch) => {
    await app.evaluate(() => call("steady"));
    await watch.getByRole("button", { name: "Operate steady" }).click();
    await watch.getByRole("button", { name: "Hold open" }).click();
    await word(watch, "steady", "Open, held");
    assert.equal(await app.evaluate(() => registry.get("steady").inspect().held), "open");
    const made = await app.evaluate(() => {
      const feed = panelFeed(registry, { controls: true });
      return [feed.act({ id: "unknown", verb: "reset" }), feed.act({ id: "steady", verb: "dispose" }), feed.act(null), registry.size];
    });
    assert.deepEqual(made, [false, false, false, 1]);
  }));

test("with two apps on a channel it stays with the one that answered, and takes the other when that one has gone", () =>
  withPages(["/broadcast", "/watch"], async (app, watch) => {
    await app.evaluate(() => call("first"));
    await word(watch, "first", "Closed");
    const other = await app.context().newPage();
    await other.goto(`${site.url}/broadcast`);
    await other.locator("body[data-ready]").waitFor();
    await other.evaluate(() => call("second"));
    await app.evaluate(() => call("third"));
    await word(watch, "third", "Closed");
    assert.equal(await row(watch, "second").count(), 0);
    await app.close();
    await watch.bringToFront();
    await word(watch, "second", "Closed");
    assert.equal(await row(watch, "first").count(), 0);
  }));

test("what is no news is ignored, whoever says it", () =>
  withPages(["/broadcast", "/watch"], async (app, watch) => {
    await app.evaluate(() => call("steady"));
    await word(watch, "steady", "Closed");
    await watch.evaluate(() => {
      window.seen = [];
      const list = document.querySelector("tripcurve-panel").shadowRoot.querySelector("section");
      new MutationObserver((records) => records.forEach(({ addedNodes }) => addedNodes.forEach((node) => seen.push(node.textContent)))).observe(list, { subtree: true, childList: true });
    });
    await app.evaluate(async () => {
      const channel = new BroadcastChannel("shop");
      const from = await new Promise((resolve) => {
        channel.onmessage = ({ data }) => data?.from && resolve(data.from);
        channel.postMessage({ tripcurve: "ask", to: null, cursor: null });
      });
      registry.get("steady").hold("closed");
      const good = panelFeed(registry, { past: [{ key: "steady", from: "closed", to: "open", reason: "forced", at: 1, generation: 1, counts: { calls: 0, failures: 0, slow: 0 }, until: 2 }] }).news();
      const [circuit, move] = [{ ...good.circuits[0], id: "wrong" }, { ...good.moves[0], id: "wrong" }];
      const wrong = (change) => ({ ...good, circuits: [{ ...circuit, ...change }], moves: [] });
      const broken = [
        ...[null, 7, "news", [], {}, { ...wrong(), circuits: null }, { ...wrong(), moves: {} }, { ...wrong(), cursor: 5 }, { ...wrong(), now: "now" }, { ...wrong(), now: 1e300 }, { ...wrong(), tripcurve: 2 }],
        ...[{ state: "ajar" }, { counts: null }, { counts: { calls: 1, failures: -1, slow: 0 } }, { until: NaN }, { since: -1 }, { since: 1e300 }, { key: 5 }, { id: "wrong".repeat(99) }, { held: "half" }, { state: "open", held: null, until: null }].map(wrong),
        ...[{ why: { reason: "magic" } }, { why: 1 }, { policy: { window: { kind: "moon" } } }, { policy: { failures: "2" } }, { policy: { failureRate: [1, 0] } }, { rejected: "5" }, { generation: 0.1 - 1 }].map(wrong),
        ...[{ reason: "toString" }, { from: "ajar" }, { at: Infinity }, { number: null }, { counts: 1 }].map((change) => ({ ...good, circuits: [], moves: [null, { ...move, ...change }] })),
      ];
      for (const news of broken) channel.postMessage({ tripcurve: "news", from, news });
      for (const message of [null, 1, "ask", { tripcurve: "ask" }, { tripcurve: "changed" }, { tripcurve: "act", to: from }]) channel.postMessage(message);
      channel.postMessage({ tripcurve: "news", from, news: { ...wrong({ id: "forged" }), moves: [{ ...move, id: "forged" }] } });
    });
    await watch.waitForFunction(() => seen.filter((text) => text.includes("forged")).length >= 2, null, { polling: 50 }); // what has the form is believed: it is the app's own origin
    assert.deepEqual(await watch.evaluate(() => seen.filter((text) => text.includes("wrong"))), []);
    await app.evaluate(() => call("after"));
    await word(watch, "after", "Closed");
    await word(watch, "steady", "Closed, held");
  }));

test("names and causes are text, also from a sender that lies", () =>
  withPages(["/app"], async (page) => {
    const evil = '<img src=x onerror="window.hit=1">';
    await page.evaluate((evil) => {
      registry.get("steady").force("open");
      const feed = panelFeed(registry);
      const forge = (each) => ({ ...each, id: evil, key: evil });
      panel.source = { ...feed, news: (cursor) => ((news) => ({ ...news, circuits: news.circuits.map(forge), moves: news.moves.map(forge) }))(feed.news(cursor)) };
    }, evil);
    await page.locator("li.row .key", { hasText: evil }).waitFor();
    assert.equal(await page.locator("tripcurve-panel img").count(), 0);
    assert.equal(await page.evaluate(() => window.hit), undefined);
  }));

test("a panel that is taken out asks nothing more and leaves no listener; put in again it goes on", () =>
  withPages(["/app"], async (page) => {
    const counts = await page.evaluate(async () => {
      const feed = panelFeed(registry);
      let asked = 0;
      let listeners = 0;
      const counted = {
        ...feed,
        news: (cursor) => (asked++, feed.news(cursor)),
        on: (changed) => (listeners++, ((stop) => () => (listeners--, stop()))(feed.on(changed))),
      };
      panel.source = counted;
      registry.get("steady").force("open");
      await new Promise((resolve) => setTimeout(resolve, 1_300));
      const during = [asked > 1, listeners];
      panel.remove();
      asked = 0;
      registry.get("steady").reset();
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      const out = [asked, listeners];
      document.querySelector("main").append(panel);
      return { during, out, again: [asked, listeners] };
    });
    assert.deepEqual(counts, { during: [true, 1], out: [0, 0], again: [1, 1] });
    await word(page, "steady", "Closed");
  }));

test("500 circuits that all open: rows stay the same elements, and what did not change is not written", () =>
  withPages(["/app"], async (page) => {
    const keys = Array.from({ length: 500 }, (_, index) => `service-${index}`);
    await page.evaluate((keys) => keys.forEach((key) => registry.get(key)), keys);
    await page.locator('.summary:text-is("500 circuits: all closed")').waitFor();
    const writes = await page.evaluate(async () => {
      const list = panel.shadowRoot.querySelector("ul");
      window.rows = new Set(list.children);
      panel.setAttribute("span-ms", "1000");
      await new Promise((resolve) => setTimeout(resolve, 2_200)); // until they are older than what is shown
      let writes = 0;
      new MutationObserver((records) => (writes += records.length)).observe(list, { subtree: true, childList: true, attributes: true, characterData: true });
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      return writes;
    });
    assert.equal(writes, 0);
    await page.evaluate((keys) => keys.forEach((key) => registry.get(key).force("open")), keys);
    await page.locator('.summary:text-is("500 circuits: 500 open")').waitFor();
    assert.equal(await page.evaluate(() => [...panel.shadowRoot.querySelectorAll("li.row")].every((row) => window.rows.has(row))), true);
    assert.equal(await page.locator("tbody tr").count(), 100);
  }));

test("the snapshot can be copied, and where the page may not copy it is there to be taken", () =>
  withPages(
    ["/app"],
    async (page) => {
      await page.evaluate(() => fail("steady", 4));
      await word(page, "steady", "Open");
      await page.getByRole("button", { name: "Copy snapshot" }).click();
      await page.locator(".copied", { hasText: "Copied" }).waitFor();
      const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
      assert.deepEqual([copied.circuits[0].key, copied.circuits[0].state, copied.transitions[0].reason], ["steady", "open", "failure_rate"]);
      assert.match(copied.circuits[0].explanation, /^open since/);
      await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
      await page.getByRole("button", { name: "Copy snapshot" }).click();
      await page.getByRole("textbox", { name: "Snapshot" }).waitFor();
    },
    { permissions: ["clipboard-read", "clipboard-write"] },
  ));

test("a source set before the element is defined is taken over", () =>
  withPages(["/app"], async (page) => {
    await page.evaluate(() => {
      const late = document.createElement("late-panel");
      late.source = registry.get("alone");
      document.querySelector("main").append(late);
      definePanel("late-panel");
    });
    await page.locator("late-panel .key", { hasText: "alone" }).waitFor();
  }));

test("the pages of docs/panel.md do what they say", () =>
  withPages(["/docs-0", "/docs-1", "/docs-2"], async (own, _, watch) => {
    assert.equal(docs.length, 3);
    for (const page of [own, watch]) {
      await page.bringToFront();
      await page.locator(".empty", { hasText: "No circuit yet" }).waitFor();
    }
  }));
