// Stepping back: a recorded text is decoded and read at any instant by the pure core. The core is loaded when the page is idle or first asked for it.

let loading = null;
let core = null;
const parsed = new WeakMap();

export function loadCore() {
  loading ??= import("tripcurve/core").then((module) => (core = module));
  return loading;
}

/** The policy with every default filled in, once the core is there; until then as it was given. */
export function complete(policy) {
  if (core === null) return policy;
  let known = parsed.get(policy);
  if (!known) parsed.set(policy, (known = core.parsePolicy(policy)));
  return known;
}

/** What held at `at`, from the history alone; null while the core is not there or nothing is recorded. */
export function readAt(history, at) {
  const entry = history.sampleAt(at);
  if (core === null || entry === null) return null;
  const given = history.policyOf(entry);
  const policy = complete(given);
  const { snapshot } = core.decode(policy, entry.text, entry.at);
  return { policy, inspection: core.inspect(policy, snapshot, Math.max(at, entry.at)) };
}
