// What holds now and why, in one sentence: for a log, an error, a screen. The words for a policy are in data.ts.

import { instant } from "./errors.js";
import type { Why } from "./events.js";
import type { Inspection } from "./inspection.js";
import type { CircuitPolicy, Share } from "./policy.js";

/** `now` undefined: for a text that is kept, so what is still to come is told as an instant. */
export function explanation(found: Inspection, policy: CircuitPolicy, now?: number): string {
  const { state, held, since, until, why, counts, probesInFlight, probeSuccesses } = found;
  if (held) return `held ${held} since ${clockTime(since, now)}: by hand, until it is released`;
  const shadow = policy.shadow ? " (shadow mode: nothing is refused)" : "";
  if (state === "closed") return `closed: ${watched(counts, policy)}${shadow}`;
  if (state === "open") return `open since ${clockTime(since, now)}: ${cause(why, policy)}; next probe ${ahead(until!, now)}${shadow}`;
  const taken = policy.probeLimit === null ? probesInFlight : `${probesInFlight} of ${policy.probeLimit ?? 1}`;
  const probing = probesInFlight > 0 ? `${taken} probes under way` : "the next call is a probe";
  const opened = why && state === "half_open" ? `; it opened at ${clockTime(why.at, now)}: ${cause(why, policy)}` : "";
  return `half-open since ${clockTime(since, now)}: ${probing}, ${probeSuccesses} of ${policy.probeSuccesses ?? 1} successes${opened}${shadow}`;
}

/** What decided it. */
function cause(why: Why | null, policy: CircuitPolicy): string {
  if (!why) return "decided before this page or process began";
  const { reason, counts } = why;
  switch (reason) {
    case "failure_rate":
      return `${failed(counts, policy)}, limit ${percent(policy.failureRate ?? 0.5)}`;
    case "failure_count":
      return isRow(policy) ? `${counts.failures} failures in a row` : `${failed(counts, policy)}, limit ${limit(policy)}`;
    case "slow_rate":
      return `${counts.slow} of ${counts.calls} calls${within(policy)} took longer than ${length(policy.slowMs ?? 0)}, limit ${percent(policy.slowRate ?? 1)}`;
    case "probe_failed":
      return "a probe failed";
    case "probe_slow":
      return `a probe took longer than ${length(policy.slowMs ?? 0)}`;
    default:
      return "by hand";
  }
}

/** What a closed circuit has counted, and what would open it. */
function watched(counts: Inspection["counts"], policy: CircuitPolicy): string {
  const { calls, failures, slow } = counts;
  if (calls === 0) return `no ${isRow(policy) ? "failure" : "call"}${isRow(policy) ? " since the last success" : within(policy)}`;
  if (isRow(policy)) return `${plural(failures, "failure")} in a row, limit ${limit(policy)}`;
  const minimum = policy.minimumCalls ?? Math.min(10, policy.window?.kind === "calls" ? policy.window.last : 10);
  const few = policy.failures == null && calls < minimum ? `, judged from ${minimum} calls on` : "";
  const slowly = policy.slowMs == null ? "" : `, ${slow} took longer than ${length(policy.slowMs)} (limit ${percent(policy.slowRate ?? 1)})`;
  const most = policy.failures == null && policy.failureRate === null ? "" : `, limit ${limit(policy)}`;
  return `${failed(counts, policy)}${most}${slowly}${few}`;
}

const isRow = (policy: CircuitPolicy): boolean => policy.window?.kind === "consecutive";
const failed = ({ calls, failures }: Inspection["counts"], policy: CircuitPolicy): string => `${failures} of ${plural(calls, "call")}${within(policy)} failed`;

/** What of failures opens it. */
function limit(policy: CircuitPolicy): string {
  if (policy.failures != null) return String(policy.failures);
  return isRow(policy) && policy.failureRate == null ? "5" : percent(policy.failureRate ?? 0.5);
}

function within({ window = { kind: "time", ms: 30_000 } }: CircuitPolicy): string {
  if (window.kind === "calls") return "";
  return window.kind === "consecutive" ? "" : ` in ${window.kind === "time" ? "the last" : "this period of"} ${length(window.ms)}`;
}

function ahead(at: number, now: number | undefined): string {
  return now === undefined ? `at ${clockTime(at <= 864e13 ? Math.ceil(at / 1_000) * 1_000 : at, now)}` : at <= now ? "at the next call" : `in ${length(at - now)}`;
}

/** The day is told where it is another one. */
function clockTime(at: number, now: number | undefined): string {
  const text = instant(at);
  return now !== undefined && text.slice(0, 10) === instant(now).slice(0, 10) ? `${text.slice(11, 19)} UTC` : text;
}

/** Rounded up, so that nobody comes too early. */
function length(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 120_000) return `${ms < 10_000 ? Math.ceil(ms / 100) / 10 : Math.ceil(ms / 1_000)} s`;
  return ms < 7_200_000 ? `${Math.ceil(ms / 60_000)} min` : `${Math.ceil(ms / 3_600_000)} h`;
}

function percent(share: Share): string {
  const value = typeof share === "number" ? share : share[0] / share[1];
  return `${Math.round(value * 1e4) / 100} %`;
}

export const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;
