// Policies: what users write, and how it gets across. Names and types are checked here; every bound is in the core, which names it.

import { InvalidCircuitError } from "./errors.js";
import { block, core, link } from "./runtime.js";

/**
 * A share of calls, greater than 0 and at most 1. A number is read as the decimal that was written, exactly, with at most 9 decimals:
 * 0.33 is 33/100. Write a third as `[1, 3]`.
 */
export type Share = number | readonly [numerator: number, denominator: number];

/** How outcomes are remembered while closed. */
export type Window =
  /** One set of counters that starts afresh `ms` after it began, at the next call (phil). */
  | { kind: "fixed"; ms: number }
  /** `buckets` equal parts, aligned to the epoch: the current one and those before it. 1 to 100, must divide `ms`; default: the largest such up to 10. */
  | { kind: "time"; ms: number; buckets?: number }
  /** The last calls, 1 to 10,000; with `withinMs` only those no older than that. */
  | { kind: "calls"; last: number; withinMs?: number | null }
  /** Failures since the last success; with `withinMs` only those no older than that. */
  | { kind: "consecutive"; withinMs?: number | null };

/**
 * When a circuit opens, and for how long. Every option has a default, so `{}` is a policy. Lengths are whole milliseconds from 1 to
 * 2^53 − 1, counts are 1 to 10,000. What cannot work throws InvalidCircuitError when the breaker is made, never later.
 */
export interface CircuitPolicy {
  /** Default: the last 30 seconds, in 10 buckets. */
  window?: Window;
  /** Opens at this share of failed calls, once the window has `minimumCalls`. Default 0.5, unless `failures` is given: never both. */
  failureRate?: Share | null;
  /** Opens at this many failures in the window, without waiting for `minimumCalls`. Default with a consecutive window: 5. */
  failures?: number | null;
  /** Calls a window needs before a share is judged. Default 10, or `last` if that is smaller. */
  minimumCalls?: number;
  /** A call that took longer than this is slow; equal is not, and a call that was not measured never is. Default: none is. */
  slowMs?: number | null;
  /** Opens at this share of slow calls, once the window has `minimumCalls`. Default 1. Without `slowMs` it means nothing. */
  slowRate?: Share;
  /** `"failure"` (default): only a failure or a slow call can open (phil, utopia). `"any"`: a fast success that completes `minimumCalls` can (reqtide). */
  judgeOn?: "failure" | "any";
  /** How long it stays open before it may be probed. 0: it is due at once. Default 30,000. */
  openMs?: number;
  /** Multiplies the open time for each half-open period in a row that failed, 1 to 10. Default 1. */
  backoff?: number;
  /** Up to this share of the open time is added, so that participants do not come back in step. 0 to 1, default 0. */
  jitter?: number;
  /** The one cap on open times: backoff, jitter, Retry-After, restored and adopted ones. At least `openMs`; default: the larger of it and 300,000. */
  maxOpenMs?: number;
  /** Probes in flight while half-open, 1 to 1000; null: no limit. Default 1. */
  probeLimit?: number | null;
  /** Successful probes that close, 1 to 1000. Default 1. One that fails or is slow opens again. */
  probeSuccesses?: number;
  /**
   * How long a probe may hold its slot; then the slot is free again and its result changes nothing. Default: the larger of `openMs` and
   * 10,000. null: until it ends, a hazard: a probe that hangs, or whose page was closed, blocks the circuit for ever.
   */
  probeLeaseMs?: number | null;
  /** Everything is counted and told, nothing is refused. Default false. */
  shadow?: boolean;
}

const steady = { backoff: 2, maxOpenMs: 300_000, jitter: 0.1, failureRate: 0.5 };

/** Policies to begin with. `wrapFetch` takes `page` where there is a document, else `edge`; `service` is for many calls a second. */
export const presets: Readonly<Record<"page" | "edge" | "service", CircuitPolicy>> = {
  page: { ...steady, window: { kind: "time", ms: 60_000 }, minimumCalls: 5, openMs: 10_000 },
  edge: { ...steady, window: { kind: "time", ms: 30_000 }, minimumCalls: 10, openMs: 15_000 },
  service: { ...steady, window: { kind: "time", ms: 30_000 }, minimumCalls: 20, openMs: 30_000, probeLimit: 3, probeSuccesses: 3 },
};

/** A policy the core has parsed, and what the calls need to know of it. */
export interface Rules {
  readonly policy: number;
  /** As it was given, to be told. */
  readonly given: CircuitPolicy;
  /** A success needs the time: the window forgets by time, or the success can open the circuit. */
  readonly timed: boolean;
  /** Calls are measured. */
  readonly slow: boolean;
  readonly maxOpenMs: number;
  readonly leaseMs: number;
  /** Null: probes are not limited, or nothing is refused. */
  readonly probeLimit: number | null;
}

// The slots of the boundary's block. Shares and factors take two.
const WINDOW = { kind: 0, ms: 1, buckets: 2, last: 3, withinMs: 4 };
const POLICY = {
  failureRate: 5, failures: 7, minimumCalls: 8, slowMs: 9, slowRate: 10, judgeOn: 12, openMs: 13, backoff: 14, jitter: 16,
  maxOpenMs: 18, probeLimit: 19, probeSuccesses: 20, probeLeaseMs: 21, shadow: 22,
};
const KINDS = ["fixed", "time", "calls", "consecutive"];
const PARTS = [["ms"], ["ms", "buckets"], ["last", "withinMs"], ["withinMs"]];
const CHOICES: Record<string, readonly unknown[]> = { judgeOn: ["failure", "any"], shadow: [false, true] };
const FRACTIONS = ["failureRate", "slowRate", "backoff", "jitter"];
const NULLABLE = ["failureRate", "failures", "slowMs", "withinMs", "probeLimit", "probeLeaseMs"];

