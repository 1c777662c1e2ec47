// A stranger's project with the packed tarball installed, in a temporary folder.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));
const call = promisify(execFile);

export async function installPacked() {
  const folder = mkdtempSync(join(tmpdir(), "tripcurve-packed-"));
  const npm = (args, cwd) => call("npm", [...args, "--loglevel=error", "--no-audit", "--no-fund", "--no-update-notifier"], { cwd });
  const { stdout } = await npm(["pack", "--ignore-scripts", "--json", "--pack-destination", folder], root);
  const tarball = join(folder, JSON.parse(stdout)[0].filename);
  const project = join(folder, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "name": "stranger", "private": true, "type": "module" }');
  await npm(["install", "--ignore-scripts", "--offline", tarball], project);
  cpSync(fileURLToPath(new URL("fixtures", import.meta.url)), project, { recursive: true });
  return { project, tarball, installed: join(project, "node_modules", "tripcurve"), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The last line a script printed, as JSON. */
export async function runNode(project, ...args) {
  const { stdout } = await call(process.execPath, args, { cwd: project });
  return JSON.parse(stdout.trim().split("\n").at(-1));
}

const types = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

/**
 * Serves a folder without naming a character set, as many a server does, opens its index.html in Chromium and returns what `outcome` became.
 * `prelude` runs in the page before anything else.
 */
export async function runInChromium(folder, { headers = {}, prelude } = {}) {
  const server = createServer((request, response) => {
    const path = request.url === "/" ? "/index.html" : request.url;
    try {
      const body = readFileSync(join(folder, path));
      response.writeHead(200, { ...headers, "Content-Type": types[extname(path)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage();
    const problems = [];
    if (prelude) await page.addInitScript(prelude);
    page.on("pageerror", (error) => problems.push(error));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForFunction(() => "outcome" in globalThis, null, { timeout: 10_000 }).catch((error) => {
      throw problems[0] ?? error;
    });
    return await page.evaluate(() => globalThis.outcome);
  } finally {
    await browser.close();
    server.closeAllConnections();
    server.close();
  }
}
