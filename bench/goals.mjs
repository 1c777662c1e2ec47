// The goals, each with what was reached in this run. Only ratios and bytes: no machine is asked for nanoseconds.

import { median, over, times, timesBest, whole } from "./stats.mjs";

// scenario, ours, theirs, what is compared, "ours is at most 1 / this of theirs"
const RATIOS = {
  node: [
    ["closed", "tripcurve time", "opossum", over, 8],
    ["closed", "tripcurve time", "cockatiel sampling", over, 2.5],
    ["closed", "tripcurve calls", "opossum", over, 15],
    ["closed", "tripcurve calls", "cockatiel count", over, 4],
    ["closed", "tripcurve time", "js floor", over, 1 / 1.3],
    ["closed", "tripcurve calls", "js floor", over, 1 / 1.3],
    ["failures", "tripcurve time", "opossum", whole, 50],
    ["failures", "tripcurve calls", "opossum", whole, 50],
    ["failures", "tripcurve time", "cockatiel sampling", whole, 1.6],
    ["failures", "tripcurve calls", "cockatiel count", whole, 1.6],
    ["refused", "tripcurve time", "opossum", whole, 10],
    ["refused", "tripcurve time", "cockatiel sampling", whole, 10],
    ["fallback", "tripcurve time", "opossum", whole, 30],
    ["fallback", "tripcurve time", "cockatiel sampling", whole, 30],
  ],
  chromium: [
    ["closed", "tripcurve time", "opossum", over, 15],
    ["closed", "tripcurve calls", "cockatiel count", over, 1.8],
    ["refused", "tripcurve time", "opossum", whole, 10],
    ["refused", "tripcurve time", "cockatiel sampling", whole, 10],
    ["fallback", "tripcurve time", "opossum", whole, 30],
    ["fallback", "tripcurve time", "cockatiel sampling", whole, 30],
  ],
};

const WORDS = { closed: "call succeeds, overhead", failures: "10 % fail, whole call", refused: "refused", fallback: "refused, with fallback" };

export function goals(hosts) {
  const list = [];
  for (const [host, ratios] of Object.entries(RATIOS)) {
    if (!hosts[host]) continue;
    for (const ratio of ratios) list.push(ratioGoal(hosts[host], ratio));
    for (const id of ["calls", "seconds"]) list.push(flatGoal(hosts[host], id));
  }
  if (hosts.node) list.push(...byteGoals(hosts.node.scenarios));
  if (hosts.redis && !hosts.redis.error) list.push(...redisGoals(hosts.redis.scenarios));
  if (hosts.native && !hosts.native.error) list.push(...nativeGoals(hosts.native));
  return list.filter(Boolean);
}

function ratioGoal({ name, scenarios }, [id, ours, theirs, what, factor]) {
  const result = scenarios[id];
  if (!result?.[ours]?.rounds || !result[theirs]?.rounds) return null;
  const reached = times(result, theirs, ours, what);
  return {
    title: `${host(name)} ${WORDS[id]}: ${ours} : ${theirs}`,
    target: `≤ ${share(factor)}`,
    reached: share(reached, factor),
    best: share(timesBest(result, theirs, ours, what), factor),
    met: reached >= factor,
  };
}

/** No size of window may be more than 25 % off the mean of all. */
function flatGoal({ name, scenarios }, id) {
  const result = scenarios[id];
  const labels = Object.keys(result ?? {}).filter((label) => !result[label].bare && result[label].rounds);
  if (labels.length < 2) return null;
  const off = (costs) => {
    const mean = costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
    return Math.max(...costs.map((cost) => Math.abs(cost / mean - 1))) * 100;
  };
  const bare = Math.min(...whole(result, Object.keys(result).find((label) => result[label].bare)));
  const reached = off(labels.map((label) => median(over(result, label))));
  return {
    title: `${host(name)} overhead flat, 10 to 10,000 ${id}`,
    target: "± 25 %",
    reached: `± ${reached.toFixed(0)} %`,
    best: `± ${off(labels.map((label) => Math.min(...whole(result, label)) - bare)).toFixed(0)} %`,
    met: reached <= 25,
  };
}

function byteGoals({ closed, idle }) {
  const bytes = (title, reached, limit) => (Number.isFinite(reached) ? { title, target: `≤ ${limit} B`, reached: `${Math.round(reached)} B`, met: reached <= limit } : null);
  const heap = (label) => closed?.[label]?.heap - closed?.["bare await"]?.heap;
  return [
    bytes("an idle circuit in a registry, 100 calls", idle?.["tripcurve calls"]?.bytes, 256),
    bytes("an idle circuit in a registry, 10 buckets of time", idle?.["tripcurve time"]?.bytes, 450),
    bytes("heap for one call, time", heap("tripcurve time"), 160),
    bytes("heap for one call, calls", heap("tripcurve calls"), 160),
  ];
}

/** Admission and outcome alone: without the call between them. */
function nativeGoals({ scenarios }) {
  return ["tripcurve calls", "tripcurve time"].map((ours) => {
    const factor = times(scenarios.closed, "recloser", ours, over);
    return { title: `native admit and settle: ${ours} : recloser`, target: "≤ 1/2", reached: share(factor, 2), best: share(timesBest(scenarios.closed, "recloser", ours, over), 2), met: factor >= 2 };
  });
}

function redisGoals({ closed }) {
  const [dearer, cheaper] = [times(closed, "shared tally", "unshared"), times(closed, "two round trips a call", "shared tally")];
  return [
    { title: "Redis, closed calls: shared tally : unshared", target: "≤ 1.30 ×", reached: `${dearer.toFixed(2)} ×`, best: `${timesBest(closed, "shared tally", "unshared").toFixed(2)} ×`, met: dearer <= 1.3 },
    { title: "Redis, closed calls: shared tally : two round trips a call", target: "≤ 1/50", reached: share(cheaper, 50), best: share(timesBest(closed, "two round trips a call", "shared tally"), 50), met: cheaper >= 50 },
  ];
}

const host = (name) => name.split(" ")[0];
/** "1/9.6" where the goal is to be cheaper, "1.08 ×" where it is not to be much dearer. */
function share(factor, goal = factor) {
  if (goal < 1) return `${(1 / factor).toFixed(2)} ×`;
  return `1/${factor < 10 ? Number(factor.toFixed(1)) : Math.round(factor)}`;
}
