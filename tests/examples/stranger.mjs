// An example as a stranger has it: copied, the packed package installed, the rest as its package.json names it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { call, installPacked } from "../hosts/packed.mjs";
import { listen, shut } from "../../www/listen.mjs";

export const root = fileURLToPath(new URL("../../", import.meta.url));
const require = createRequire(join(root, "tests", "hosts", "package.json"));

/** `bin(name, file)`: a tool it has installed. */
export async function stranger(name) {
  // There the project finds what is installed for the tests of hosts, and for all tests.
  const { project, remove } = await installPacked(join(root, "tests", "hosts", "projects"));
  const folder = join(project, name);
  cpSync(join(root, "examples", name), folder, { recursive: true });
  const run = (script, args, env = {}) => call(process.execPath, [script, ...args], { cwd: folder, env: { ...process.env, ...env } }).catch(({ stdout, stderr }) => assert.fail(`${stdout}${stderr}`));
  return { folder, run, remove };
}

/** Where a tool's program is, or null: it is not installed. */
export function program(name, file) {
  try {
    return join(require.resolve(`${name}/package.json`), "..", file);
  } catch {
    return null;
  }
}

/** Starts a script that prints its address, and gives that. */
export async function started(folder, script, args, env) {
  const child = spawn(process.execPath, [script, ...args], { cwd: folder, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  const url = await new Promise((resolve, reject) => {
    child.on("exit", (code) => reject(new Error(`${script} ended with ${code}: ${printed}`)));
    child.stdout.on("data", (text) => {
      printed += text;
      const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(printed) ?? [];
      if (found) resolve(found);
    });
  });
  const stop = () => new Promise((resolve) => (child.exitCode === null ? child.once("exit", resolve).kill() : resolve()));
  return { url, stop, printed: () => printed };
}

export async function freePort() {
  const server = createServer();
  const { port } = new URL(await listen(server, "127.0.0.1", 0));
  await shut(server);
  return port;
}

/** A service that answers as `state` says. */
export async function service(state) {
  state.asked = 0;
  const server = createServer(async (request, response) => {
    state.asked += 1;
    if (state.delayMs) await sleep(state.delayMs);
    response.setHeader("Access-Control-Allow-Origin", "*");
    response.writeHead(state.status ?? 200).end(state.answer ?? "from the service");
    request.resume();
  });
  const url = await listen(server, "127.0.0.1", 0);
  return { url, stop: () => shut(server) };
}

/** Asks until `enough`; how many answers it took. */
export async function until(ask, enough, most = 60) {
  for (let count = 1; count <= most; count += 1) if (enough(await ask())) return count;
  assert.fail(`never, in ${most} answers`);
}

export const manifest = (name) => JSON.parse(readFileSync(join(root, "examples", name, "package.json"), "utf8"));
