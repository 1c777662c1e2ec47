// The Rust core alone beside the crate `recloser`: builds and runs bench/native.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const manifest = fileURLToPath(new URL("./native/Cargo.toml", import.meta.url));

const PROCESSES = 7;

/**
 * Short rounds, most of which escape a busy neighbour, in several processes: where a process happens to lie in memory can double what
 * nanoseconds cost.
 */
export async function measureNative(rounds) {
  console.log("\n== native: building bench/native (about half a minute the first time) ==");
  const scenarios = {};
  for (let i = 0; i < PROCESSES; i++) {
    const { status, error, stdout } = spawnSync("cargo", ["run", "--release", "--quiet", "--locked", "--manifest-path", manifest, "--", String(rounds * 2), "2"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    });
    if (error || status !== 0) return { error: error?.message ?? `cargo ended with ${status}` };
    for (const [scenario, result] of Object.entries(JSON.parse(stdout))) {
      for (const [guard, each] of Object.entries(result)) {
        const all = ((scenarios[scenario] ??= {})[guard] ??= { bare: guard === "no guard", rounds: [] });
        all.rounds.push(...each.rounds);
      }
    }
  }
  return { name: "the native core", scenarios };
}
