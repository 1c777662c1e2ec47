// What the page says: names of states, reasons and calls, times and shares. Words for states and reasons are those of the panel.

import { REASON_WORDS, STATE_WORDS } from "tripcurve/panel";

export { STATE_WORDS };

/** A transition's reason. `kept`: what a verdict of this tab was kept over, when it was read back from storage. */
export function reasonWords(transition) {
  if (transition.kept) return `kept over ${transition.kept}`;
  return REASON_WORDS[transition.reason] ?? transition.reason;
}

/** The counts that decided a transition, where counts decided it; else an empty string. */
export function countWords({ reason, counts }) {
  if (reason === "failure_rate") return `${counts.failures} of ${counts.calls} calls failed`;
  if (reason === "failure_count") return `${plural(counts.failures, "failure")}`;
  if (reason === "slow_rate") return `${counts.slow} of ${counts.calls} calls were slow`;
  return "";
}

export const REFUSAL_WORDS = { open: "the circuit is open", held_open: "the circuit is held open", probes_busy: "all probes are under way" };

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** A share as a number, whether written as a decimal or as [numerator, denominator]. */
export const shareValue = (share) => (Array.isArray(share) ? share[0] / share[1] : share);

export const percent = (share) => `${Number((share * 100).toFixed(1))} %`;

/** A clock time to a tenth of a second. */
export function clockTime(at, tenths = true) {
  const date = new Date(at);
  const two = (value) => String(value).padStart(2, "0");
  const whole = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return tenths ? `${whole}.${Math.floor(date.getMilliseconds() / 100)}` : whole;
}

/** A length for reading at a glance: 7.4 s, 2 min 05 s. */
export function length(ms, tenths = true) {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 60) return tenths ? `${(Math.ceil(seconds * 10) / 10).toFixed(1)} s` : `${Math.ceil(seconds)} s`;
  const whole = Math.ceil(seconds);
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}
