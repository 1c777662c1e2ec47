// The Chromium host: a page in a browser context of its own for every guard, and so a renderer process of its own.

import { createServer } from "node:http";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const here = path.dirname(fileURLToPath(import.meta.url));
const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";
// Cross-origin isolation gives the page a clock of 5 µs instead of 100.
const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

export async function browserHost({ against, libraries }) {
  if (!existsSync(EXECUTABLE)) throw new Error(`no Chromium at ${EXECUTABLE} (set CHROMIUM)`);
  const files = await bundle(against, libraries);
  const server = await serve(files);
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: ["--no-sandbox"] });
  const origin = `http://127.0.0.1:${server.address().port}`;
  return {
    name: `Chromium ${browser.version()}`,
    async open(scenario, contestant) {
      const context = await browser.newContext();
      try {
        const page = await context.newPage();
        await page.goto(`${origin}/`);
        await page.evaluate((spec) => globalThis.bench.open(...spec), [scenario, contestant, contestant.library && `/${contestant.library}.js`]);
        return { warm: (ms) => page.evaluate((t) => globalThis.bench.warm(t), ms), round: () => page.evaluate(() => globalThis.bench.round()), close: () => context.close() };
      } catch (error) {
        await context.close();
        throw error;
      }
    },
    async close() {
      await browser.close();
      server.close();
    },
  };
}

async function bundle(against, libraries) {
  const entries = { page: path.join(here, "page.mjs") };
  for (const name of libraries) entries[name] = name;
  if (against) entries.against = path.resolve(against, "dist/js/index.js");
  const { outputFiles } = await build({
    entryPoints: entries,
    absWorkingDir: path.dirname(here),
    alias: { opossum: "opossum/dist/opossum.min.js" }, // its own file for browsers
    bundle: true,
    format: "esm",
    splitting: true,
    minify: true,
    outdir: "/",
    write: false,
    logLevel: "error",
  });
  return new Map(outputFiles.map((file) => [file.path, file.text]));
}

async function serve(files) {
  const server = createServer((request, response) => {
    if (request.url === "/") return response.writeHead(200, { ...ISOLATED, "content-type": "text/html" }).end('<!doctype html><script type="module" src="/page.js"></script>');
    const text = files.get(request.url);
    if (text === undefined) return response.writeHead(404).end();
    response.writeHead(200, { ...ISOLATED, "content-type": "text/javascript" }).end(text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
