// Both registries would take what is here, and neither has anything to say about it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { env, root } from "../../scripts/shell.mjs";

const printed = (command, ...args) => {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return `${stdout}\n${stderr}`.split("\n");
};
const read = (name) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");

test("npm publish --dry-run has no warning", () => {
  const lines = printed("npm", "publish", "--dry-run", "--ignore-scripts");
  const warnings = lines.filter((line) => /^npm (warn|error)/i.test(line) && !line.includes("requires you to be logged in"));
  assert.deepEqual(warnings, []);
  assert.ok(lines.some((line) => line.startsWith("+ tripcurve@")), "it got to the end");
});

test("cargo publish --dry-run has no warning, and the crate holds its sources and nothing else", () => {
  // `--allow-dirty`: whoever tests is in the middle of a change.
  const lines = printed("cargo", "publish", "--dry-run", "--allow-dirty", "--package", "tripcurve");
  assert.deepEqual(lines.filter((line) => /^(warning|error)/.test(line) && !line.includes("aborting upload due to dry run")), []);
  const files = printed("cargo", "package", "--list", "--allow-dirty", "--package", "tripcurve").filter(Boolean);
  assert.deepEqual(files.filter((file) => !/^(src\/[a-z/]+\.rs|Cargo\.(toml|toml\.orig|lock)|\.cargo_vcs_info\.json|(README|CHANGELOG)\.md|LICENSE-(MIT|APACHE))$/.test(file)), []);
});

test("both packages and the changelog are of one version", () => {
  const { version } = JSON.parse(read("package.json"));
  assert.equal(read("Cargo.toml").match(/^version = "(.+)"$/m)[1], version);
  assert.match(read("CHANGELOG.md"), new RegExp(`^## ${version.replaceAll(".", "\\.")}( |$)`, "m"));
});
