// The service where the page comes from files alone: it answers the requests the page really makes, below its own folder. How it answers is
// kept in the cache, since the browser stops a worker that has nothing to do.

import { createAnswers } from "../answers.mjs";

const SERVICE = new URL("flaky/", registration.scope).href;
const CONTROL = new URL("service", registration.scope).href;

const answers = createAnswers();
const kept = restored();

async function restored() {
  const cache = await caches.open("tripcurve-demo");
  const before = await cache.match(CONTROL);
  if (before) answers.apply(await before.json());
  return cache;
}

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { url } = event.request;
  if (url === CONTROL) event.respondWith(control(event.request));
  else if (url.startsWith(SERVICE)) event.respondWith(answer());
});

async function control(request) {
  const cache = await kept;
  const problem = request.method === "POST" ? answers.apply(await request.json().catch(() => null)) : null;
  if (problem) return Response.json({ problem }, { status: 400 });
  await cache.put(CONTROL, Response.json(answers.state()));
  return Response.json({ url: SERVICE, ...answers.state() });
}

async function answer() {
  await kept;
  const { fails, delayMs, body, head } = answers.next();
  if (fails === "hangs") return new Promise(() => {});
  if (fails === "refuses") return Response.error();
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  return new Response(body, head());
}
