// The pure core for JavaScript: every instant, seed and probe id is an argument, nothing is kept, nothing is changed. For reducers,
// tests and tools; guarding calls is what the main entry is for. The module is linked by the first call.

import * as glue from "../pkg/core/core_bg.js";
import type { Inspection } from "./inspection.js";
import type { CallOutcome } from "./classify.js";
import { InvalidCircuitError } from "./errors.js";
import type { CircuitState, Counts, Held, RefusalReason, Transition, Why } from "./events.js";
import { type CircuitPolicy, known, refused, slotsOf, type Window } from "./policy.js";
import type { Source } from "./runtime.js";

/** A policy that was checked, every default filled in and shares exact. Frozen; it is a `CircuitPolicy` too. */
export interface ParsedPolicy extends Readonly<Required<Omit<CircuitPolicy, "window" | "failureRate" | "slowRate" | "backoff" | "jitter">>> {
  readonly window: Readonly<Window>;
  readonly failureRate: readonly [number, number] | null;
  readonly slowRate: readonly [number, number];
  readonly backoff: readonly [number, number];
  readonly jitter: readonly [number, number];
}

/** Who made a decision, and when; it orders the decisions of those who share a circuit. */
export interface Stamp {
  readonly state: CircuitState;
  readonly since: number;
  /** The seed of the participant. */
  readonly by: number;
}

/**
 * Everything a circuit remembers, as plain frozen data: it survives `JSON.stringify`, `structuredClone` and a reducer. What comes back
 * in is read as untrusted as a stored text: what cannot be a circuit of this policy throws a TypeError.
 */
export interface CircuitSnapshot {
  /** The version of this shape. */
  readonly v: 1;
  readonly state: CircuitState;
  readonly held: Held | null;
  readonly since: number;
  /** When probing may begin. Kept while half-open, since it orders verdicts. */
  readonly until: number | null;
  readonly generation: number;
  /** Half-open periods in a row that failed: how often `backoff` applies. */
  readonly level: number;
  readonly seed: number;
  /** Read from `window`, for you to look at; changing it changes nothing. */
  readonly counts: Counts;
  readonly probes: readonly { readonly id: number; readonly leaseUntil: number | null; readonly fate: "in_flight" | "freed" | "succeeded" }[];
  readonly probeSuccesses: number;
  readonly rejected: number;
  /** The window's own memory, opaque. */
  readonly window: string;
  /** The last decision; null until there was one. */
  readonly verdict: Stamp | null;
  /** What made it. */
  readonly why: Omit<Why, "at"> | null;
  /** The last hold or release; null until there was one. */
  readonly hold: Stamp | null;
  /** The latest `now` of a step that changed something: an earlier one counts as this. */
  readonly lastSeenAt: number;
}

/** One admission; give it to `settle` with the outcome. */
export interface CorePermit {
  readonly kind: "allowed" | "probe";
  readonly generation: number;
  readonly admittedAt: number;
  readonly id: number;
}

export type CoreAdmission =
  | { readonly kind: "allowed" | "probe"; readonly permit: CorePermit }
  | { readonly kind: "rejected"; readonly reason: RefusalReason; readonly retryAt: number | null };

/** What a step gives. A step that changes nothing gives the same snapshot object back. */
export interface Step {
  readonly snapshot: CircuitSnapshot;
  readonly transitions: readonly Omit<Transition, "key">[];
}

let source: Source | undefined;
let linked = false;

/** Entries name where the module comes from; see runtime.ts. */
export function using<T>(from: Source, values: T): T {
  source ??= from;
  return values;
}

function core(): typeof glue {
  if (!linked) {
    const given = source!.module!();
    const instance = new WebAssembly.Instance("byteLength" in given ? new WebAssembly.Module(given) : given, {
      "./core_bg.js": glue as unknown as WebAssembly.ModuleImports,
    });
    glue.__wbg_set_wasm(instance.exports);
    (instance.exports as { __wbindgen_start?: () => void }).__wbindgen_start?.();
    linked = true;
  }
  return glue;
}

/** A policy's numbers, kept as long as its object: parsing names each time would cost more than the step. */
const slots = new WeakMap<object, Float64Array>();

function numbers(policy: ParsedPolicy): Float64Array {
  let known = slots.get(policy);
  if (known === undefined) slots.set(policy, (known = slotsOf(policy as unknown as CircuitPolicy)));
  return known;
}

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}

/** The core's own refusals: `[slot, problem, min, max]` names a policy's option, all else is an error already. */
function asking<T>(policy: object, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    if (!Array.isArray(error)) throw error;
    const [slot, problem, min, max] = error as [number, number, number, number];
    throw refused(policy as CircuitPolicy, slot, problem, min, max);
  }
}

function stepped<T extends Step>(policy: ParsedPolicy, before: CircuitSnapshot, ask: () => unknown): T {
  const step = asking(policy, ask) as T & { snapshot: CircuitSnapshot | null };
  // Only what was made here is frozen: `before` is the caller's.
  Object.values(step).forEach(frozen);
  return Object.freeze({ ...step, snapshot: step.snapshot ?? before });
}

const OUTCOME = ["verdict", "durationMs", "retryAt"];

