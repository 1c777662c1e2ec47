// Policies as data: from JSON, from the environment, checked by whoever speaks Standard Schema, and told to a person. Every bound and default
// is the core's.

import { clipped, InvalidCircuitError } from "./errors.js";
import { plural } from "./explain.js";
import { checkFetchOptions, type FetchOptions } from "./fetch.js";
import { decode, parsePolicy, type ParsedPolicy } from "./objects.js";
import { parseOptions } from "./options.js";
import { type CircuitPolicy, known } from "./policy.js";

/** The part of Standard Schema (version 1) that there is; see standardschema.dev. */
export interface StandardSchema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "tripcurve";
    readonly validate: (value: unknown) => { readonly value: T } | { readonly issues: readonly { readonly message: string; readonly path: readonly string[] }[] };
    readonly types?: { readonly input: T; readonly output: T };
  };
}

/** Any value: a policy, as it was given, or what is wrong with it. */
export const policySchema: StandardSchema<CircuitPolicy> = /* @__PURE__ */ schema((value) => {
  parsePolicy(value as CircuitPolicy);
});

/** Options of `wrapFetch`, with their policy if it is given as data. */
export const fetchOptionsSchema: StandardSchema<FetchOptions> = /* @__PURE__ */ schema((value) => {
  const options = value as FetchOptions;
  checkFetchOptions(options);
  parseOptions(options, undefined);
  if (typeof options.policy === "object") within("policy", () => parsePolicy(options.policy as CircuitPolicy));
});

/** The same refusal, of a part. */
function within(part: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof InvalidCircuitError)) throw error;
    throw new InvalidCircuitError(`${part}.${error.field}`, error.value, problemOf(error), error.min, error.max);
  }
}

/** What is said of the field. */
const problemOf = ({ field, message }: InvalidCircuitError): string => message.slice(clipped(field).length + 1).split(" (got ")[0]!;

/** A stored text, of whatever policy: that it can be read. */
export const snapshotSchema: StandardSchema<string> = /* @__PURE__ */ schema((value) => {
  if (typeof value !== "string") throw new InvalidCircuitError("", value, "must be a text");
  const { problem } = decode(parsePolicy({}), value, 0);
  if (problem === "too_long" || problem === "unknown_version" || problem === "malformed") throw new InvalidCircuitError("", value.slice(0, 40), `is no stored circuit: ${problem}`);
});

function schema<T>(check: (value: unknown) => void): StandardSchema<T> {
  const validate: StandardSchema<T>["~standard"]["validate"] = (value) => {
    try {
      check(value);
      return { value: value as T };
    } catch (error) {
      if (!(error instanceof InvalidCircuitError)) throw error;
      return { issues: [{ message: error.message.trim(), path: ["", "policy", "options"].includes(error.field) ? [] : error.field.split(".") }] };
    }
  };
  return { "~standard": { version: 1, vendor: "tripcurve", validate } };
}

const NAMES = [
  "window.kind", "window.ms", "window.buckets", "window.last", "window.withinMs", "failureRate", "failures", "minimumCalls", "slowMs", "slowRate", "judgeOn",
  "openMs", "backoff", "jitter", "maxOpenMs", "probeLimit", "probeSuccesses", "probeLeaseMs", "shadow",
];
const variable = (name: string): string => name.replace(/\.|(?=[A-Z])/g, "_").toUpperCase();

/**
 * The policy that variables say: `policyFromEnv("PAYMENTS", process.env)` reads `PAYMENTS_FAILURE_RATE`, `PAYMENTS_MINIMUM_CALLS`,
 * `PAYMENTS_WINDOW_KIND` and so on: the names of the options in capitals. Values are numbers, fractions (`1/3`), words, `true`, `false`,
 * and `null`; an empty one is none. Throws InvalidCircuitError, which names the variable; also for a variable with this prefix that is no
 * option, but then without its value: give policies a prefix of their own.
 */
export function policyFromEnv(prefix: string, env: Readonly<Record<string, string | undefined>>): CircuitPolicy {
  if (typeof prefix !== "string" || prefix === "") throw new InvalidCircuitError("prefix", prefix, "must be a text");
  const names = new Map(NAMES.map((name) => [`${prefix}_${variable(name)}`, name]));
  const given = Object.entries(env).filter(([name, value]) => name.startsWith(`${prefix}_`) && value !== undefined && value.trim() !== "");
  known(Object.fromEntries(given.map(([name]) => [name, "…"])), [...names.keys()]); // what it holds may be a secret
  const policy: Record<string, unknown> = {};
  const window: Record<string, unknown> = {};
  for (const [name, text] of given) {
    const option = names.get(name)!;
    if (option.startsWith("window.")) window[option.slice(7)] = valueOf(text!.trim());
    else policy[option] = valueOf(text!.trim());
  }
  if (Object.keys(window).length > 0) policy.window = window;
  try {
    parsePolicy(policy as CircuitPolicy);
  } catch (error) {
    if (!(error instanceof InvalidCircuitError)) throw error;
    const name = `${prefix}_${variable(error.field)}`;
    throw new InvalidCircuitError(name, env[name], problemOf(error), error.min, error.max);
  }
  return policy as CircuitPolicy;
}

