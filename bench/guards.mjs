// One entry per way to guard a call. A guard gets its library as an argument, so that every host can load it in its own way.
//
//   name      label in the tables
//   library   what `make` needs: a package name, or nothing
//   kind      the window it keeps: "time" (sliding), "calls" (the last n) or "fixed" (one counter set that restarts)
//   make(library, fn, o) -> () => Promise        one circuit around fn
//   pool(library, fn, o) -> (key) => Promise     many circuits by key; without it a Map of what `make` returns
//   fetch(library, fetch, o) -> (url) => Promise  optional: its own way to wrap fetch
//
// o = { kind, size, rate, minimum, openMs, fallback, clock }: size is calls or milliseconds, rate a percentage.

import { Floor, Tiny } from "./by-hand.mjs";

const opossumOptions = (o) => ({
  resetTimeout: o.openMs,
  errorThresholdPercentage: o.rate,
  volumeThreshold: o.minimum,
  rollingCountTimeout: o.size,
});

function opossum(CircuitBreaker, fn, options, fallback) {
  const breaker = new CircuitBreaker(fn, options);
  if (fallback) breaker.fallback(fallback);
  return () => breaker.fire();
}

function cockatiel(library, fn, breaker, o) {
  const policy = library.circuitBreaker(library.handleAll, { halfOpenAfter: o.openMs, breaker });
  const guarded = o.fallback ? library.wrap(library.fallback(library.handleAll, o.fallback), policy) : policy;
  return () => guarded.execute(fn);
}

const policy = (o) => ({
  window: o.kind === "calls" ? { kind: "calls", last: o.size } : { kind: o.kind, ms: o.size },
  failureRate: o.rate / 100,
  minimumCalls: o.minimum,
  openMs: o.openMs,
});

const tripcurve = (name, kind, library = "tripcurve") => ({
  name,
  kind,
  library,
  ours: true,
  make({ CircuitBreaker }, fn, o) {
    const breaker = new CircuitBreaker("bench", policy(o), o.clock ? { clock: o.clock } : undefined);
    if (!o.fallback) return () => breaker.run(fn);
    const options = { fallback: o.fallback };
    return () => breaker.run(fn, options);
  },
  pool({ CircuitRegistry }, fn, o) {
    const registry = new CircuitRegistry(policy(o), { maxCircuits: 200_000 });
    return (key) => registry.get(key).run(fn);
  },
  fetch: ({ wrapFetch }, fetch, o) => wrapFetch(fetch, { policy: policy(o) }),
});

export const guards = [
  { name: "bare await", kind: "time", bare: true, make: (_, fn) => fn },
  { name: "bare then", kind: "time", decidesNothing: true, make: (_, fn) => () => fn().then(same, rethrow) },
  { name: "tiny js", kind: "fixed", make: (_, fn, o) => methodOf(new Tiny(fn, o)) },
  { name: "js floor", kind: "fixed", make: (_, fn, o) => methodOf(new Floor(fn, o)) },
  { name: "js floor calls", kind: "calls", make: (_, fn, o) => methodOf(new Floor(fn, o)) },
  {
    name: "opossum",
    kind: "time",
    library: "opossum",
    make: (CircuitBreaker, fn, o) => opossum(CircuitBreaker, fn, opossumOptions(o), o.fallback),
  },
  {
    name: "opossum tuned", // without its time-out for each call, its percentiles and its snapshots
    kind: "time",
    library: "opossum",
    make: (library, fn, o) =>
      opossum(library, fn, { ...opossumOptions(o), timeout: false, rollingPercentilesEnabled: false, enableSnapshots: false }, o.fallback),
  },
  {
    name: "cockatiel sampling",
    kind: "time",
    library: "cockatiel",
    make: (library, fn, o) =>
      cockatiel(library, fn, new library.SamplingBreaker({ threshold: o.rate / 100, duration: o.size, minimumRps: (o.minimum * 1000) / o.size }), o),
  },
  {
    name: "cockatiel count",
    kind: "calls",
    library: "cockatiel",
    make: (library, fn, o) =>
      cockatiel(library, fn, new library.CountBreaker({ threshold: o.rate / 100, size: o.size, minimumNumberOfCalls: o.minimum }), o),
  },
  tripcurve("tripcurve time", "time"),
  tripcurve("tripcurve calls", "calls"),
  tripcurve("tripcurve fixed", "fixed"),
];

/** The same package from another checkout, to see what a change costs within one run. */
export const against = [tripcurve("against time", "time", "against"), tripcurve("against calls", "calls", "against")];

export function pool(guard, library, fn, o) {
  if (guard.pool) return guard.pool(library, fn, o);
  const circuits = new Map();
  return (key) => {
    let run = circuits.get(key);
    if (!run) circuits.set(key, (run = guard.make(library, fn, o)));
    return run();
  };
}

const same = (value) => value;

function rethrow(reason) {
  throw reason;
}

function methodOf(circuit) {
  return () => circuit.run();
}
