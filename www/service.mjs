// A real HTTP service that fails on demand, on a port of its own, so that the page talks to it across origins as it would to any API.
// It knows nothing about circuits; `apply` switches how it answers.

import { createServer } from "node:http";
import { listen, shut } from "./listen.mjs";

/** How the service can answer, and the one number each way may take. */
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

export async function startService({ port = 0, host = "127.0.0.1", random = Math.random } = {}) {
  const settings = { mode: "working" };
  for (const field of Object.values(MODES)) if (field) settings[field.name] = field.initial;
  let served = 0;

  const server = createServer((request, response) => {
    request.resume();
    response.setHeader("Access-Control-Allow-Origin", "*");
    response.setHeader("Access-Control-Allow-Headers", "*");
    response.setHeader("Access-Control-Expose-Headers", "Retry-After");
    response.setHeader("Cache-Control", "no-store");
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    served += 1;
    answer(request, response, served);
  });

  function answer(request, response, number) {
    const { mode } = settings;
    if (mode === "hanging") return;
    if (mode === "refusing") return void request.socket.destroy();
    const delay = mode === "slow" ? settings.latencyMs : LATENCY_MS;
    const timer = setTimeout(() => {
      const status = statusOf(mode);
      if (status === 429) response.setHeader("Retry-After", String(settings.retryAfterS));
      response.writeHead(status, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ answer: number, mode }));
    }, delay);
    response.on("close", () => clearTimeout(timer));
  }

  function statusOf(mode) {
    if (mode === "failing") return 503;
    if (mode === "limiting") return 429;
    if (mode === "partly") return random() * 100 < settings.percent ? 503 : 200;
    return 200;
  }

  const url = await listen(server, host, port);
  return {
    url,
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
    close: () => shut(server),
  };
}
