// What a circuit has counted against what would move it: failures against their limit, slow calls against theirs, or probes that have succeeded.

import type { Counts } from "../events.js";
import type { Share } from "../policy.js";
import type { PanelCircuit } from "./news.js";

export interface Gauge {
  /** What is counted. */
  readonly label: string;
  /** 0 to 1. */
  readonly value: number;
  /** Where it moves, 0 to 1. */
  readonly limit: number;
  readonly words: string;
  /** What is counted is too little to be judged. */
  readonly early: boolean;
}

/** Null: nothing that is counted would move it. */
export function gaugeOf(circuit: PanelCircuit): Gauge | null {
  const { state, held, why, policy, probeSuccesses } = circuit;
  if (held) return null;
  if (state === "half_open") {
    const wanted = policy.probeSuccesses ?? 1;
    return { label: "Successful probes", value: Math.min(1, probeSuccesses / wanted), limit: 1, words: `${probeSuccesses} of ${wanted} probes`, early: false };
  }
  if (state === "closed") return measure(circuit, circuit.counts, undefined);
  // What it opened at.
  return why && ["failure_rate", "failure_count", "slow_rate"].includes(why.reason) ? measure(circuit, why.counts, why.reason) : null;
}

function measure({ policy }: PanelCircuit, { calls, failures, slow }: Counts, reason: string | undefined): Gauge {
  const row = policy.window?.kind === "consecutive";
  const early = calls < (policy.minimumCalls ?? Math.min(10, policy.window?.kind === "calls" ? policy.window.last : 10));
  const of = (count: number): number => (calls === 0 ? 0 : count / calls);
  const slowLimit = policy.slowMs == null ? null : numberOf(policy.slowRate ?? 1);
  const count = policy.failures ?? (row && policy.failureRate == null ? 5 : null);
  const rate = count === null && policy.failureRate !== null ? numberOf(policy.failureRate ?? 0.5) : null;
  const failing = count === null ? of(failures) / (rate ?? Infinity) : failures / count;
  if (slowLimit !== null && (reason ? reason === "slow_rate" : of(slow) / slowLimit > failing)) {
    return { label: "Slow calls", value: of(slow), limit: slowLimit, words: `${slow} of ${calls} slow`, early };
  }
  const words = row ? `${failures} in a row` : `${failures} of ${calls} failed`;
  // A count has no natural end: its limit stands at four fifths.
  if (count !== null) return { label: "Failures", value: Math.min(1, (failures / count) * 0.8), limit: 0.8, words, early: false };
  return { label: "Failed calls", value: of(failures), limit: rate ?? 1, words, early };
}

const numberOf = (share: Share): number => (typeof share === "number" ? share : share[0] / share[1]);
