// A circuit that goes through everything, and what must have been measured of it: the tests of both telemetries use it.
import { CircuitRegistry, memoryStore } from "tripcurve";
import { fakeClock, faultyStore } from "tripcurve/testing";
import { B0, deferred, outcomeOf } from "./help.mjs";

/** A registry whose store fails when told. */
export function watched({ start = 1_000_000_000, ...policy } = {}) {
  const clock = fakeClock(start);
  const store = faultyStore(memoryStore({ clock }));
  return { clock, store, registry: new CircuitRegistry({ ...B0, ...policy }, { clock, store }) };
}

/** Opens, refuses, is probed in vain, is probed and closes, by the clock in 5 s; one more call is still running. Gives how to end that. */
export async function live({ registry, clock }, key = "http.payments") {
  const circuit = registry.get(key);
  const fail = (error, options) => outcomeOf(circuit.run(() => Promise.reject(error), options));
  await circuit.run(() => "fine");
  await circuit.run(() => "fine");
  await fail(new TypeError("fetch failed"));
  clock.advance(1_000);
  await fail(new RangeError("out of range"), { fallbackOn: "failure", fallback: () => "instead" });
  clock.advance(500);
  await fail(new Error("never run"));
  await fail(new Error("never run"), { fallback: () => Promise.reject(new Error("no fallback either")) });
  clock.advance(500);
  await fail(new Error("still down"));
  clock.advance(1_000);
  await circuit.run(() => "fine");
  clock.advance(1_000);
  await circuit.run(() => "whatever", { classify: () => "ignored" });
  clock.advance(1_000);
  const running = deferred();
  const last = circuit.run(() => running.promise);
  return async () => {
    running.resolve();
    await last;
  };
}

/** By metric, what the attributes (without the name) say of it after `live`. What the store took depends on the machine. */
export const LIVED = {
  "circuit_breaker.calls": { success: 3, failure: 3, ignored: 1, rejected: 2 },
  "circuit_breaker.probes": { success: 1, failure: 1 },
  "circuit_breaker.refusals": { "open false": 2 },
  "circuit_breaker.fallbacks": { "failure success": 1, "refusal failure": 1 },
  "circuit_breaker.callback_failures": { TypeError: 1, RangeError: 1, Error: 1 },
  "circuit_breaker.transitions": {
    "closed open failure_rate": 1,
    "open half_open open_elapsed": 2,
    "half_open open probe_failed": 1,
    "half_open closed probes_succeeded": 1,
  },
  "circuit_breaker.active_calls": { "": 1 },
  "circuit_breaker.event.timestamp": { transition: 1_000_003, rejected: 1_000_001.5, probe: 1_000_003 },
  "circuit_breaker.state": { closed: 1, open: 0, half_open: 0 },
  "circuit_breaker.held": { open: 0, closed: 0 },
  "circuit_breaker.window.calls": { "": 0 },
  "circuit_breaker.window.failures": { "": 0 },
  "circuit_breaker.window.slow_calls": { "": 0 },
  "circuit_breaker.probe.successes": { "": 0 },
};

/** Of what is handed out, as many listeners as there are: a source to be watched in place of another. */
export function counted(source) {
  let listeners = 0;
  const on = (...args) => {
    const stop = source.on(...args);
    listeners++;
    return () => (listeners--, stop());
  };
  return { on, inspect: () => source.inspect(), get: (key) => source.get(key), listeners: () => listeners };
}
