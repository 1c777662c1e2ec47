// The rows of the README's conformance table: `node tests/node/vectors/report.mjs`. With `--json` the counts, a line per system and way.
import { parseArgs } from "node:util";
import { SYSTEMS } from "./systems/all.mjs";
import { replayAll } from "./trace.mjs";

const { values } = parseArgs({ options: { json: { type: "boolean" } } });
const all = [];
for (const { System, ways } of SYSTEMS) {
  for (const way of ways) {
    const { faults, ...summary } = await replayAll(System, way);
    all.push({ ...summary, faults: faults.length });
    for (const fault of faults) console.error(`${System.title}, ${way.name}: ${fault}`);
  }
}

if (values.json) {
  for (const summary of all) console.log(JSON.stringify(summary));
} else {
  const cell = ({ agree, must } = {}) => (must === undefined ? "–" : `${agree} of ${must}`);
  console.log("| system | `admit` and `settle` | `run` | `run`, no options | `tripcurve/core` | traces that differ on purpose |");
  console.log("|---|---|---|---|---|---|");
  for (const { System } of SYSTEMS) {
    const of = (name) => all.find(({ system, way }) => system === System.title && way === name);
    const { dropped, lease, anyway } = of("admit and settle");
    const differ = [dropped && `${dropped}: a late result is dropped`, lease && `${lease}: each probe has its own lease`].filter(Boolean).join("; ");
    const more = anyway > 0 ? ` (${anyway} more could differ and do not)` : "";
    const cells = ["admit and settle", "run", "run, no options", "core"].map((name) => cell(of(name)));
    console.log(`| ${[System.title, ...cells, `${differ || "none"}${more}`].join(" | ")} |`);
  }
}
process.exitCode = all.some(({ faults }) => faults > 0) ? 1 : 0;
