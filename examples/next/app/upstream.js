// On the server: one guarded fetch for all routes. `waitUntil` keeps the function alive for what a store has yet to hear; without a
// store it is never asked.

import { wrapFetch } from "tripcurve";
import { waitUntil } from "tripcurve/adapters/vercel";

export const guarded = wrapFetch((...request) => fetch(...request), { timeoutMs: 2_000, onOpen: "respond", waitUntil });
export const orders = () => guarded(new URL("/orders", process.env.ORDERS ?? "http://127.0.0.1:4001"), { cache: "no-store" });
