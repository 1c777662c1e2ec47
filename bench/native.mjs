// The Rust core alone beside the crate `recloser`: builds and runs bench/native.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const manifest = fileURLToPath(new URL("./native/Cargo.toml", import.meta.url));

export async function measureNative({ rounds, quick }) {
  console.log("\n== native: building bench/native (about half a minute the first time) ==");
  const { status, error, stdout } = spawnSync("cargo", ["run", "--release", "--quiet", "--locked", "--manifest-path", manifest, "--", String(rounds), quick ? "5" : "30"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (error || status !== 0) return { error: error?.message ?? `cargo ended with ${status}` };
  return { name: "the native core", scenarios: JSON.parse(stdout) };
}
