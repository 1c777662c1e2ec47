import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import test from "node:test";
import { fileURLToPath } from "node:url";

test("a strict project can hand every store the client it has", () => {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "--project", fileURLToPath(new URL("types/tsconfig.json", import.meta.url))], { stdio: "inherit" });
});
