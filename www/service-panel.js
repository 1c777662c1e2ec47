// The service's switch: how it answers, and the one number some of its ways take. Follows changes made in another tab.

import { find } from "./dom.js";

const CHANNEL = "tripcurve-demo.service";

/** The service's present state: where it is and how it answers. */
export async function readService() {
  const response = await fetch("service", { signal: AbortSignal.timeout(3000) });
  if (!response.ok) throw new Error(`The page server answered ${response.status}`);
  return response.json();
}

export function createServicePanel(root, report) {
  const channel = new BroadcastChannel(CHANNEL);
  const numbers = [...root.querySelectorAll("input[data-number]")];

  function show(state) {
    for (const radio of root.querySelectorAll("input[name=mode]")) radio.checked = radio.value === state.mode;
    for (const input of numbers) {
      if (document.activeElement !== input) input.value = String(state[input.dataset.number]);
      input.disabled = !find(`input[value=${input.dataset.mode}]`, root).checked;
    }
  }

  async function change(body) {
    try {
      const response = await fetch("service", { method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(3000) });
      const state = await response.json();
      if (!response.ok) return report(`The service cannot take that ${state.problem}.`);
      report("");
      show(state);
      channel.postMessage(state);
    } catch {
      report("The page server cannot be reached; is npm start still running?");
    }
  }

  root.addEventListener("change", ({ target }) => {
    if (target.name === "mode") void change({ mode: target.value });
    else if (target.dataset.number) void change({ [target.dataset.number]: target.value.trim() === "" ? null : Number(target.value) });
  });
  channel.addEventListener("message", ({ data }) => show(data));
  addEventListener("focus", () => readService().then(show, () => report("The page server cannot be reached; is npm start still running?")));
  return { show };
}
