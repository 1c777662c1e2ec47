// One circuit: its state, why, what it has counted, its last minutes, and when it will be probed.

import { explanation, plural } from "../explain.js";
import { el, say, set, svg } from "./dom.js";
import { gaugeOf } from "./gauge.js";
import type { PanelCircuit, PanelCommand, PanelMove } from "./news.js";
import { createStrip } from "./strip.js";
import { lengthWords, stateWords } from "./words.js";

/** Moves a row remembers for its strip. */
const MOVES = 100;

export interface Row {
  readonly element: HTMLElement;
  readonly circuit: PanelCircuit;
  /** Why, as one sentence. */
  readonly sentence: string;
  update(circuit: PanelCircuit): void;
  moved(move: PanelMove): void;
  /** What comes next is another feed's. */
  forget(): void;
  draw(now: number, spanMs: number, controls: boolean): void;
}

/** An electrical contact: lever down, half up and broken, up. */
const LEVERS = { closed: "M7 12L21 12", half_open: "M7 12L19 6", open: "M7 12L17 2" };

export function createRow(given: PanelCircuit, number: number, act: (command: PanelCommand) => void): Row {
  const { id } = given;
  let circuit = given;
  /** As it was seen first. */
  let first: PanelCircuit | undefined = given;
  let sentence = "";
  let moves: PanelMove[] = [];
  let verbs: HTMLElement | undefined;

  const lever = svg("path", { class: "lever" });
  const sign = svg("svg", { class: "sign", part: "sign", viewBox: "0 0 28 16", "aria-hidden": "true" }, svg("path", { d: "M1 12H5M23 12H27" }), svg("circle", { cx: 7, cy: 12, r: 2 }), svg("circle", { cx: 21, cy: 12, r: 2 }), lever);
  const word = el("span", { class: "word" });
  const reason = el("p", { class: "reason", part: "reason" });
  const bar = el("span", { class: "bar" });
  const tick = el("span", { class: "tick" });
  const gauge = el("div", { class: "gauge", role: "meter", "aria-valuemin": 0, "aria-valuemax": 100 }, bar, tick);
  const counted = el("p", { class: "counted", "aria-hidden": "true" });
  const strip = createStrip();
  const left = el("p", { class: "left", part: "countdown" });
  const note = el("p", { class: "note" });
  const more = el("button", { type: "button", part: "button", class: "more", text: "Operate", "aria-expanded": "false", "aria-controls": `verbs-${number}`, "aria-label": `Operate ${id}`, onclick: () => toggle() });
  const element = el(
    "li",
    { class: "row", part: "row" },
    el("div", { class: "state", part: "state" }, sign, word),
    el("div", { class: "name" }, el("p", { class: "key", part: "key", text: id }), reason),
    el("div", { class: "window", part: "gauge" }, gauge, counted),
    el("div", { class: "recent", part: "timeline" }, strip.element),
    el("div", { class: "next" }, left, note),
    more,
  );

  const toggle = (): void => {
    verbs ??= element.appendChild(verbsOf(id, number, act));
    verbs.hidden = !verbs.hidden;
    set(more, "aria-expanded", String(!verbs.hidden));
  };

  const draw = (now: number, spanMs: number, controls: boolean): void => {
    const { state, held, until, probesInFlight, rejected } = circuit;
    sentence = explanation(circuit, circuit.policy, now);
    set(element, "data-state", state);
    set(element, "data-held", held);
    set(lever, "d", LEVERS[state]);
    say(word, stateWords(circuit));
    say(reason, sentence);
    strip.draw(circuit, first ?? circuit, moves, now, spanMs);

    const shown = gaugeOf(circuit);
    gauge.classList.toggle("is-empty", !shown);
    set(gauge, "aria-hidden", shown ? null : "true");
    if (shown) {
      const { label, value, limit, words, early } = shown;
      set(gauge, "aria-label", label);
      set(gauge, "aria-valuenow", Math.round(value * 100));
      set(gauge, "aria-valuetext", words);
      gauge.classList.toggle("is-early", early);
      place(bar, "inline-size", value);
      place(tick, "inset-inline-start", limit);
    }
    say(counted, shown?.words ?? "");

    const waits = state === "open" && !held && until !== null;
    const free = state === "half_open" && !held;
    say(left, waits ? lengthWords(until - now) : free ? (probesInFlight > 0 ? plural(probesInFlight, "probe") : "next call") : "");
    say(note, rejected > 0 && state !== "closed" ? `${rejected} refused` : "");

    set(more, "hidden", !controls);
    if (!controls && verbs && !verbs.hidden) toggle();
  };

  return {
    element,
    draw,
    get circuit() {
      return circuit;
    },
    get sentence() {
      return sentence;
    },
    update(next) {
      circuit = next;
      first ??= next;
    },
    moved(move) {
      moves.push(move);
      if (moves.length > MOVES) moves.shift();
    },
    forget() {
      moves = [];
      first = undefined;
    },
  };
}

function place({ style }: HTMLElement, property: string, share: number): void {
  const value = `${Math.round(share * 1_000) / 10}%`;
  if (style.getPropertyValue(property) !== value) style.setProperty(property, value);
}

function verbsOf(id: string, number: number, act: (command: PanelCommand) => void): HTMLElement {
  const button = (text: string, what: string, command: PanelCommand): HTMLElement =>
    el("button", { type: "button", part: "button", text, "aria-label": what, onclick: () => act(command) });
  const force = (["closed", "open", "half_open"] as const).map((to) => {
    const text = to === "half_open" ? "Half-open" : to === "open" ? "Open" : "Closed";
    return button(text, `Force ${text.toLowerCase()}`, { id, verb: "force", to });
  });
  const hold = (["closed", "open"] as const).map((to) => button(to === "open" ? "Open" : "Closed", `Hold ${to}`, { id, verb: "hold", to }));
  const group = (name: string, buttons: HTMLElement[]): HTMLElement => el("span", { class: "group" }, el("span", { text: name, "aria-hidden": "true" }), ...buttons);
  return el(
    "div",
    { class: "verbs", part: "controls", id: `verbs-${number}`, role: "group", "aria-label": `Operate ${id}`, hidden: true },
    group("Force", force),
    group("Hold", hold),
    button("Release", "Release the hold", { id, verb: "release" }),
    button("Reset", "Reset: closed and empty", { id, verb: "reset" }),
  );
}
