"use client";

// In the browser: the page guards its own requests, and its circuit survives the reload.

import { useState } from "react";
import { isCircuitOpenError, wrapFetch } from "tripcurve";
import { localStorageStore } from "tripcurve/stores/local-storage";

const guarded = wrapFetch((...request) => fetch(...request), { store: localStorageStore(), timeoutMs: 10_000 });

export function Orders() {
  const [text, say] = useState("");
  const load = () =>
    guarded("/orders-node")
      .then((response) => response.text())
      .catch((error) => (isCircuitOpenError(error) ? `Back in ${Math.ceil(error.retryAfterMs / 1_000)} s` : "The server cannot be reached"))
      .then(say);
  return (
    <>
      <button onClick={load}>Load</button>
      <p role="status">{text}</p>
    </>
  );
}
