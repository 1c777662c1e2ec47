// The fields of the policy form: where each stands in a policy, what it is called, and when it is shown. No bounds: the package knows them.

import { presets } from "tripcurve";

const ofWindow = (kind) => (form) => form.kind === kind;
const ofRule = (rule) => (form) => form.rule === rule && form.kind !== "consecutive";

/** `group` is the fieldset, `name` the API's name (also that of InvalidCircuitError.field), `hint` what holds when it is left empty. */
export const FIELDS = [
  { group: "window", name: "window.ms", label: "Length", unit: "ms", shown: (form) => form.kind === "time" || form.kind === "fixed" },
  { group: "more", name: "window.buckets", label: "Buckets", hint: "10", shown: ofWindow("time") },
  { group: "window", name: "window.last", label: "Last calls", shown: ofWindow("calls") },
  {
    group: "window",
    name: "window.withinMs",
    label: "No older than",
    unit: "ms",
    hint: "any age",
    shown: (form) => form.kind === "calls" || form.kind === "consecutive",
  },
  { group: "rule", name: "failureRate", label: "Share of failures", shown: ofRule("share") },
  { group: "rule", name: "failures", label: "Failures", shown: (form) => form.rule === "count" || form.kind === "consecutive" },
  { group: "rule", name: "minimumCalls", label: "Minimum calls", shown: (form) => ofRule("share")(form) || form.slowMs !== "" },
  { group: "rule", name: "slowMs", label: "Slower than", unit: "ms", hint: "none is" },
  { group: "rule", name: "slowRate", label: "Share of slow", hint: "1", shown: (form) => form.slowMs !== "" },
  { group: "open", name: "openMs", label: "Stays open", unit: "ms" },
  { group: "open", name: "backoff", label: "Backoff factor", hint: "1" },
  { group: "more", name: "jitter", label: "Jitter", hint: "0" },
  { group: "more", name: "maxOpenMs", label: "Open at most", unit: "ms", hint: "300000" },
  { group: "probes", name: "probeLimit", label: "At a time", hint: "1" },
  { group: "probes", name: "probeSuccesses", label: "Successes to close", hint: "1" },
  { group: "more", name: "probeLeaseMs", label: "Probe lease", unit: "ms", hint: "10000" },
  { group: "call", name: "timeoutMs", label: "Time-out", unit: "ms", hint: "none" },
];

/** The page's own start: the package's preset for pages, with two successes to close so that half-open can be watched. */
export function initialForm() {
  const { window, ...rest } = presets.page;
  const form = { kind: window.kind, rule: "share", judgeOn: "failure", shadow: false };
  for (const { name } of FIELDS) form[name] = "";
  for (const [name, value] of Object.entries(rest)) if (name in form) form[name] = String(value);
  for (const [name, value] of Object.entries(window)) form[`window.${name}`] = String(value);
  return { ...form, "window.last": "20", failures: "5", probeSuccesses: "2", timeoutMs: "2000" };
}

/** The policy a form says. Text that is no number is handed on as it is, so that the package says what is wrong with it. */
export function policyOf(form) {
  const policy = { window: { kind: form.kind } };
  let timeoutMs;
  for (const { name, shown } of FIELDS) {
    const text = form[name].trim();
    if (text === "" || (shown && !shown(form))) continue;
    const value = Number.isNaN(Number(text)) ? text : Number(text);
    if (name === "timeoutMs") timeoutMs = value;
    else if (name.startsWith("window.")) policy.window[name.slice(7)] = value;
    else policy[name] = value;
  }
  if (form.judgeOn === "any") policy.judgeOn = "any";
  if (form.shadow) policy.shadow = true;
  return { policy, timeoutMs };
}
