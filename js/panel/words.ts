// What a panel says. What a state means is said by `explanation`, as everywhere.

import type { CircuitState, TransitionReason } from "../events.js";
import { plural } from "../explain.js";
import type { PanelCircuit, PanelMove } from "./news.js";

/** The words of the panel, for screens of your own. */
export const STATE_WORDS: Readonly<Record<CircuitState, string>> = { closed: "Closed", open: "Open", half_open: "Half-open" };

/** Why a circuit moved, in words. */
export const REASON_WORDS: Readonly<Record<TransitionReason, string>> = {
  failure_rate: "failure rate reached",
  failure_count: "failure count reached",
  slow_rate: "slow rate reached",
  open_elapsed: "open time over",
  probe_failed: "a probe failed",
  probe_slow: "a probe was slow",
  probes_succeeded: "probes succeeded",
  forced: "forced by hand",
  held: "held by hand",
  released: "released by hand",
  reset: "reset by hand",
  adopted: "taken from the store",
};

export const stateWords = ({ state, held }: PanelCircuit): string => `${STATE_WORDS[state]}${held ? ", held" : ""}`;

/** What was counted when it moved, where counts decided. */
export function countWords({ reason, counts: { calls, failures, slow } }: PanelMove): string {
  if (reason === "slow_rate") return `${slow} of ${calls} slow`;
  return reason === "failure_rate" || reason === "failure_count" ? `${failures} of ${calls}` : "";
}

/** The time of day, as in `explain()`. */
export const clockTime = (at: number): string => new Date(at).toISOString().slice(11, 19);

/** Rounded up, so that nobody comes too early: 8 s, 2 min 05 s, 3 h 10 min. */
export function lengthWords(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const two = (value: number): string => String(value).padStart(2, "0");
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min${seconds % 60 ? ` ${two(seconds % 60)} s` : ""}`;
  return `${Math.floor(seconds / 3_600)} h ${two(Math.floor((seconds % 3_600) / 60))} min`;
}

/** `3 circuits: 1 open, 1 half-open, 1 held closed` */
export function summary(circuits: readonly PanelCircuit[]): string {
  const count = (test: (circuit: PanelCircuit) => boolean): number => circuits.filter(test).length;
  const parts = [
    [count(({ state }) => state === "open"), "open"],
    [count(({ state }) => state === "half_open"), "half-open"],
    [count(({ held }) => held === "closed"), "held closed"],
  ].flatMap(([number, word]) => (number ? `${number} ${word}` : []));
  return `${plural(circuits.length, "circuit")}: ${parts.join(", ") || "all closed"}`;
}
