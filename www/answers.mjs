// How the service answers: the ways it can, the one number some of them take, and each answer in turn. It knows nothing about circuits, nor
// how an answer gets to whoever asked: a server sends it, or a service worker where the page comes from files alone.

export const MODES = {
  working: null,
  failing: null,
  partly: { name: "percent", min: 0, max: 100, initial: 50 },
  slow: { name: "latencyMs", min: 0, max: 60_000, initial: 1500 },
  hanging: null,
  refusing: null,
  limiting: { name: "retryAfterS", min: 1, max: 3600, initial: 8 },
};

const LATENCY_MS = 60;

export function createAnswers({ random = Math.random } = {}) {
  const settings = { mode: "working" };
  for (const field of Object.values(MODES)) if (field) settings[field.name] = field.initial;
  let served = 0;

  function statusOf(mode) {
    if (mode === "failing") return 503;
    if (mode === "limiting") return 429;
    if (mode === "partly") return random() * 100 < settings.percent ? 503 : 200;
    return 200;
  }

  return {
    state: () => ({ ...settings, served }),
    /** Takes over what is valid in `change`; returns the name of the first field that is not, else null. */
    apply(change) {
      if (change === null || typeof change !== "object") return "body";
      const next = { ...settings };
      if (change.mode !== undefined) {
        if (!Object.hasOwn(MODES, change.mode)) return "mode";
        next.mode = change.mode;
      }
      for (const field of Object.values(MODES)) {
        if (!field || change[field.name] === undefined) continue;
        const value = change[field.name];
        if (!Number.isFinite(value) || value < field.min || value > field.max) return field.name;
        next[field.name] = value;
      }
      Object.assign(settings, next);
      return null;
    },
    /** The answer to the next call. `fails`: none ever comes (`hangs`), or the connection breaks (`refuses`). */
    next() {
      const { mode } = settings;
      served += 1;
      const headers = { "Content-Type": "application/json", "Cache-Control": "no-store" };
      const delayMs = mode === "slow" ? settings.latencyMs : LATENCY_MS;
      const fails = mode === "hanging" ? "hangs" : mode === "refusing" ? "refuses" : null;
      return {
        fails,
        delayMs,
        body: JSON.stringify({ answer: served, mode }),
        /** Decided when it is sent, as a real one is. */
        head() {
          const status = statusOf(mode);
          return { status, headers: status === 429 ? { ...headers, "Retry-After": String(settings.retryAfterS) } : headers };
        },
      };
    },
  };
}
