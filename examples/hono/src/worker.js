import { createApp } from "./app.js";

// Kept while the isolate lives, and with it the circuits.
let app;

export default {
  fetch(request, env, context) {
    app ??= createApp({ orders: env.ORDERS, prices: env.PRICES });
    return app.fetch(request, env, context);
  },
};
