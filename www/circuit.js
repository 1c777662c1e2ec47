// The one place where the page meets the package: a guarded fetch for the service, its circuit, and what they report.

import { isCircuitOpenError, originKey, wrapFetch } from "tripcurve";
import { localStorageStore } from "tripcurve/stores/local-storage";

export { isCircuitOpenError };

/** Throws the package's InvalidCircuitError when the policy or the timeout cannot be. */
export function connect(service, { policy, timeoutMs }, listeners) {
  const guarded = wrapFetch(fetch, { policy, timeoutMs, store: localStorageStore() });
  const { registry } = guarded;
  const circuit = registry.get(originKey(service));
  for (const [event, listener] of Object.entries(listeners)) registry.on(event, listener);
  return {
    circuit,
    send: (path) => guarded(new URL(path, service), { cache: "no-store" }),
    close() {
      void registry.flush().finally(() => registry.dispose());
    },
  };
}
