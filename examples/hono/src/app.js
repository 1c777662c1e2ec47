// An API that is made of two others. Each has a circuit of its own: when one is down, what the other knows is still answered, at once.

import { Hono } from "hono";
import { isCircuitOpenError, wrapFetch } from "tripcurve";

export function createApp({ orders, prices }) {
  const guarded = wrapFetch(fetch, { timeoutMs: 2_000 });
  const app = new Hono();

  // One upstream, passed on: while it is down, 503 and when to come back.
  app.get("/orders/:id", async (c) => guarded(new URL(`/orders/${c.req.param("id")}`, orders), {}, { onOpen: "respond" }));

  // Two upstreams: without prices an order is still an order.
  app.get("/orders/:id/total", async (c) => {
    const order = await (await guarded(new URL(`/orders/${c.req.param("id")}`, orders))).json();
    const price = await guarded(new URL(`/prices/${order.item}`, prices))
      .then((response) => (response.ok ? response.json() : null))
      .catch(() => null);
    return c.json({ ...order, total: price ? price.each * order.count : null });
  });

  app.get("/health", (c) => c.json(guarded.registry.inspect().map(({ key, state, until }) => ({ key, state, until }))));

  app.onError((error, c) => {
    if (!isCircuitOpenError(error)) return c.text("Bad gateway", 502);
    c.header("Retry-After", String(Math.ceil((error.retryAfterMs ?? 1_000) / 1_000)));
    return c.text(error.message, 503);
  });
  return app;
}
