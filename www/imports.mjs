// The page imports the package by its public names. The import map is made from the package's own `exports`, so that the page gets exactly
// what a browser bundler would pick.

import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

const CONDITIONS = new Set(["browser", "import", "module", "default"]);

/** The import map for a package folder, its files served under `/`. */
export async function importMap(root) {
  const { name, exports } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const imports = {};
  for (const [subpath, target] of Object.entries(exports ?? {})) {
    const file = pick(target);
    if (!file || !file.endsWith(".js")) continue;
    if (!subpath.includes("*")) {
      imports[name + subpath.slice(1)] = file.slice(1);
      continue;
    }
    for (const part of await expansions(root, file)) imports[name + subpath.slice(1).replace("*", part)] = file.slice(1).replace("*", part);
  }
  return { imports };
}

function pick(target) {
  if (typeof target === "string") return target;
  for (const [condition, inner] of Object.entries(target ?? {})) {
    const file = CONDITIONS.has(condition) ? pick(inner) : undefined;
    if (file) return file;
  }
  return undefined;
}

async function expansions(root, pattern) {
  const [before, after] = pattern.split("*");
  const names = await readdir(join(root, before)).catch(() => []);
  return names.filter((name) => name.endsWith(after)).map((name) => name.slice(0, name.length - after.length));
}
