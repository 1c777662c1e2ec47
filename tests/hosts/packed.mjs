// A stranger's project with the packed tarball installed, and what runs a page of it.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium, firefox } from "playwright-core";
import { listen, shut } from "../../www/listen.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const call = promisify(execFile);

/** `parent`: a folder whose node_modules the project is to find as well. */
export async function installPacked(parent = tmpdir()) {
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "tripcurve-packed-"));
  const npm = (args, cwd) => call("npm", [...args, "--loglevel=error", "--no-audit", "--no-fund", "--no-update-notifier"], { cwd });
  const { stdout } = await npm(["pack", "--ignore-scripts", "--json", "--pack-destination", folder], root);
  const tarball = join(folder, JSON.parse(stdout)[0].filename);
  const project = join(folder, "project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "name": "stranger", "private": true, "type": "module" }');
  await npm(["install", "--ignore-scripts", "--offline", tarball], project);
  // The peer that tripcurve/otel needs.
  cpSync(join(root, "node_modules", "@opentelemetry", "api"), join(project, "node_modules", "@opentelemetry", "api"), { recursive: true });
  cpSync(fileURLToPath(new URL("fixtures", import.meta.url)), project, { recursive: true });
  return { project, tarball, installed: join(project, "node_modules", "tripcurve"), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The last line that a program printed, as JSON. */
export const lastLine = (printed) => JSON.parse(printed.trim().split("\n").at(-1));

export async function runNode(project, ...args) {
  const { stdout } = await call(process.execPath, args, { cwd: project });
  return lastLine(stdout);
}

const types = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".css": "text/css" };

/** Serves a folder without naming a character set, as many a server does, while `work` runs. */
export async function serving(folder, work, headers = {}) {
  const server = createServer((request, response) => {
    const path = request.url === "/" ? "/index.html" : request.url;
    try {
      const body = readFileSync(join(folder, path));
      response.writeHead(200, { ...headers, "Content-Type": types[extname(path)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  try {
    return await work(await listen(server, "127.0.0.1", 0));
  } finally {
    await shut(server);
  }
}

const browsers = {
  Chromium: () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] }),
  Firefox: () => firefox.launch({ channel: "moz-firefox", executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr" }),
};

/** Opens a page and returns what `outcome` became. `prelude` runs in it before anything else. */
export async function outcomeIn(name, url, prelude) {
  const browser = await browsers[name]();
  try {
    const page = await browser.newPage();
    const problems = [];
    if (prelude) await page.addInitScript(prelude);
    page.on("pageerror", (error) => problems.push(error));
    await page.goto(url);
    await page.waitForFunction(() => "outcome" in globalThis, null, { timeout: 20_000 }).catch((error) => {
      throw problems[0] ?? error;
    });
    return { version: browser.version(), outcome: await page.evaluate(() => globalThis.outcome) };
  } finally {
    await browser.close();
  }
}
