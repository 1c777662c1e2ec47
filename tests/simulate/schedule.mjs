// One schedule from a seed: who takes part, under which policy, and all that goes wrong until the quiet end. Every trouble is a field, so that
// a failing schedule can be shrunk by switching off what the failure does not need.
import { admit, closed, encode, force, parsePolicy } from "tripcurve/core";
import { chance, T0 } from "./chance.mjs";

export const KINDS = ["atomic", "tally", "local", "kv"];

/** What each field is when nothing goes wrong. Tried in this order. */
const CALM = {
  poison: null, corruptions: [], jump: 0, skew: 0, ticks: 0, storeOutages: [], slow: 0, lost: 0, cut: 0, loss: 0, hang: 0, stall: 0, late: false, idle: false,
  firstRead: "wait", subscribe: false, sync: false, shadow: false, listens: false, waitUntil: true, locks: true, serverClock: true, backoff: 1,
  probeLimit: 1, probeSuccesses: 1, people: 2, window: "consecutive", failures: 2,
};

export function draw(seed, kind) {
  const r = chance(`${seed}/${kind}/schedule`);
  const atomic = kind === "atomic" || kind === "tally";
  const horizon = r.pick([20_000, 20_000, 60_000, 120_000]);
  const openMs = kind === "kv" && r.happens(0.15) ? 300_000 : r.pick([1_000, 1_000, 5_000, 5_000, 30_000]);
  const backoff = openMs > 5_000 ? 1 : r.pick([1, 1, 2]);
  const serverClock = atomic && r.happens(0.75);
  const sync = atomic && r.happens(0.12);
  const waitUntil = r.happens(0.6);
  const schedule = {
    people: r.pick([2, 2, 3, 4]),
    horizon,
    openMs,
    backoff,
    maxOpenMs: backoff === 1 ? openMs : 4 * openMs,
    leaseMs: r.pick([openMs, 2_000, 5_000]),
    probeLimit: r.pick([1, 1, 2]),
    probeSuccesses: r.pick([1, 1, 2]),
    failures: r.pick([2, 5]),
    window: r.pick(["consecutive", "calls", "time", "fixed"]),
    storeTimeoutMs: r.pick([100, 500]),
    refreshMs: kind === "kv" ? r.pick([1_000, 60_000]) : r.pick([1_000, 1_000, 10_000]),
    firstRead: r.happens(0.2) ? "background" : "wait",
    /** Whether there is a host that keeps work alive. */
    waitUntil,
    /** Listens to outcomes: every call takes the longer way. */
    listens: r.happens(0.4),
    /** Atomic stores: do answers carry the store's clock, does it tell of writes, is it synchronous. */
    serverClock,
    subscribe: atomic && r.happens(0.4),
    sync,
    /** Does the browser have Web Locks? */
    locks: r.happens(0.9),
    shadow: r.happens(0.05),
    /** How densely calls come. */
    pace: r.pick([1, 1, 1, 0.3]),
    late: r.happens(0.4),
    idle: r.happens(0.3),
    final: r.pick(["up", "up", "down"]),
    outages: [],
    events: [],
    corruptions: [],
    poison: null,
    // Where there is one clock nothing is skewed, but it may be corrected.
    skew: kind === "local" || (atomic && !serverClock) ? 0 : r.pick([0, 0, 200, 10_000]),
    jump: r.pick([0, 0, 0, 10_000]) * r.pick([-1, 1]),
    jumpAt: r.between(0, horizon),
    /** Share of readings of a clock at which it moves on by a millisecond. */
    ticks: r.pick([0, 0.02, 0.2]),
    storeOutages: [],
    /** Shares of store operations that are slow, whose answer is lost after the effect, or never comes because nobody keeps the work alive. */
    slow: r.pick([0, 0.05, 0.2]),
    lost: r.pick([0, 0, 0.02, 0.1]),
    cut: waitUntil || kind === "local" ? 0 : r.pick([0, 0.05, 0.2]),
    /** Share of notifications that never arrive. */
    loss: r.pick([0, 0, 0.3, 1]),
    /** Share of calls that never end. */
    hang: r.pick([0, 0.03]),
    /** Share of store operations during which the participant is frozen. */
    stall: r.pick([0, 0, 0.01, 0.03]),
  };
  for (let from = 500 + r.between(0, horizon / 4); from < horizon && schedule.outages.length < 6; ) {
    const to = from + r.pick([300, 3_000, 15_000]);
    // Sometimes one participant is sick, not the backend.
    schedule.outages.push({ from, to, who: r.happens(0.3) ? r.between(0, schedule.people) : null });
    from = to + r.between(500, horizon / 2);
  }
  for (let i = r.pick([0, 0, 1, 2]); i > 0; i--) {
    const from = r.between(0, horizon);
    schedule.storeOutages.push({ from, to: from + r.pick([1_000, 10_000]) });
  }
  for (let i = r.pick([0, 0, 2, 4]); i > 0; i--) {
    const what = r.pick(["crash", "freeze", "freeze", "leave"]);
    schedule.events.push({ at: r.between(0, horizon), who: r.between(0, 4), what, ms: r.pick([50, 3_000, 20_000]) });
  }
  if (r.happens(0.15)) schedule.poison = poisonOf(r, schedule);
  if (r.happens(0.08)) schedule.corruptions.push({ at: r.between(0, horizon), text: r.pick([null, "", "nonsense", `1;${"9".repeat(40_000)}`]) });
  return schedule;
}

