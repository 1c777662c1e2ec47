// The list of transitions, newest first: when, from where to where, why, and what was counted.

import { el, find } from "./dom.js";
import { contactIcon } from "./glyph.js";
import { STATE_WORDS, clockTime, length, reasonWords } from "./words.js";

const SHOWN = 60;

export function createTransitions(root, history, seek) {
  const body = find("tbody", root);
  const empty = find(".empty", root);
  let drawn = "";

  function render(view) {
    const { transitions } = history;
    const newest = transitions.at(-1);
    const key = `${newest?.episode}/${view.transition?.episode}/${view.live}`;
    if (key === drawn) return;
    drawn = key;
    empty.hidden = transitions.length > 0;
    root.classList.toggle("is-empty", transitions.length === 0);
    body.replaceChildren(
      ...transitions
        .slice(-SHOWN)
        .reverse()
        .map((transition) => row(transition, !view.live && transition === view.transition)),
    );
  }

  function row(transition, current) {
    const { from, to, at, counts, until } = transition;
    return el(
      "tr",
      { class: current ? "is-current" : null, "aria-current": current ? "true" : null },
      el("td", {}, el("button", { class: "time", type: "button", title: "Show this moment", onclick: () => seek(at), text: clockTime(at) })),
      el(
        "td",
        { class: "states" },
        el("span", { class: "from", text: STATE_WORDS[from] }),
        el("span", { class: "to-arrow", text: " → " }),
        contactIcon(to, 30),
        el("strong", { class: `state-word state-${to}`, text: STATE_WORDS[to] }),
      ),
      el("td", {}, el("span", { text: reasonWords(transition) }), el("code", { text: transition.reason })),
      el("td", {
        class: "number",
        text: counts.calls > 0 ? `${counts.failures} of ${counts.calls}${counts.slow > 0 ? `, ${counts.slow} slow` : ""}` : "–",
      }),
      el("td", { class: "number", text: until === null ? "–" : length(until - at) }),
    );
  }
  return { render };
}
