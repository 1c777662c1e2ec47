// The recent states of a circuit as a trace: low while closed, high while open, half as high and broken while half-open.

import type { CircuitState } from "../events.js";
import { plural } from "../explain.js";
import { set, svg } from "./dom.js";
import type { PanelCircuit, PanelMove } from "./news.js";
import { lengthWords } from "./words.js";

interface Phase {
  readonly state: CircuitState;
  readonly from: number;
  readonly to: number;
}

/** What held between `start` and `now`; nothing where nobody knows. `first`: the circuit as it was seen first. */
export function phasesOf(circuit: PanelCircuit, first: PanelCircuit, moves: readonly PanelMove[], start: number, now: number): Phase[] {
  const { state, since, until } = circuit;
  const starts: { state: CircuitState; at: number }[] = moves.map(({ to, at }) => ({ state: to, at }));
  if (moves[0]?.from === first.state && first.since <= moves[0].at) starts.unshift({ state: first.state, at: first.since });
  // What only time, or a stored text, has changed.
  if (starts.at(-1)?.state !== state) starts.push({ state, at: state === "half_open" && until !== null && until <= now ? until : since });
  return starts.flatMap(({ state, at }, index) => {
    const from = Math.max(start, at);
    const to = Math.min(now, starts[index + 1]?.at ?? now);
    return to > from ? { state, from, to } : [];
  });
}

const WIDTH = 240;
const HEIGHT = 16;

export function createStrip(): { readonly element: SVGElement; draw(circuit: PanelCircuit, first: PanelCircuit, moves: readonly PanelMove[], now: number, spanMs: number): void } {
  const paths = { closed: svg("path"), half_open: svg("path"), open: svg("path") };
  const element = svg("svg", { class: "strip", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" }, ...Object.values(paths));
  for (const [state, path] of Object.entries(paths)) set(path, "class", `trace-${state}`);
  return {
    element,
    draw(circuit, first, moves, now, spanMs) {
      const phases = phasesOf(circuit, first, moves, now - spanMs, now);
      const x = (at: number): number => Math.round(((at - now + spanMs) / spanMs) * WIDTH * 2) / 2;
      const d = { closed: "", half_open: "", open: "" };
      for (const { state, from, to } of phases) {
        const [left, right] = [x(from), Math.max(x(to), x(from) + 1)];
        if (state === "closed") d.closed += `M${left} ${HEIGHT - 2}H${right}V${HEIGHT}H${left}Z`;
        else if (state === "open") d.open += `M${left} 0H${right}V${HEIGHT}H${left}Z`;
        else for (let at = left; at < right; at += 4) d.half_open += `M${at} ${HEIGHT / 2}H${Math.min(right, at + 2.5)}V${HEIGHT}H${at}Z`;
      }
      for (const state of ["closed", "half_open", "open"] as const) set(paths[state], "d", d[state]);
      const opened = phases.filter(({ state }, index) => state === "open" && phases[index - 1]?.state !== "open");
      const openMs = phases.reduce((sum, { state, from, to }) => (state === "open" ? sum + to - from : sum), 0);
      set(element, "aria-label", `Last ${lengthWords(spanMs)}: ${openMs > 0 ? `open for ${lengthWords(Math.ceil(openMs / 10_000) * 10_000)}, ${plural(opened.length, "time")}` : "never open"}`);
    },
  };
}
