// The transitions, newest first.

import { el, say } from "./dom.js";
import type { PanelMove } from "./news.js";
import { clockTime, countWords, REASON_WORDS, STATE_WORDS } from "./words.js";

const SHOWN = 100;

export interface Log {
  readonly element: HTMLElement;
  readonly moves: readonly PanelMove[];
  add(moves: readonly PanelMove[]): void;
  clear(): void;
}

export function createLog(): Log {
  let moves: PanelMove[] = [];
  const body = el("tbody");
  const count = el("span", { class: "count", text: "0" });
  const heads = ["Time, UTC", "Circuit", "Change", "Reason", "Failed"].map((text) => el("th", { scope: "col", text }));
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body);
  const empty = el("p", { class: "empty", text: "None yet." });
  const host = el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Transitions" }, table, empty);
  const element = el("details", { class: "log", part: "log", open: true }, el("summary", {}, "Transitions ", count), host);

  const shown = (): void => {
    say(count, String(moves.length));
    table.hidden = moves.length === 0;
    empty.hidden = moves.length > 0;
  };
  shown();
  return {
    element,
    get moves() {
      return moves;
    },
    add(more) {
      if (more.length === 0) return;
      moves = [...moves, ...more].slice(-SHOWN);
      body.prepend(...more.slice(-SHOWN).map(line).reverse());
      while (body.children.length > SHOWN) body.lastElementChild!.remove();
      shown();
    },
    clear() {
      moves = [];
      body.replaceChildren();
      shown();
    },
  };
}

function line(move: PanelMove): HTMLElement {
  const { id, from, to, at, reason } = move;
  return el(
    "tr",
    { "data-state": to, "data-reason": reason },
    el("td", {}, el("time", { datetime: new Date(at).toISOString(), text: clockTime(at) })),
    el("td", { class: "key", text: id }),
    el("td", {}, el("span", { class: "from", text: `${STATE_WORDS[from]} → ` }), el("span", { class: "word", text: STATE_WORDS[to] })),
    el("td", { text: REASON_WORDS[reason] }),
    el("td", { class: "number", text: countWords(move) }),
  );
}
