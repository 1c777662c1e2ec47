#!/usr/bin/env node
// `npm run bench`: what a guarded call costs, beside other packages and beside no package at all. See README.md.

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { build } from "../scripts/build.mjs";
import { chromium, redis, setup } from "../scripts/setup.mjs";
import { against, guards } from "./guards.mjs";
import { goals } from "./goals.mjs";
import { measureNative } from "./native.mjs";
import { goalTable, idleTable, markdown, nativeTable, redisTable, table } from "./report.mjs";
import { contestants, scenarios } from "./scenarios.mjs";

const HOSTS = ["node", "chromium", "native", "redis"];

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    hosts: { type: "string", default: HOSTS.join() },
    scenarios: { type: "string" },
    only: { type: "string" },
    against: { type: "string" },
    json: { type: "string" },
    markdown: { type: "boolean", default: false },
    "no-build": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (options.help) {
  console.log(`npm run bench -- [options]
  --quick            few, short rounds: to see that it works, not to believe
  --rounds N         rounds for each scenario (21; quick 3)
  --hosts LIST       of ${HOSTS}
  --scenarios LIST   of ${scenarios.map(({ id }) => id)}
  --only LIST        these guards and the bare await, of ${guards.map(({ name }) => name).join(", ")}
  --against DIR      adds the same package from another checkout (built there)
  --json FILE        writes every number, each round's too
  --markdown         prints the tables of the README in the end
  --no-build         takes dist/ as it is`);
  process.exit(0);
}

const rounds = Number(options.rounds ?? (options.quick ? 3 : 21));
const warmMs = options.quick ? 150 : 600;
const wanted = (list, all, what) => {
  const names = list.split(",").map((name) => name.trim());
  for (const name of names) if (!all.includes(name)) throw new Error(`no ${what} "${name}"; there are: ${all.join(", ")}`);
  return names;
};
const hosts = wanted(options.hosts, HOSTS, "host");
const chosen = options.scenarios ? wanted(options.scenarios, scenarios.map(({ id }) => id), "scenario") : scenarios.map(({ id }) => id);
const everyone = options.against ? [...guards, ...against] : guards;
const only = options.only && wanted(options.only, everyone.map(({ name }) => name), "guard");
const taking = everyone.filter((guard) => !only || guard.bare || only.includes(guard.name));

const libraries = [...new Set(taking.map(({ library }) => library))].filter((library) => library && library !== "against");

if (!options["no-build"]) {
  await setup();
  await build();
  if (hosts.includes("chromium")) await chromium();
  if (hosts.includes("redis")) await redis();
}

const results = { rounds, hosts: {} };
for (const host of hosts) {
  if (host === "native") results.hosts.native = await measureNative(rounds);
  else if (host === "redis") results.hosts.redis = await (await import("./redis.mjs")).measureRedis(rounds);
  else results.hosts[host] = await measure(host);
}
if (results.hosts.native) console.log(nativeTable(results.hosts.native));
if (results.hosts.redis) console.log(redisTable(results.hosts.redis));
results.goals = goals(results.hosts);
console.log(goalTable(results.goals));
if (options.markdown) console.log(markdown(results));
if (options.json) writeFileSync(options.json, `${JSON.stringify(results, null, 1)}\n`);

async function measure(name) {
  const open = name === "node" ? (await import("./node.mjs")).nodeHost : (await import("./browser.mjs")).browserHost;
  const host = await open({ against: options.against, libraries });
  const measured = { name: host.name, scenarios: {} };
  console.log(`\n== ${host.name} ==`);
  try {
    for (const scenario of scenarios.filter(({ id }) => chosen.includes(id))) {
      if (scenario.idle && !host.idle) continue;
      const result = scenario.idle ? await idle(host, scenario) : await race(host, scenario);
      measured.scenarios[scenario.id] = result;
      console.log(scenario.idle ? idleTable(scenario, result) : table(scenario, result));
    }
  } finally {
    await host.close();
  }
  return measured;
}

/** All guards of a scenario, round by round, each time in a new order. */
async function race(host, scenario) {
  const result = {};
  const running = [];
  try {
    for (const contestant of contestants(scenario, taking)) {
      try {
        const opened = await host.open(scenario, contestant);
        running.push({ contestant, opened });
        await opened.warm(warmMs);
        result[contestant.label] = { bare: contestant.bare, rounds: [] };
      } catch (error) {
        result[contestant.label] = { error: error.message.split("\n")[0] };
      }
    }
    const live = running.filter(({ contestant }) => !result[contestant.label].error);
    for (let round = 0; round < rounds; round++) {
      for (const { contestant, opened } of shuffled(live)) result[contestant.label].rounds.push(await opened.round());
    }
    if (scenario.heap && host.heap) for (const { contestant, opened } of live) result[contestant.label].heap = await opened.heap();
  } finally {
    await Promise.all(running.map(({ opened }) => opened.close()));
  }
  return result;
}

/** A process after the other: memory has nothing to be interleaved with. */
async function idle(host, scenario) {
  const result = {};
  for (const contestant of contestants(scenario, taking)) {
    let opened;
    try {
      opened = await host.open(scenario, contestant);
      result[contestant.label] = await opened.idle(scenario.idle);
    } catch (error) {
      result[contestant.label] = { error: error.message.split("\n")[0] };
    } finally {
      await opened?.close();
    }
  }
  return result;
}

function shuffled(list) {
  const left = [...list];
  return Array.from(list, () => left.splice(Math.floor(Math.random() * left.length), 1)[0]);
}
