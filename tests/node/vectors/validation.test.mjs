// Which policies can be had. A refused one is refused by the constructor, and the error names the option that differs from the first row.
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import test from "node:test";
import { CircuitBreaker, InvalidCircuitError } from "tripcurve";
import { parsePolicy } from "tripcurve/core";
import * as fuse from "./systems/fuse.mjs";
import * as phil from "./systems/phil.mjs";
import * as rasuvaeff from "./systems/rasuvaeff.mjs";
import * as reqtide from "./systems/reqtide.mjs";
import * as utopia from "./systems/utopia.mjs";
import { rows } from "./trace.mjs";

// `openMs` 0 is due at once, as utopia needs it: in that one row each of the others is tighter.
const TABLES = {
  phil: {
    options: phil.options,
    fields: {
      rate: "failureRate",
      min: "minimumCalls",
      window_s: "window.ms",
      open_s: "openMs",
      successes: "probeSuccesses",
      slow_ms: "slowMs",
      slow_rate: "slowRate",
    },
    looser: ({ open_s }) => open_s === 0,
  },
  reqtide: {
    options: reqtide.options,
    fields: {
      window: (window) => ("last" in window ? "window.last" : "window.buckets"),
      min: "minimumCalls",
      ratio: "failureRate",
      open_ms: "openMs",
      capacity: "probeLimit",
      successes: "probeSuccesses",
      lease_ms: "probeLeaseMs",
    },
    looser: ({ open_ms }) => open_ms === 0,
  },
  rasuvaeff: {
    // Their lease defaults to the cooldown, and a lease of 0 is refused by both.
    options: (policy) => ({ ...rasuvaeff.options(policy), ...(policy.cooldown_ms === 0 ? { probeLeaseMs: undefined } : {}) }),
    fields: {
      failures: "failures",
      window: "window.last",
      within_ms: "window.withinMs",
      cooldown_ms: "openMs",
      successes: "probeSuccesses",
      probes: "probeLimit",
      probe_timeout_ms: "probeLeaseMs",
    },
    looser: ({ cooldown_ms }) => cooldown_ms === 0,
  },
  utopia: {
    // `permitted` is a limit of the process there; as an option it is `probeLimit`.
    options: (policy) => ({ ...utopia.options(policy), probeLimit: policy.permitted }),
    fields: {
      timeout_s: "openMs",
      successes: "probeSuccesses",
      window_s: "window.ms",
      ratio: "failureRate",
      min: "minimumCalls",
      permitted: "probeLimit",
    },
    // Ours is tighter in three rows: a negative timeout, and fewer successes than one.
    tighter: ({ timeout_s, successes }) => timeout_s < 0 || successes < 1,
    // A key of its own is no matter of a policy, and may be anything but empty.
    skip: ({ key }) => key !== "default",
  },
  fuse: {
    options: fuse.options,
    fields: { threshold: "failures", window_s: "window.withinMs", open_s: "openMs", probes: "probeLimit" },
    looser: ({ open_s }) => open_s === 0,
  },
};

for (const [system, { options, fields, looser = () => false, tighter = () => false, skip = () => false }] of Object.entries(TABLES)) {
  test(`policies of ${system} are accepted and refused alike, and the error names the option`, (t) => {
    const counts = { table: `${system}/validation`, rows: 0, looser: 0, tighter: 0, skipped: 0 };
    const [{ policy: base }] = rows(system, "validation");
    for (const { policy, ok } of rows(system, "validation")) {
      counts.rows++;
      if (skip(policy)) {
        counts.skipped++;
        continue;
      }
      const ours = (ok || looser(policy)) && !tighter(policy);
      if (ours !== ok) counts[ours ? "looser" : "tighter"]++;
      const changed = Object.keys(policy).filter((name) => !isDeepStrictEqual(policy[name], base[name]));
      const names = changed.map((name) => (typeof fields[name] === "function" ? fields[name](policy[name]) : fields[name]));
      check(ours, options(policy), names);
    }
    t.diagnostic(JSON.stringify(counts));
  });
}

function check(ok, policy, names) {
  for (const take of [(policy) => new CircuitBreaker("a", policy), parsePolicy]) {
    if (ok) {
      take(policy);
      continue;
    }
    assert.throws(
      () => take(policy),
      (error) => {
        assert.ok(error instanceof InvalidCircuitError, error);
        assert.ok(names.includes(error.field), `${error.message}: names ${error.field}, not ${names}`);
        const [first, second] = error.field.split(".");
        assert.deepEqual(error.value, second ? policy[first][second] : policy[first]);
        assert.ok(error.message.includes(error.field));
        return true;
      },
      JSON.stringify(policy),
    );
  }
}