function valueOf(text: string): unknown {
  const fraction = /^(\d+)\s*\/\s*(\d+)$/.exec(text);
  if (fraction) return [Number(fraction[1]), Number(fraction[2])];
  if (text === "null") return null;
  if (text === "true" || text === "false") return text === "true";
  return /^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(text) ? Number(text) : text;
}

/** A policy told: as a paragraph, and as the sentences it is made of. */
export interface Explanation {
  /** All of it. */
  readonly text: string;
  /** What is remembered of calls. */
  readonly remembers: string;
  /** What opens it: any of these. */
  readonly opens: readonly string[];
  /** How long it stays open. */
  readonly stays: string;
  /** When, and how many, probes are let in. */
  readonly probes: string;
  /** What closes it, and what opens it again. */
  readonly closes: string;
  /** With every default filled in. */
  readonly policy: ParsedPolicy;
}

/** What a policy does, in words. Throws InvalidCircuitError. */
export function explain(given: CircuitPolicy): Explanation {
  const policy = parsePolicy(given);
  const { failureRate, failures, slowMs, slowRate, minimumCalls, judgeOn, openMs, maxOpenMs, backoff, jitter, probeLimit, probeSuccesses, probeLeaseMs } = policy;
  const window = memory(policy);
  const among = `once there are ${plural(minimumCalls, "call")}${judgeOn === "any" ? ", even if the last of them succeeded" : ""}`;
  const opens = [
    failureRate && `${share(failureRate)} of the calls failed, ${among}`,
    failures !== null && (policy.window.kind === "consecutive" ? `${plural(failures, "call")} in a row failed` : `${plural(failures, "call")} failed`),
    slowMs !== null && `${share(slowRate)} of the calls took longer than ${time(slowMs)}, ${among}`,
  ].filter((line): line is string => Boolean(line));
  const more = [
    backoff[0] > backoff[1] && `${number(backoff[0] / backoff[1])} times longer after each half-open period that failed`,
    jitter[0] > 0 && `with up to ${share(jitter)} added at random`,
  ].filter(Boolean);
  const never = `never for longer than ${time(maxOpenMs)}`;
  const stays = openMs === 0 ? `It then refuses calls only as long as an answer asks for, ${never}.` : `It then refuses every call for ${time(openMs)}${more.length > 0 ? `, ${more.join(", ")}` : ""}; ${never}, whatever is asked for.`;
  const lease = probeLeaseMs === null ? "until it ends" : `for at most ${time(probeLeaseMs)}`;
  const probes = `After that calls are let in as probes, ${probeLimit === null ? "as many as come" : `${probeLimit} at a time`}, each holding its place ${lease}.`;
  const slow = slowMs === null ? "" : " or is slow";
  const closes = `${probeSuccesses === 1 ? "One that succeeds closes it" : `${probeSuccesses} that succeed close it`}; one that fails${slow} opens it again.`;
  const sentence = `It opens when ${opens.join(", or when ")}.`;
  const nothing = policy.shadow ? " It is in shadow mode: all of this is counted and told, and no call is refused." : "";
  return { text: `${window} ${sentence} ${stays} ${probes} ${closes}${nothing}`, remembers: window, opens, stays, probes, closes, policy };
}

function memory({ window }: ParsedPolicy): string {
  const within = "withinMs" in window && window.withinMs != null ? `, none older than ${time(window.withinMs)}` : "";
  if (window.kind === "time") return `The circuit remembers the calls of the last ${time(window.ms)}.`;
  if (window.kind === "fixed") return `The circuit counts calls, and begins again every ${time(window.ms)}.`;
  if (window.kind === "calls") return `The circuit remembers the last ${plural(window.last, "call")}${within}.`;
  return `The circuit counts the failures since the last success${within}.`;
}

const number = (value: number): string => String(Math.round(value * 1e4) / 1e4);
/** A percentage, or a fraction where four decimals are not all of it. */
const share = ([top, bottom]: readonly [number, number]): string => ((top * 1e6) % bottom === 0 ? `${number((top / bottom) * 100)} %` : `${top} in ${bottom}`);

function time(ms: number): string {
  for (const [unit, length] of [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1_000]] as const) {
    if (ms >= length && ms % length === 0) return plural(ms / length, unit);
  }
  return `${ms} ms`;
}