/** The policy that a schedule gives its breakers. */
export function policyOf({ window, failures, openMs, backoff, maxOpenMs, leaseMs, probeLimit, probeSuccesses, shadow }, tally = false) {
  const share = { failureRate: 0.5, minimumCalls: failures };
  const windows = {
    consecutive: { window: { kind: "consecutive" }, failures },
    // Of a shared tally none is forgotten, so that it can be compared.
    calls: tally ? { window: { kind: "calls", last: 10_000 }, failures } : { window: { kind: "calls", last: 10 }, ...share },
    time: { window: { kind: "time", ms: 10_000, buckets: 10 }, ...share },
    fixed: { window: { kind: "fixed", ms: 10_000 }, ...share },
  };
  return { ...windows[window], openMs, backoff, maxOpenMs, probeLeaseMs: leaseMs, probeLimit, probeSuccesses, shadow };
}

/** A text that was in the store before anybody came: from long ago, from a fast clock, from a mad one, or no circuit at all. */
function poisonOf(r, schedule) {
  if (r.happens(0.3)) return r.pick(["", "nonsense", "2;C;0;0;1;0;0;;;;", "1;O;;;;;;;;;;", "1;C0;0;0;1;0;0;zzzzzzzzzzzz.1;;;", "\u0000".repeat(100)]);
  const policy = parsePolicy({ ...policyOf(schedule), maxOpenMs: Number.MAX_SAFE_INTEGER, probeLeaseMs: 10 ** 13 });
  const since = T0 + r.pick([-60_000, 3_600_000, 10 ** 12]);
  const until = r.pick([since, since + schedule.openMs, since + 10 ** 13]);
  const open = force(policy, closed(policy, r.between(1, 10 ** 6), since), "open", until, since).snapshot;
  const text = r.pick([
    () => encode(open),
    () => encode(force(policy, open, "closed", null, since + 1).snapshot),
    () => encode(admit(policy, open, r.between(1, 10 ** 6), until + 1).snapshot),
  ])();
  return r.happens(0.2) ? text.slice(0, -2) : text;
}

/** Simpler schedules than this one, each with one thing less. */
export function* simpler(schedule) {
  for (const [field, calm] of Object.entries(CALM)) {
    const value = schedule[field];
    if (Array.isArray(calm) ? value.length > 0 : value !== calm) yield { [field]: calm };
  }
  for (const field of ["events", "outages", "storeOutages", "corruptions"]) {
    for (let index = schedule[field].length - 1; index >= 0; index--) yield { [field]: schedule[field].filter((_, at) => at !== index) };
  }
}
