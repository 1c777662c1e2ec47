// Calls, one by one or steadily, each remembered from the moment it was sent until it has come back.

import { isCircuitOpenError } from "./circuit.js";

export function createTraffic({ connection, history, slowMs, changed }) {
  let number = 0;
  let timer = null;
  const flying = new Set();

  async function send() {
    const call = { id: ++number, start: Date.now(), end: null, kind: null, probe: false, detail: "" };
    history.call(call);
    flying.add(call);
    try {
      const response = await connection().send(`orders/${call.id}`);
      call.detail ||= String(response.status);
      await response.text();
    } catch (error) {
      if (isCircuitOpenError(error)) finish(call, "refused", error.reason);
      else call.detail ||= error?.name === "TimeoutError" ? "timed out" : "no answer";
    } finally {
      flying.delete(call);
      if (call.kind === null) finish(call, "uncounted", call.detail);
      changed();
    }
  }

  function finish(call, kind, detail) {
    call.kind = kind;
    call.end = Date.now();
    call.detail = detail;
  }

  return {
    send,
    /** Steady traffic; 0 stops it. */
    setRate(perSecond) {
      clearInterval(timer);
      timer = perSecond > 0 ? setInterval(send, 1000 / perSecond) : null;
    },
    /** An outcome the circuit counted belongs to the call that was sent as long ago as it took. */
    outcome({ verdict, durationMs, probe, stale, at }) {
      const start = at - (durationMs ?? 0);
      let call = null;
      for (const candidate of flying) {
        if (candidate.kind === null && (call === null || Math.abs(candidate.start - start) < Math.abs(call.start - start))) call = candidate;
      }
      if (call === null) return;
      const slow = verdict === "success" && slowMs() !== null && durationMs !== null && durationMs > slowMs();
      call.kind = stale || verdict === "ignored" ? "uncounted" : slow ? "slow" : verdict;
      call.probe = probe;
      call.end = at;
    },
    get flying() {
      return flying.size;
    },
  };
}
