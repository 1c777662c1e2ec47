// The verdict in words: the state, why, and when the next probe may go.

import { find, reducedMotion, say } from "./dom.js";
import { contactIcon } from "./glyph.js";
import { STATE_WORDS, clockTime, length, plural, stateSentence } from "./words.js";

export function createStatus(root, announcer) {
  const sign = find(".status-sign", root);
  const word = find(".status-word", root);
  const sentence = find(".status-sentence", root);
  const recorded = find(".recorded", root);
  const count = find(".countdown", root);
  const countValue = find(".countdown-value", root);
  const countLabel = find(".countdown-label", root);
  const facts = Object.fromEntries([...document.querySelectorAll("[data-fact]")].map((element) => [element.dataset.fact, element]));
  let drawn = "";
  let announced = "";

  function render(view) {
    const { inspection, at, live, policy } = view;
    const { state, held, until } = inspection;
    if (state !== drawn) {
      drawn = state;
      sign.replaceChildren(contactIcon(state, 96));
      root.dataset.state = state;
    }
    recorded.hidden = live;
    if (!live) say(recorded, `recorded ${clockTime(at)}`);
    say(word, STATE_WORDS[state] + (held ? ", held" : ""));
    say(sentence, stateSentence(view));
    root.dataset.until = String(until ?? "");
    const [value, label] = countdown(inspection, at);
    count.classList.toggle("is-away", value === null);
    say(countValue, value ?? "–");
    say(countLabel, label);
    say(facts.since, inspection.since > 0 ? clockTime(inspection.since, false) : "–");
    say(facts.rejected, String(inspection.rejected));
    say(facts.probes, `${inspection.probesInFlight} of ${policy.probeLimit === null ? "any number" : (policy.probeLimit ?? 1)}`);
    say(facts.generation, String(inspection.generation));
    if (live) announce(view);
    document.title = `${STATE_WORDS[state]}${state === "open" && until !== null && !held ? ` ${length(until - at, false)}` : ""} · Tripcurve`;
  }

  // Heard once per change of state or reason, not with every tick of the countdown.
  function announce(view) {
    const { inspection, transition } = view;
    const key = `${inspection.state}/${inspection.held}/${transition?.at}`;
    if (key === announced) return;
    const first = announced === "";
    announced = key;
    if (!first) announcer.textContent = `${STATE_WORDS[inspection.state]}. ${stateSentence(view)}`;
  }
  return { render };
}

function countdown({ state, held, until, probesInFlight, probeSuccesses }, at) {
  if (state === "open" && !held && until !== null) return [length(until - at, !reducedMotion()), "to the next probe"];
  if (state === "half_open")
    return probesInFlight > 0
      ? [plural(probesInFlight, "probe"), "under way"]
      : ["now", probeSuccesses > 0 ? "the next probe may go" : "the first probe may go"];
  return [null, "to the next probe"];
}
