// Results as text.

import { median, over, times, timesBest, whole } from "./stats.mjs";

const number = (value, digits = 0) => (Number.isFinite(value) ? value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) : "-");

/** A reference of ours for each window, where it took part. */
const references = (result) => ["tripcurve time", "tripcurve calls"].filter((label) => result[label]?.rounds);

export function table(scenario, result) {
  const ours = references(result);
  const head = ["guard", "ns a call", "over bare", "best", "best over", ...(scenario.heap ? ["heap B", "over bare"] : []), ...ours.map((label) => `over: ${label}`)];
  const bare = Object.values(result).find((each) => each.bare);
  const bestBare = bare?.rounds ? Math.min(...bare.rounds) : NaN;
  const rows = Object.entries(result).map(([label, each]) => {
    if (each.error) return [label, each.error];
    const best = Math.min(...each.rounds);
    return [
      label,
      number(median(each.rounds)),
      number(median(over(result, label))),
      number(best),
      number(best - bestBare),
      ...(scenario.heap ? [number(each.heap), number(each.heap - bare?.heap)] : []),
      ...ours.map((reference) => (each.bare ? "" : `${number(times(result, label, reference, over), 2)} / ${number(timesBest(result, label, reference, over), 2)}`)),
    ];
  });
  return layout(scenario.title, head, rows);
}

export function idleTable(scenario, result) {
  const rows = Object.entries(result).map(([label, each]) => (each.error ? [label, each.error] : [label, number(each.bytes), number(each.ns)]));
  return layout(scenario.title, ["guard", "bytes each", "first call, ns"], rows);
}

export function nativeTable(native) {
  if (native.error) return `\n== native ==\nleft out: ${native.error}`;
  const tables = Object.entries(native.scenarios).map(([scenario, result]) => {
    const rows = Object.entries(result).map(([label, each]) => [label, number(median(each.rounds), 1), number(Math.min(...each.rounds), 1), each.bare ? "" : number(times(result, "recloser", label, over), 2)]);
    return layout(`native, ${scenario}`, ["guard", "ns a call", "best", "recloser over it"], rows);
  });
  return tables.join("\n");
}

export function redisTable(redis) {
  if (redis.error) return `\n== Redis ==\nleft out: ${redis.error}`;
  const { closed } = redis.scenarios;
  const rows = Object.entries(closed).map(([label, each]) => [label, number(median(each.rounds)), each.bare ? "" : number(times(closed, label, "unshared"), 2)]);
  return layout("closed calls, shared by Redis", ["guard", "ns a call", "times unshared"], rows);
}

export function goalTable(goals) {
  if (goals.length === 0) return "";
  return layout("goals", ["", "goal", "reached", "best rounds", ""], goals.map(goalRow));
}

const goalRow = (goal) => [goal.title, goal.target, goal.reached, goal.best ?? "", goal.met === null ? "not measured" : goal.met ? "yes" : "MISSED"];

/** The goals, for the README. */
export function markdown({ hosts, goals }) {
  const measured = Object.values(hosts).map((host) => host.name).filter(Boolean).join(", ");
  const lines = ["", `Measured on ${measured}.`, "", "| what | goal | reached |", "|---|---|---|"];
  for (const goal of goals) if (goal.met !== null) lines.push(`| ${goal.title} | ${goal.target} | ${goal.reached}${goal.met ? "" : " (missed)"} |`);
  for (const [, host] of Object.entries(hosts)) if (host.scenarios?.failures && host.scenarios.closed?.["bare await"]) lines.push(...markdownHost(host));
  return lines.join("\n");
}

function markdownHost({ name, scenarios }) {
  const columns = [["closed", "succeeds", over], ["failures", "10 % fail", over], ["refused", "refused", whole], ["fallback", "refused, fallback", whole]].filter(([id]) => scenarios[id]);
  const labels = Object.keys(scenarios.closed).filter((label) => !scenarios.closed[label].error);
  const lines = ["", `${name}, ns a call: over a bare await while closed, the whole call while open.`, "", `| guard | ${columns.map(([, title]) => title).join(" | ")} |`, `|---|${columns.map(() => "---").join("|")}|`];
  for (const label of labels) lines.push(`| ${label} | ${columns.map(([id, , what]) => number(median(what(scenarios[id], label)))).join(" | ")} |`);
  return lines;
}

function layout(title, head, rows) {
  const full = rows.filter((row) => row.length === head.length);
  const widths = head.map((_, i) => Math.max(...[head, ...full].map((row) => row[i].length)));
  const line = (row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join("  ");
  const failed = rows.filter((row) => row.length !== head.length).map(([label, why]) => `${label}: left out, ${why}`);
  return ["", title, line(head), widths.map((width) => "-".repeat(width)).join("  "), ...full.map(line), ...failed].join("\n");
}
