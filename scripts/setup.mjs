// Brings a machine to where it can build and test: checks what a person must install, installs the rest. A second run only looks.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { StepError, exclusively, fail, isMain, output, root, run, say, timed } from "./shell.mjs";

// wasm-pack downloads a wasm-bindgen of its own unless the one on PATH is exactly the version the crate was compiled against.
const tools = { "wasm-pack": "0.15.1", "wasm-bindgen": "0.2.130" };
const crates = { "wasm-pack": "wasm-pack", "wasm-bindgen": "wasm-bindgen-cli" };
const target = "wasm32-unknown-unknown";

export async function setup() {
  if (Number(process.versions.node.split(".")[0]) < 20) throw new StepError(`Node 20 or later is needed, this is ${process.version}`);
  if (!output("cargo", ["--version"])) throw new StepError("Rust is needed: install it from https://rustup.rs, then run this again");
  await exclusively("set-up", async () => {
    await rustTarget();
    await rustTools();
    await npmPackages();
  });
}

async function rustTarget() {
  const sysroot = output("rustc", ["--print", "sysroot"]);
  if (existsSync(join(sysroot, "lib", "rustlib", target))) return;
  if (!output("rustup", ["--version"])) throw new StepError(`this Rust has no ${target} standard library and there is no rustup to add it`);
  await timed(`Rust target ${target}`, () => run("rustup", ["target", "add", target]));
}

async function rustTools() {
  const missing = Object.keys(tools).filter((tool) => output(tool, ["--version"]) !== `${tool} ${tools[tool]}`);
  if (missing.length === 0) return;
  const wanted = missing.map((tool) => `${crates[tool]}@${tools[tool]}`);
  // Debug builds without debug info and without the TLS stack: half the time of a release build, and the tools run for milliseconds.
  await timed(`${wanted.join(" and ")}, from source: about two minutes, once per machine`, () =>
    run("cargo", ["install", ...wanted, "--no-default-features", "--debug", "--config", "profile.dev.debug=0"]),
  );
}

async function npmPackages() {
  if (installedAsLocked()) return;
  await timed("npm packages", () => run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]));
}

/** npm notes in node_modules what it put there: the same versions as in the lock, less what is for other platforms. */
function installedAsLocked(folder = root) {
  const noted = join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(noted)) return false;
  const here = JSON.parse(readFileSync(noted, "utf8")).packages;
  const locked = Object.entries(JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")).packages).filter(([path]) => path !== "");
  return locked.every(([path, entry]) => (here[path] ? here[path].version === entry.version : entry.optional));
}

/** A minimal toolchain comes without them, and only the tests need them. */
export async function rustComponents() {
  const missing = Object.entries({ rustfmt: "fmt", clippy: "clippy" }).filter(([, command]) => !output("cargo", [command, "--version"])).map(([component]) => component);
  if (missing.length > 0) await timed(missing.join(" and "), () => run("rustup", ["component", "add", ...missing]));
}

export const chromiumPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const firefoxPath = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
export const redisServer = process.env.REDIS_SERVER ?? "/usr/bin/redis-server";
export const prometheusPath = process.env.PROMETHEUS ?? "/usr/bin/prometheus";

/** Other hosts of JavaScript, several hundred MB: where they cannot be had the tests in them are skipped, and say why. */
export async function hosts() {
  const folder = join(root, "tests", "hosts");
  if (installedAsLocked(folder)) return;
  await timed("Node 22 and 24, Deno, Bun, bundlers and test runners", () => run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder })).catch((error) =>
    say(`  left out: ${error.message}`),
  );
}

// Only the tests need browsers of their own, and servers.
export const chromium = () => debian("the browser tests need Chromium", "chromium", "CHROMIUM", chromiumPath);
export const firefox = () => debian("the browser tests need Firefox", "firefox-esr", "FIREFOX", firefoxPath);
export const redis = () => debian("the tests of stores need Redis 7", "redis-server", "REDIS_SERVER", redisServer);
/** Where it cannot be had the tests with it are skipped, and say why. */
export const prometheus = () =>
  debian("the tests of what Prometheus sees need it and its promtool", "prometheus", "PROMETHEUS", prometheusPath).catch((error) => say(`  left out: ${error.message}`));

/** One host of many: where it cannot be had its row is skipped, and says why. */
export async function webkit() {
  if (process.platform !== "linux" || process.getuid() !== 0 || existsSync("/usr/bin/WebKitWebDriver") || !output("apt-get", ["--version"])) return;
  await timed("WebKit", () => apt("webkit2gtk-driver", "xvfb", "xauth")).catch((error) => say(`  left out: ${error.message}`));
}

async function apt(...names) {
  const options = { env: { DEBIAN_FRONTEND: "noninteractive" } };
  await run("apt-get", ["update", "-qq"], options);
  await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...names], options);
}

async function debian(need, name, variable, path) {
  if (existsSync(path)) return;
  const byHand = `install Debian's ${name}, or name another one in the variable ${variable}`;
  if (process.env[variable]) throw new StepError(`${variable} names ${path}, which does not exist`);
  if (process.platform !== "linux" || !output("apt-get", ["--version"])) throw new StepError(`${need}: ${byHand}`);
  if (process.getuid() !== 0) throw new StepError(`${need} and installing it needs root: sudo apt-get install ${name} (${byHand})`);
  await timed(name, () => apt(name));
}

if (isMain(import.meta.url)) setup().then(() => say("Everything that is needed is here."), fail);
