// What this page has seen: calls, transitions, and the circuit's stored text after every change, each with the policy it was under.
// Bounded in time and size; kept over a reload of this tab, so that the timeline and the scrubber are too.

const KEY = "tripcurve-demo.history";
const KEEP_MS = 10 * 60_000;
const MOST_CALLS = 6000;
const MOST_TEXT = 4_000_000;
const MOST_TEXT_STORED = 400_000;

export function createHistory() {
  let calls = [];
  let transitions = [];
  let samples = [];
  let phases = [];
  let marks = [];
  let policies = [];
  let episode = 0;

  /** Remembers the circuit as it is: its text, and its counts for the trail. */
  function sample({ at, text, inspection, verdict = null }) {
    const previous = samples.at(-1);
    const same = previous?.text === text;
    if (same && verdict === null && previous.calls === inspection.counts.calls && previous.failures === inspection.counts.failures) return;
    const { calls: counted, failures, slow } = inspection.counts;
    const stored = same ? previous.text : text;
    samples.push({ at, text: stored, policy: policies.length - 1, episode, state: inspection.state, calls: counted, failures, slow, verdict });
    trim(at);
  }

  function phase({ at, inspection }) {
    const previous = phases.at(-1);
    const { state, held } = inspection;
    if (previous?.state === state && previous.held === held) return;
    // A due open circuit turned half-open at its `until`, also when nobody looked at that moment.
    const due = state === "half_open" && inspection.until !== null && inspection.until <= at ? inspection.until : at;
    phases.push({ at: Math.max(previous?.at ?? 0, due), state, held });
  }

  /** `kept`: read back from storage, over a reload say. The verdict this tab knew already begins nothing new. */
  function transition(detail) {
    const known = transitions.at(-1);
    const again = detail.kept && known?.to === detail.to && known.until === detail.until;
    if (!again) episode += 1;
    transitions.push({ ...detail, episode, again });
  }

  function trim(now) {
    const oldest = now - KEEP_MS;
    if (calls.length > MOST_CALLS || calls[0]?.start < oldest - 30_000)
      calls = calls.filter((call) => call.start >= oldest).slice(-MOST_CALLS + 1000);
    if (samples.length % 100 !== 0) return;
    let size = 0;
    let first = samples.length;
    while (first > 0 && samples[first - 1].at >= oldest && size < MOST_TEXT) size += samples[--first].text.length;
    samples = samples.slice(first);
    transitions = transitions.slice(-300);
    phases = phases.slice(-600);
    marks = marks.filter((mark) => mark.at >= oldest);
  }

  /** The last recorded state at or before an instant. */
  function sampleAt(at) {
    return samples[lastIndex(samples, at)] ?? samples[0] ?? null;
  }

  /** The nearest recorded instant before or after `at`. */
  function step(at, direction) {
    if (direction < 0) return samples[lastIndex(samples, at - 1)]?.at ?? null;
    return samples.find((entry) => entry.at > at)?.at ?? null;
  }

  function transitionAt(at) {
    return transitions[decisive(lastIndex(transitions, at))] ?? null;
  }

  function decisive(index) {
    while (transitions[index]?.again) index -= 1;
    return index;
  }

  /** The points of the closed episode that holds at `at`, or of the one that ended in the present outage, and how that one ended. */
  function trailAt(at, closed) {
    const index = decisive(lastIndex(transitions, at));
    let opened = null;
    let wanted = transitions[index]?.episode ?? 0;
    if (!closed) {
      let from = index;
      while (from >= 0 && !(transitions[from].from === "closed" && transitions[from].to !== "closed")) from -= 1;
      if (from < 0) return { trail: [], opened: null };
      wanted = transitions[from].episode - 1;
      if (transitions[from].counts.calls > 0) opened = transitions[from];
    }
    const trail = [];
    for (let entry = lastIndex(samples, at); entry >= 0 && trail.length < 60; entry -= 1) {
      const candidate = samples[entry];
      if (candidate.episode < wanted) break;
      if (candidate.episode === wanted && candidate.state === "closed") trail.unshift(candidate);
    }
    return { trail, opened };
  }

  function save() {
    let size = 0;
    let first = samples.length;
    while (first > 0 && size < MOST_TEXT_STORED) size += samples[--first].text.length + 120;
    const kept = {
      calls: calls.filter((call) => call.end !== null).slice(-800),
      transitions: transitions.slice(-100),
      samples: samples.slice(first),
      phases: phases.slice(-200),
      marks,
      policies,
      episode,
    };
    try {
      sessionStorage.setItem(KEY, JSON.stringify({ at: Date.now(), ...kept }));
    } catch {
      // Storage is full or forbidden: the page then starts with an empty timeline after a reload.
    }
  }

  /** Takes over what this tab recorded before it was reloaded; true if there was something. */
  function load(now) {
    try {
      const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
      if (!kept || now - kept.at > KEEP_MS || kept.at > now) return false;
      ({ calls, transitions, samples, phases, marks, policies, episode } = kept);
      return true;
    } catch {
      return false;
    }
  }

  return {
    sample,
    phase,
    transition,
    sampleAt,
    step,
    transitionAt,
    trailAt,
    save,
    load,
    policy: (policy) => policies.push(policy),
    mark: (at, word) => marks.push({ at, word }),
    call: (call) => calls.push(call),
    policyOf: (entry) => policies[entry.policy],
    get calls() {
      return calls;
    },
    get transitions() {
      return transitions;
    },
    get samples() {
      return samples;
    },
    get phases() {
      return phases;
    },
    get marks() {
      return marks;
    },
  };
}

function lastIndex(list, at) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
