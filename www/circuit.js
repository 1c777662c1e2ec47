// The one place where the page meets the package: a guarded fetch for the service, its circuit, and what they report.

import { isCircuitOpenError, originKey, wrapFetch } from "tripcurve";
import { panelFeed } from "tripcurve/panel";
import { localStorageStore } from "tripcurve/stores/local-storage";

export { isCircuitOpenError };

/** `past`: transitions to begin with. Throws the package's InvalidCircuitError when the policy or the timeout cannot be. */
export function connect(service, { policy, timeoutMs }, listeners, past) {
  const guarded = wrapFetch(fetch, { policy, timeoutMs, store: localStorageStore() });
  const { registry } = guarded;
  const circuit = registry.get(originKey(service));
  for (const [event, listener] of Object.entries(listeners)) registry.on(event, listener);
  const feed = panelFeed(registry, { controls: true, past });
  return {
    circuit,
    feed,
    send: (path) => guarded(new URL(path, service), { cache: "no-store" }),
    close() {
      feed.stop();
      void registry.flush().finally(() => registry.dispose());
    },
  };
}
