// What the tests share: a breaker on a fake clock, calls that end when told, and faults that are caught where the host would see them.
import { CircuitBreaker } from "tripcurve";
import { fakeClock } from "tripcurve/testing";

/** The fixture of the reports: opens at half of at least 4 calls in 10 s, for 1 s; one probe closes. */
export const B0 = { window: { kind: "time", ms: 10_000, buckets: 10 }, failureRate: 0.5, minimumCalls: 4, openMs: 1_000, probeLeaseMs: 5_000 };

export function fixture(policy = {}, options = {}) {
  const clock = fakeClock();
  const breaker = new CircuitBreaker("test.circuit", { ...B0, ...policy }, { clock, ...options });
  const moves = [];
  breaker.on("transition", ({ from, to, reason }) => moves.push(`${from} ${to} ${reason}`));
  const fail = (times = 1, error = new Error("down")) => repeat(times, () => breaker.run(() => Promise.reject(error)).catch(() => {}));
  const succeed = (times = 1) => repeat(times, () => breaker.run(() => "fine"));
  return { clock, breaker, moves, fail, succeed, open: () => fail(4) };
}

export async function repeat(times, work) {
  for (let i = 0; i < times; i++) await work(i);
}

/** A call that ends when told. */
export function deferred() {
  let resolve, reject;
  const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

export const outcomeOf = (promise) => promise.then((value) => ({ value }), (error) => ({ error }));
export const ticks = (times = 10) => repeat(times, () => Promise.resolve());

/** Faults that reach the host while `work` runs. */
export async function reported(work) {
  const faults = [];
  const before = globalThis.reportError;
  globalThis.reportError = (error) => faults.push(error);
  try {
    await work();
    await ticks();
  } finally {
    globalThis.reportError = before;
  }
  return faults;
}

/** Rejections that nobody handles while `work` runs, kept from the test runner, which would take them for failures. */
export async function unhandled(work) {
  const seen = [];
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason) => seen.push(reason));
  try {
    await work();
    await new Promise((resolve) => setTimeout(resolve, 5));
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const other of others) process.on("unhandledRejection", other);
  }
  return seen;
}