function checked(outcome: CallOutcome): CallOutcome {
  known(outcome, OUTCOME, "outcome.");
  return outcome;
}

/** Checks a policy and fills in its defaults. Throws InvalidCircuitError: the option, its bounds, and for a misspelt one the likely name. */
export function parsePolicy(policy: CircuitPolicy): ParsedPolicy {
  return frozen(asking(policy, () => core().parse_policy(slotsOf(policy))) as ParsedPolicy);
}

/** The key, if it is one: segments of a-z and 0-9 joined by single `.`, `_` or `-`, at most 87 bytes. Throws InvalidCircuitError. */
export function parseKey(key: string): string {
  const problem = typeof key === "string" ? core().key_problem(key) : "a key is a string";
  if (problem != null) throw new InvalidCircuitError("key", key, `is no key (${problem}): it is`);
  return key;
}

/** A fresh closed circuit. `seed`: 32 random bits that spread the jitter and name this participant; see `entropy`. */
export function closed(policy: ParsedPolicy, seed: number, now: number): CircuitSnapshot {
  return frozen(asking(policy, () => core().closed(numbers(policy), seed, now)) as CircuitSnapshot);
}

/** Applies the passage of time: an open circuit that is due becomes half-open, what is too old is forgotten. */
export function at(policy: ParsedPolicy, snapshot: CircuitSnapshot, now: number): Step {
  return stepped(policy, snapshot, () => core().at(numbers(policy), snapshot, now));
}

/** May a call go ahead? `probeId` names it should it become a probe: any number not in use by another; see `entropy`. */
export function admit(policy: ParsedPolicy, snapshot: CircuitSnapshot, probeId: number, now: number): Step & { readonly admission: CoreAdmission } {
  return stepped(policy, snapshot, () => core().admit(numbers(policy), snapshot, probeId, now));
}

/** How an admitted call went. A permit of an earlier generation, or of a probe whose lease is over, changes nothing. */
export function settle(
  policy: ParsedPolicy,
  snapshot: CircuitSnapshot,
  permit: CorePermit,
  outcome: CallOutcome,
  now: number,
): Step & { readonly counted: boolean } {
  return stepped(policy, snapshot, () => core().settle(numbers(policy), snapshot, permit, checked(outcome), now));
}

/** An outcome without a permit, judged in whatever state the circuit is (phil). Prefer `settle`: a late result can fool this. */
export function record(policy: ParsedPolicy, snapshot: CircuitSnapshot, outcome: CallOutcome, now: number): Step {
  return stepped(policy, snapshot, () => core().record(numbers(policy), snapshot, checked(outcome), now));
}

/** An ordinary transition by hand; `until` null: the policy's open time. */
export function force(policy: ParsedPolicy, snapshot: CircuitSnapshot, state: CircuitState, until: number | null, now: number): Step {
  return stepped(policy, snapshot, () => core().force(numbers(policy), snapshot, state, until, now));
}

/** An operator's override that time does not end. */
export function hold(policy: ParsedPolicy, snapshot: CircuitSnapshot, as: Held, now: number): Step {
  return stepped(policy, snapshot, () => core().hold(numbers(policy), snapshot, as, now));
}

/** Ends a hold, closed and empty; when not held, nothing. */
export function release(policy: ParsedPolicy, snapshot: CircuitSnapshot, now: number): Step {
  return stepped(policy, snapshot, () => core().release(numbers(policy), snapshot, now));
}

/** Closed and empty. */
export function reset(policy: ParsedPolicy, snapshot: CircuitSnapshot, now: number): Step {
  return stepped(policy, snapshot, () => core().reset(numbers(policy), snapshot, now));
}

/** What holds at `now`; an open circuit that is due reads `half_open`. */
export function inspect(policy: ParsedPolicy, snapshot: CircuitSnapshot, now: number): Omit<Inspection, "key"> {
  return frozen(asking(policy, () => core().inspect(numbers(policy), snapshot, now)) as Omit<Inspection, "key">);
}

/** Takes over what another copy of the circuit decided later. Merging is commutative, associative and idempotent. */
export function adopt(policy: ParsedPolicy, mine: CircuitSnapshot, theirs: CircuitSnapshot, now: number): Step {
  return stepped(policy, mine, () => core().adopt(numbers(policy), mine, theirs, now));
}

/** The stored text: one line of printable ASCII, at most 32 kB, the same that breakers store. */
export function encode(snapshot: CircuitSnapshot): string {
  return core().encode(snapshot);
}

/**
 * Reads a stored text and never throws for what is in it: `problem` is null, or `too_long`, `unknown_version`, `malformed` (and the
 * snapshot is a fresh closed one), `clamped` (impossible counts), `other_window` (the tally was dropped).
 */
export function decode(policy: ParsedPolicy, text: string, now: number): { readonly snapshot: CircuitSnapshot; readonly problem: string | null } {
  return frozen(asking(policy, () => core().decode(numbers(policy), String(text).slice(0, 40_000), now)) as ReturnType<typeof decode>);
}

/** 30 random bits from the host, for seeds and probe ids. */
export function entropy(): number {
  return core().entropy();
}
