// `npm run flags`: what each build flag is worth. Builds the runtime module with one flag changed at a time and shows its size after
// wasm-opt and the cost of a guarded success at the boundary (admit and settle, a window of 100 calls). Takes some minutes.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { optimise as built } from "./build.mjs";
import { setup } from "./setup.mjs";
import { fail, output, root, run, say, StepError } from "./shell.mjs";

const folder = join(root, "target", "flags");
const profile = (text) => ["--config", `profile.release.${text}`];
const variants = [
  { name: "as built" },
  { name: 'opt-level "s"', cargo: profile('opt-level="s"') },
  { name: "opt-level 3", cargo: profile("opt-level=3") },
  { name: "thin LTO", cargo: profile('lto="thin"') },
  { name: "no LTO", cargo: profile('lto="off"') },
  { name: "16 codegen units", cargo: profile("codegen-units=16") },
  { name: "panic unwind", cargo: profile('panic="unwind"') },
  { name: "cdylib and rlib at once", crateType: "cdylib,rlib" },
  { name: "no bulk memory", env: { RUSTFLAGS: "-C target-feature=-bulk-memory,-bulk-memory-opt" } },
  { name: "no wasm-opt", optimise: null },
  { name: "wasm-opt -Os, nothing else", optimise: ["-Os"] },
  ...built.filter((flag) => flag !== "-Os").map((flag) => ({ name: `without ${flag}`, optimise: built.filter((other) => other !== flag) })),
  { name: "with --converge", optimise: [...built, "--converge"] },
  { name: "wasm-opt -Oz", optimise: ["-Oz"] },
  { name: "wasm-opt -O3", optimise: ["-O3"] },
  { name: "wasm-opt -O4", optimise: ["-O4"] },
];

async function make({ cargo = [], crateType = "cdylib", env = {}, optimise = built }) {
  const quiet = { stdio: ["ignore", "ignore", "inherit"], env: { CARGO_TARGET_DIR: folder, ...env } };
  const command = ["rustc", "--quiet", "--package", "tripcurve-wasm", "--lib", "--release", "--target", "wasm32-unknown-unknown"];
  await run("cargo", [...command, "--crate-type", crateType, ...cargo], quiet);
  await run("wasm-bindgen", ["--target", "bundler", "--out-dir", folder, join(folder, "wasm32-unknown-unknown/release/tripcurve_wasm.wasm")], quiet);
  const wasm = join(folder, "tripcurve_wasm_bg.wasm");
  const strip = ["--strip-debug", "--strip-producers", "--strip-target-features"];
  await run("wasm-opt", [wasm, ...(optimise ?? []), ...strip, "-o", wasm], quiet);
  return readFileSync(wasm);
}

/** Nanoseconds for one admit and one settle of a closed circuit: the best of many short rounds, since noise only ever adds. */
function cost(bytes) {
  const host = new Proxy({}, { get: (_, name) => (at, length) => void (name.includes("getRandomValues") && new Uint8Array(exports.memory.buffer, at, length).fill(7)) });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), new Proxy({}, { get: () => host }));
  const { admit, settle } = exports;
  const block = new Float64Array(exports.memory.buffer, exports.scratch() >>> 0, 24).fill(NaN);
  block[0] = 2; // a window of calls, 100 of them
  block[3] = 100;
  const policy = exports.policy();
  if (policy < 0) throw new StepError(`the module refuses the policy: ${policy}`);
  const handle = exports.create(policy, 0);
  const calls = 20_000;
  const round = () => {
    const started = process.hrtime.bigint();
    for (let call = 0; call < calls; call += 1) settle(handle, admit(handle, call), 0, NaN, call);
    return Number(process.hrtime.bigint() - started) / calls;
  };
  return Math.min(...Array.from({ length: 400 }, round));
}

async function main() {
  await setup();
  mkdirSync(folder, { recursive: true });
  const rows = [];
  for (const variant of variants) {
    const row = await make(variant).then(
      (bytes) => [variant.name, bytes.length, gzipSync(bytes, { level: 9 }).length, cost(bytes).toFixed(1)],
      (error) => {
        if (!(error instanceof StepError)) throw error;
        return [variant.name, "does not build", "", ""];
      },
    );
    rows.push(row);
  }
  say(`\n${output("rustc", ["-V"])}, binaryen ${JSON.parse(readFileSync(join(root, "node_modules/binaryen/package.json"), "utf8")).version}, Node ${process.version}\n`);
  say("| flags | bytes | gzip | admit + settle, ns |\n|---|---|---|---|");
  for (const row of rows) say(`| ${row.join(" | ")} |`);
}

main().catch(fail);
