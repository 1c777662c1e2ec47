// The Rust core alone beside the crate `recloser`: builds and runs bench/native.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const manifest = fileURLToPath(new URL("./native/Cargo.toml", import.meta.url));

/** Rounds of 2 ms instead of 30: most of them escape a busy neighbour. */
export async function measureNative(rounds) {
  console.log("\n== native: building bench/native (about half a minute the first time) ==");
  const { status, error, stdout } = spawnSync("cargo", ["run", "--release", "--quiet", "--locked", "--manifest-path", manifest, "--", String(rounds * 15), "2"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (error || status !== 0) return { error: error?.message ?? `cargo ended with ${status}` };
  const scenarios = JSON.parse(stdout);
  for (const result of Object.values(scenarios)) result["no guard"].bare = true;
  return { name: "the native core", scenarios };
}
