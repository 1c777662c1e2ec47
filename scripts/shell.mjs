// Running commands and telling what happens: everything the other scripts share. Only Node's built-ins, since it runs before any install.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const cargoBin = join(process.env.CARGO_INSTALL_ROOT ?? process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "bin");
/** The caller's environment, with npm's and cargo's binaries found first. */
export const env = {
  ...process.env,
  PATH: [join(root, "node_modules", ".bin"), cargoBin, process.env.PATH].join(delimiter),
};

export class StepError extends Error {}

const colour = process.stdout.isTTY && !process.env.NO_COLOR;
export const bold = (text) => (colour ? `\x1b[1m${text}\x1b[22m` : text);
export const dim = (text) => (colour ? `\x1b[2m${text}\x1b[22m` : text);
export const say = (text = "") => process.stdout.write(`${text}\n`);

export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** Says what starts, runs it, says how long it took. Silent commands get a sign of life every 15 seconds. */
export async function timed(label, work) {
  say(bold(`▸ ${label}`));
  const started = Date.now();
  const beat = setInterval(() => say(dim(`  … ${label}: ${duration(Date.now() - started)} so far`)), 15_000);
  try {
    const result = await work();
    say(dim(`  done in ${duration(Date.now() - started)}`));
    return result;
  } finally {
    clearInterval(beat);
  }
}

/** Runs a command with its output shown; rejects when it fails. */
export function run(command, args, options = {}) {
  say(dim(`  $ ${[command, ...args].join(" ")}`));
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"], ...options, env: { ...env, ...options.env } });
    child.on("error", (error) => reject(new StepError(error.code === "ENOENT" ? `${command} was not found` : `${command}: ${error.message}`)));
    child.on("exit", (code, signal) => (code === 0 ? resolve() : reject(new StepError(`${command} ended with ${signal ?? `exit code ${code}`}`))));
  });
}

/** What a command printed, or null when it is missing or failed. */
export function output(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, env, encoding: "utf8", ...options });
  return result.status === 0 ? result.stdout.trim() : null;
}

/** All files under the given paths (files or folders), in a fixed order; what does not exist is left out. */
export function filesUnder(...paths) {
  const found = [];
  const visit = (path) => {
    if (!existsSync(path)) return;
    if (!statSync(path).isDirectory()) return found.push(path);
    for (const name of readdirSync(path).sort()) if (name !== "node_modules") visit(join(path, name));
  };
  for (const path of paths) visit(join(root, path));
  return found;
}

export function fingerprint(files, ...extra) {
  const hash = createHash("sha256");
  for (const file of files) hash.update(relative(root, file)).update("\0").update(readFileSync(file)).update("\0");
  return hash.update(JSON.stringify(extra)).digest("hex");
}

// What was done for which inputs. Lives in target/, so `cargo clean` also makes the next start do everything again.
const stampFile = (name) => join(root, "target", "stamps", name);
export const isCurrent = (name, print) => existsSync(stampFile(name)) && readFileSync(stampFile(name), "utf8") === print;
export function stamp(name, print) {
  mkdirSync(dirname(stampFile(name)), { recursive: true });
  writeFileSync(stampFile(name), print);
}
/** Before outputs are touched: an interrupted run must not leave a stamp on half of them. */
export const unstamp = (name) => rmSync(stampFile(name), { force: true });

/** Keeps two builds of one folder apart (`npm start` beside `npm test`). A lock whose process is gone is taken over. */
export async function exclusively(name, work) {
  const lock = stampFile(`${name}.lock`);
  mkdirSync(dirname(lock), { recursive: true });
  for (let waiting = false; ; ) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" });
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      const owner = Number(readOr(lock, "0"));
      if (owner > 0 && !isAlive(owner)) rmSync(lock, { force: true });
      else if (!waiting) say(dim(`  waiting for another ${name} of this folder (process ${owner})`));
      waiting = true;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function readOr(file, otherwise) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return otherwise;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Ends a script: the reason in one line for what we foresaw, the stack for what we did not. */
export function fail(error) {
  say(error instanceof StepError ? `\n✗ ${error.message}` : `\n✗ ${error?.stack ?? error}`);
  process.exit(1);
}

export const isMain = (url) => process.argv[1] !== undefined && fileURLToPath(url) === process.argv[1];