/** Refuses names nobody knows, and says which one was probably meant. */
export function known(options: object, names: readonly string[], within = ""): void {
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    const likely = names.map((other) => [distance(name, other), other] as const).sort(([a], [b]) => a - b)[0];
    const hint = likely && likely[0] <= 3 ? `did you mean ${likely[1]}?` : `there are ${names.join(", ")}`;
    throw new InvalidCircuitError(within + name, (options as Record<string, unknown>)[name], `is unknown: ${hint}`);
  }
}

/** A policy as the numbers of the boundary's slots: NaN is not given, Infinity is null. Names and types are checked, bounds are not. */
export function slotsOf(policy: CircuitPolicy): Float64Array {
  const { window = { kind: "time", ms: 30_000 }, ...rest } = object("policy", policy);
  const { kind, ...parts } = object("window", window as unknown as Record<string, unknown>);
  const index = choose("window.kind", kind, KINDS);
  known(parts, PARTS[index] as string[], "window.");
  known(rest, [...Object.keys(POLICY), "window"]);

  const slots = new Float64Array(24).fill(NaN);
  slots[0] = index;
  fill(slots, parts, WINDOW, "window.");
  fill(slots, rest, POLICY, "");
  return slots;
}

/** Checks a policy and hands it to the core; options are copied. */
export function parsePolicy(policy: CircuitPolicy): Rules {
  link();
  const slots = slotsOf(policy);
  block().set(slots);
  const handle = core.policy();
  if (handle < 0) throw refused(policy, -1 - handle, ...block());

  const openMs = policy.openMs ?? 30_000;
  const maxOpenMs = policy.maxOpenMs ?? Math.max(openMs, 300_000);
  return {
    policy: handle,
    given: { ...policy, ...(policy.window && { window: { ...policy.window } }) },
    timed: slots[0]! < 2 || slots[WINDOW.withinMs]! < Infinity || slots[POLICY.judgeOn] === 1,
    slow: policy.slowMs != null,
    maxOpenMs,
    leaseMs: policy.probeLeaseMs === null ? maxOpenMs : (policy.probeLeaseMs ?? Math.max(openMs, 10_000)),
    probeLimit: policy.shadow ? null : policy.probeLimit === undefined ? 1 : policy.probeLimit,
  };
}

function fill(slots: Float64Array, options: Record<string, unknown>, names: Record<string, number>, within: string): void {
  for (const [name, slot] of Object.entries(names)) {
    const value = options[name];
    if (value === undefined) continue;
    const choices = CHOICES[name];
    if (choices) slots[slot] = choose(name, value, choices);
    else if (value === null && NULLABLE.includes(name)) slots[slot] = Infinity;
    else if (FRACTIONS.includes(name)) slots.set(fraction(within + name, value), slot);
    else slots[slot] = number(value);
  }
}

/** What is no number becomes one that is out of every range, so that the core names the bounds. */
const number = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : -1);

function fraction(field: string, value: unknown): [number, number] {
  if (Array.isArray(value)) return value.length === 2 ? [number(value[0]), number(value[1])] : [-1, 1];
  const decimal = number(value);
  let [top, bottom] = [Math.round(decimal * 1e9), 1e9];
  if (top / bottom !== decimal && decimal > 0 && decimal < 10) {
    throw new InvalidCircuitError(field, value, "has more than 9 decimals: write a third as [1, 3]");
  }
  for (const prime of [2, 5]) while (top % prime === 0 && bottom % prime === 0) [top, bottom] = [top / prime, bottom / prime];
  return [top, bottom];
}

function choose(field: string, value: unknown, choices: readonly unknown[]): number {
  const index = choices.indexOf(value);
  if (index >= 0) return index;
  throw new InvalidCircuitError(field, value, `must be one of ${choices.join(", ")}`);
}

function object<T extends object>(field: string, value: T): T {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new InvalidCircuitError(field, value, "must be an object");
}

/** The error for a slot that the core refused. */
export function refused(policy: CircuitPolicy, slot: number, problem = 0, min = 0, max = 0): InvalidCircuitError {
  const within = slot < 5;
  const [name] = Object.entries(within ? WINDOW : POLICY).find(([, at]) => at === slot) ?? [""];
  const value = ((within ? policy.window : policy) as Record<string, unknown> | undefined)?.[name];
  const field = within ? `window.${name}` : name;
  if (problem === 0) {
    const must = FRACTIONS.includes(name) ? `must be from ${min} to ${max}` : `must be a whole number from ${min} to ${max}`;
    return new InvalidCircuitError(field, value, min === 0 && name.endsWith("Rate") ? `must be above 0 and at most ${max}` : must, min, max);
  }
  const problems = ["", "excludes failureRate: give one of them", `must divide window.ms (${max})`, "is missing: nothing would ever open this circuit"];
  return new InvalidCircuitError(field, value, problems[problem as number] as string);
}

/** Edits between two names (Levenshtein), without regard to case; names of very different length are not compared. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3) return 4;
  let row = [...b, ""].map((_, at) => at);
  [...a.toLowerCase()].forEach((letter, i) => {
    const above = row;
    row = [i + 1];
    [...b.toLowerCase()].forEach((other, j) => {
      row.push(Math.min(above[j + 1]! + 1, row[j]! + 1, above[j]! + (letter === other ? 0 : 1)));
    });
  });
  return row.at(-1)!;
}
