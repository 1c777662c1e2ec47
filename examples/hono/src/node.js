import { serve } from "@hono/node-server";
import { createApp } from "./app.js";

const { ORDERS = "http://127.0.0.1:4001", PRICES = "http://127.0.0.1:4002", PORT = "4000" } = process.env;
serve({ fetch: createApp({ orders: ORDERS, prices: PRICES }).fetch, hostname: "127.0.0.1", port: Number(PORT) }, ({ port }) => console.log(`http://127.0.0.1:${port}`));
