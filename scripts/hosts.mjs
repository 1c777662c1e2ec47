// `npm run hosts`: the matrix of hosts alone; with `--update` it writes the table of docs/hosts.md.
import { build } from "./build.mjs";
import { chromium, chromiumPath, firefox, firefoxPath, hosts, setup, webkit } from "./setup.mjs";
import { fail, run } from "./shell.mjs";

try {
  await setup();
  for (const need of [chromium, firefox, webkit, hosts]) await need();
  await build();
  const env = { CHROMIUM: chromiumPath, FIREFOX: firefoxPath, ...(process.argv.includes("--update") && { TRIPCURVE_UPDATE: "1" }) };
  await run(process.execPath, ["--test", "--test-timeout=300000", "--test-reporter=spec", "tests/hosts/matrix.test.mjs"], { env });
} catch (error) {
  fail(error);
}
