// The state diagram: three contacts, the arcs between them, the current state lit and the reason on the arc taken last.

import { find, reducedMotion, say, set, svg } from "./dom.js";
import { contact } from "./glyph.js";
import { STATE_WORDS, countWords, length, percent, plural, reasonWords } from "./words.js";

const R = 48;
const NODES = { closed: [62, 104], open: [318, 104], half_open: [190, 254] };

// Where each arc runs, where its words stand, and what it is called before it has been taken; `hand`: seen only when somebody took it.
const ARCS = {
  "closed>open": { d: "M100 70Q190 22 279 69", label: [190, 18], quiet: "line reached" },
  "open>half_open": { d: "M326 157Q322 232 244 256", label: [326, 262], quiet: "open time over" },
  "half_open>open": { d: "M221 212L279 145", label: [190, 164], quiet: "probe failed" },
  "half_open>closed": { d: "M136 256Q58 232 54 158", label: [56, 262], quiet: "probes succeeded" },
  "open>closed": { d: "M264 108Q190 122 117 108", label: [190, 106], hand: true },
  "closed>half_open": { d: "M101 145L157 211", label: [190, 164], hand: true },
};

export function createDiagram(root) {
  const drawing = svg("svg", { class: "diagram", viewBox: "0 0 380 312", role: "img", "aria-labelledby": "diagram-title diagram-text" });
  find(".diagram-host", root).append(drawing);
  drawing.append(svg("defs", {}, arrowhead("arrow", "arrow"), arrowhead("arrow-taken", "arrow arrow-taken")));
  const arcs = Object.fromEntries(Object.entries(ARCS).map(([name, arc]) => [name, drawArc(drawing, name, arc)]));
  const nodes = Object.fromEntries(Object.entries(NODES).map(([state, [x, y]]) => [state, drawNode(drawing, state, x, y)]));
  const summary = find("#diagram-text");
  let taken = "";
  let announced = false;

  function render(view) {
    const { inspection, transition, policy } = view;
    for (const [state, node] of Object.entries(nodes)) {
      node.group.classList.toggle("is-lit", state === inspection.state);
      node.group.classList.toggle("is-held", state === inspection.state && inspection.held !== null);
      say(node.note, noteFor(state, view));
      set(node.ring, { "stroke-dasharray": `${(ringShare(state, view) * 100).toFixed(2)} 100` });
    }
    const due = inspection.state === "half_open" && transition?.to === "open";
    const name = due ? "open>half_open" : transition && `${transition.from}>${transition.to}`;
    const key = !name ? "none" : `${name}/${due ? "due" : transition.at}/${transition.reason}`;
    if (key !== taken) {
      for (const [other, arc] of Object.entries(arcs)) light(arc, other === name, ARCS[other], due ? { reason: "open_elapsed" } : transition);
      arcs["half_open>open"].label.classList.toggle("is-covered", name === "closed>half_open");
      if (name && announced && view.live) runAlong(drawing, ARCS[name]?.d);
      taken = key;
    }
    announced = true;
    const reason = name ? ` Last change: ${due ? "open time over" : reasonWords(transition)}.` : "";
    say(
      summary,
      `${STATE_WORDS[inspection.state]}${inspection.held ? ", held by hand" : ""}.${reason} ${plural(policy.probeSuccesses ?? 1, "probe success")} close it.`,
    );
  }
  return { render };
}

function noteFor(state, { inspection, at, policy }) {
  if (state !== inspection.state) return "";
  if (inspection.held) return "held";
  const { counts, until } = inspection;
  if (state === "closed") return counts.calls > 0 ? percent(counts.failures / counts.calls) : "";
  if (state === "open") return until === null ? "" : length(until - at, !reducedMotion());
  return `${inspection.probeSuccesses} of ${policy.probeSuccesses ?? 1}`;
}

// The ring: what is left of the open time, or the probes that have succeeded.
function ringShare(state, { inspection, at, policy }) {
  if (state !== inspection.state || inspection.held) return 0;
  if (state === "open" && inspection.until !== null) return Math.max(0, (inspection.until - at) / Math.max(1, inspection.until - inspection.since));
  if (state === "half_open") return inspection.probeSuccesses / (policy.probeSuccesses ?? 1);
  return 0;
}

function light(arc, isTaken, { quiet = "", label }, transition) {
  arc.group.classList.toggle("is-taken", isTaken);
  set(arc.path, { "marker-end": isTaken ? "url(#arrow-taken)" : "url(#arrow)" });
  const counts = isTaken && transition.counts ? countWords(transition) : "";
  say(arc.label.firstChild, isTaken ? reasonWords(transition) : quiet);
  say(arc.label.lastChild, counts);
  set(arc.label, { transform: `translate(${label[0]} ${label[1]})` });
}

// A dot runs once along the arc just taken, because direction is what the eye should learn here.
function runAlong(drawing, d) {
  if (!d || reducedMotion()) return;
  const dot = svg("circle", { class: "runner", r: 4.5 });
  const motion = svg("animateMotion", { dur: "0.9s", path: d, fill: "freeze", calcMode: "spline", keyTimes: "0;1", keySplines: "0.4 0 0.2 1" });
  dot.append(motion);
  motion.addEventListener("endEvent", () => dot.remove());
  drawing.append(dot);
  motion.beginElement();
}

function arrowhead(id, name) {
  return svg(
    "marker",
    { id, viewBox: "0 0 10 10", refX: 8, refY: 5, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
    svg("path", { class: name, d: "M0 0.8L9 5L0 9.2Z" }),
  );
}

function drawArc(drawing, name, { d, hand }) {
  const path = svg("path", { d, fill: "none" });
  const label = svg(
    "text",
    { class: "arc-label", "text-anchor": "middle" },
    svg("tspan", { x: 0, class: "arc-reason" }),
    svg("tspan", { x: 0, dy: 15, class: "arc-counts" }),
  );
  const group = svg("g", { class: `arc ${hand ? "arc-hand" : ""}`, "data-arc": name }, path, label);
  drawing.append(group);
  return { group, path, label };
}

function drawNode(drawing, state, x, y) {
  let ticks = "";
  for (let index = 0; index < 60; index += 1) {
    const angle = (index / 60) * 2 * Math.PI;
    const inner = R - (index % 5 === 0 ? 6 : 3.5);
    ticks += `M${(Math.sin(angle) * inner).toFixed(2)} ${(-Math.cos(angle) * inner).toFixed(2)}L${(Math.sin(angle) * R).toFixed(2)} ${(-Math.cos(angle) * R).toFixed(2)}`;
  }
  const ring = svg("circle", { class: "ring", r: R + 4, pathLength: 100, "stroke-dasharray": "0 100", transform: "rotate(-90)" });
  const note = svg("text", { class: "node-note", y: 32, "text-anchor": "middle" });
  const group = svg(
    "g",
    { class: `node state-${state}`, transform: `translate(${x} ${y})`, "data-state": state },
    svg("circle", { class: "face", r: R }),
    svg("path", { class: "dial", d: ticks }),
    ring,
    svg("g", { transform: "translate(0 -10)" }, contact(state)),
    svg("text", { class: "node-word", y: 16, "text-anchor": "middle", text: STATE_WORDS[state] }),
    note,
  );
  drawing.append(group);
  return { group, ring, note };
}
