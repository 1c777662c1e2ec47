// What a panel is told: the circuits there are, as they are, and their transitions. Plain data, the same in the page, over a channel and as JSON.
// Who sends it may be anybody, so what comes from outside is read field by field.

import { type CircuitState, type Counts, REASONS, type Transition, type Why } from "../events.js";
import type { Inspection } from "../inspection.js";
import type { CircuitPolicy, Share, Window } from "../policy.js";

/** A circuit. `id`: its key; with the number of its source before it (`1/http.payments`) where a feed has several. */
export interface PanelCircuit extends Inspection {
  readonly id: string;
  readonly policy: CircuitPolicy;
}

/** A transition, numbered in the order in which the feed heard of them. */
export interface PanelMove extends Transition {
  readonly id: string;
  readonly number: number;
}

export interface PanelNews {
  readonly tripcurve: 1;
  /** Give it with the next question. */
  readonly cursor: string;
  /** The cursor it follows; null: it is everything, and what is missing is gone. */
  readonly after: string | null;
  /** Milliseconds since the epoch, where it was made. */
  readonly now: number;
  /** Are commands taken? */
  readonly controls: boolean;
  readonly circuits: readonly PanelCircuit[];
  readonly moves: readonly PanelMove[];
}

/** What an operator wants of a circuit. */
export type PanelCommand =
  | { readonly id: string; readonly verb: "force"; readonly to: CircuitState }
  | { readonly id: string; readonly verb: "hold"; readonly to: "open" | "closed" }
  | { readonly id: string; readonly verb: "release" | "reset" };

const STATES: readonly unknown[] = ["closed", "open", "half_open"];
const KINDS: readonly unknown[] = ["fixed", "time", "calls", "consecutive"];

/** What came from elsewhere, if it is what a feed sends; each circuit and transition that is not is left out. */
export function parseNews(value: unknown): PanelNews | null {
  const news = fields(value);
  if (news.tripcurve !== 1 || !isText(news.cursor) || !(news.after === null || isText(news.after)) || !isInstant(news.now)) return null;
  if (!Array.isArray(news.circuits) || !Array.isArray(news.moves)) return null;
  return {
    ...{ tripcurve: 1, cursor: news.cursor, after: news.after, now: news.now, controls: news.controls === true },
    circuits: news.circuits.flatMap((circuit) => parseCircuit(fields(circuit)) ?? []),
    moves: news.moves.flatMap((move) => parseMove(fields(move)) ?? []),
  };
}

export function parseCommand(value: unknown): PanelCommand | null {
  const { id, verb, to } = fields(value);
  if (!isText(id)) return null;
  if (verb === "release" || verb === "reset") return { id, verb };
  if (verb === "force" && STATES.includes(to)) return { id, verb, to: to as CircuitState };
  return verb === "hold" && (to === "open" || to === "closed") ? { id, verb, to } : null;
}

type Fields = Readonly<Record<string, unknown>>;

const fields = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
const isText = (value: unknown): value is string => typeof value === "string" && value.length <= 200;
const isCount = (value: unknown): value is number => typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
const isInstant = (value: unknown): value is number => isCount(value) && value <= 864e13;
const isState = (value: unknown): value is CircuitState => STATES.includes(value);

function parseCircuit(found: Fields): PanelCircuit | null {
  const { id, key, state, held, admits, since, until, probesInFlight, probeSuccesses, rejected, generation, nextChangeAt } = found;
  const counts = parseCounts(found.counts);
  const policy = parsePolicy(fields(found.policy));
  const why = found.why === null ? null : parseWhy(fields(found.why));
  if (!isText(id) || !isText(key) || !isState(state) || !counts || !policy || why === undefined) return null;
  if (!(held === null || held === "open" || held === "closed") || !isInstant(since)) return null;
  if (!(until === null || isInstant(until)) || !(nextChangeAt === null || isInstant(nextChangeAt)) || (state === "open" && !held && until === null)) return null;
  if (!isCount(probesInFlight) || !isCount(probeSuccesses) || !isCount(rejected) || !isCount(generation)) return null;
  return { id, key, state, held, admits: admits === true, since, until, counts, probesInFlight, probeSuccesses, rejected, generation, nextChangeAt, why, policy };
}

function parseMove(move: Fields): PanelMove | null {
  const { id, key, from, to, at, generation, until, number } = move;
  const counts = parseCounts(move.counts);
  const reason = REASONS.find((known) => known === move.reason);
  if (!isText(id) || !isText(key) || !isState(from) || !isState(to) || !reason || !counts || !isInstant(at)) return null;
  if (!isCount(generation) || !isCount(number) || !(until === null || isInstant(until))) return null;
  return { id, key, from, to, reason, at, generation, counts, until, number };
}

function parseCounts(value: unknown): Counts | null {
  const { calls, failures, slow } = fields(value);
  return isCount(calls) && isCount(failures) && isCount(slow) ? { calls, failures, slow } : null;
}

function parseWhy({ reason, at, counts: given }: Fields): Why | undefined {
  const known = REASONS.find((known) => known === reason);
  const counts = parseCounts(given);
  return known && counts && isInstant(at) ? { reason: known, at, counts } : undefined;
}

/** The parts of a policy that are shown. */
function parsePolicy(given: Fields): CircuitPolicy | null {
  const policy: Record<string, unknown> = {};
  for (const name of ["failures", "minimumCalls", "slowMs", "probeLimit", "probeSuccesses"]) {
    const value = given[name];
    if (value === undefined) continue;
    if (value !== null && !isCount(value)) return null;
    policy[name] = value;
  }
  for (const name of ["failureRate", "slowRate"]) {
    const value = given[name];
    if (value === undefined) continue;
    if (value !== null && !isShare(value)) return null;
    policy[name] = value;
  }
  if (given.window !== undefined) {
    const { kind, ms, last } = fields(given.window);
    if (!KINDS.includes(kind) || ((kind === "time" || kind === "fixed") && !isCount(ms)) || (kind === "calls" && !isCount(last))) return null;
    policy.window = { kind, ms, last } as unknown as Window;
  }
  if (given.shadow === true) policy.shadow = true;
  return policy;
}

const isShare = (value: unknown): value is Share => isCount(value) || (Array.isArray(value) && value.length === 2 && value.every(isCount) && value[1] !== 0);
