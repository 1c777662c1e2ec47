// What is measured, and who takes part.

const SECOND = 1000;

export const sizes = { time: 10 * SECOND, fixed: 10 * SECOND, calls: 100 };

/**
 *   failEach   each n-th call fails (0: none); it rejects with one error made beforehand
 *   trip       the circuit is opened first, and checked to be
 *   fallback   a fallback value is given
 *   heap       bytes of JavaScript heap for one call are measured too (Node)
 *   sweep      one of our guards at several sizes of window instead of all guards; the window is filled first
 *   fetch      the guarded function is a fetch
 *   idle       many circuits by key that do nothing (Node)
 */
export const scenarios = [
  { id: "closed", title: "closed, calls succeed", heap: true },
  { id: "failures", title: "closed, 10 % of the calls fail", failEach: 10, heap: true },
  { id: "refused", title: "open, calls are refused", trip: true, heap: true },
  { id: "fallback", title: "open, a fallback answers", trip: true, fallback: true, heap: true },
  { id: "calls", title: "windows of 10 to 10,000 calls, 10 % fail", failEach: 10, sweep: { guard: "tripcurve calls", unit: "calls", sizes: [10, 100, 1_000, 10_000] } },
  { id: "seconds", title: "windows of 10 to 10,000 seconds, 10 % fail", failEach: 10, sweep: { guard: "tripcurve time", unit: "s", scale: SECOND, sizes: [10, 100, 1_000, 10_000] } },
  { id: "fetch", title: "wrapFetch beside run, around a fetch that answers at once", fetch: true },
  { id: "idle", title: "100,000 idle circuits by key", idle: 100_000 },
];

/** The guards of one scenario, each with the label and the settings it runs under. */
export function contestants(scenario, guards) {
  const bare = guards.filter((guard) => guard.bare);
  const entry = (guard, more = {}) => ({ label: guard.name, guard: guard.name, library: guard.library, bare: !!guard.bare, size: sizes[guard.kind], ...more });
  if (scenario.idle) return guards.filter((guard) => !guard.bare && !guard.decidesNothing).map((guard) => entry(guard));
  if (scenario.sweep) {
    const { guard: name, unit, scale = 1, sizes: all } = scenario.sweep;
    const swept = guards.filter((guard) => guard.name === name);
    return [...bare.map((guard) => entry(guard)), ...swept.flatMap((guard) => all.map((size) => entry(guard, { label: `${name} ${size.toLocaleString("en-US")} ${unit}`, size: size * scale })))];
  }
  if (scenario.fetch) {
    const ours = guards.filter((guard) => guard.fetch && guard.kind === "time");
    return [
      ...bare.map((guard) => entry(guard, { label: "bare fetch" })),
      ...ours.flatMap((guard) => [entry(guard, { label: `${guard.name}, run` }), entry(guard, { label: `${guard.name}, wrapFetch`, wrap: true })]),
    ];
  }
  return guards.filter((guard) => !scenario.trip || !guard.decidesNothing).map((guard) => entry(guard));
}
