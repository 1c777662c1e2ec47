// A page that loads orders, and says when to come back while their service is down: also after a reload, and in every other tab.

import { type CircuitOpenError, isCircuitOpenError, wrapFetch } from "tripcurve";
import { localStorageStore } from "tripcurve/stores/local-storage";

const SERVICE = import.meta.env.VITE_SERVICE ?? "https://api.example.com";
const guarded = wrapFetch(fetch, { store: localStorageStore(), timeoutMs: 10_000 });

const button = document.querySelector("button")!;
const status = document.querySelector("[role=status]")!;
let countdown: ReturnType<typeof setInterval> | undefined;

button.addEventListener("click", load);

async function load(): Promise<void> {
  clearInterval(countdown);
  try {
    const response = await guarded(`${SERVICE}/orders`);
    status.textContent = response.ok ? await response.text() : `The service answered ${response.status}.`;
  } catch (error) {
    if (isCircuitOpenError(error)) wait(error);
    else status.textContent = "The service cannot be reached.";
  }
}

/** Nothing was sent: the service has failed, and is left alone for a while. */
function wait(error: CircuitOpenError): void {
  const show = (): void => {
    const seconds = Math.ceil((error.retryAfterMs ?? 0) / 1_000);
    status.textContent = seconds > 0 ? `The service is down. Back in ${seconds} s.` : "Try again.";
    button.disabled = seconds > 0;
    if (seconds === 0) clearInterval(countdown);
  };
  show();
  countdown = setInterval(show, 1_000);
}
