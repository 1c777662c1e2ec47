// The timeline: a lane per kind of call, the strip of states under them, and the time axis with its cursor.
// Calls are drawn once and scrolled; strip, ticks and marks are few and drawn afresh.

import { find, onWidth, set, svg } from "./dom.js";
import { callMark } from "./glyph.js";
import { REFUSAL_WORDS, STATE_WORDS, clockTime } from "./words.js";

const LANES = ["in flight", "success", "slow", "failure", "refused", "probe"];
const LANE = 22;
const TOP = 20;
const STRIP = 28;
const GUTTER = 74;
const EDGE = 10;
const HEIGHT = TOP + LANES.length * LANE + STRIP + 34;
const STRIP_TOP = TOP + LANES.length * LANE + 6;

export function createTimeline(root, history, seek) {
  const host = find(".timeline-host", root);
  const drawing = svg("svg", { class: "timeline", role: "img", "aria-labelledby": "timeline-title timeline-text" });
  const summary = find("#timeline-text", root);
  host.append(drawing);
  let width = 0;
  let spanMs = 60_000;
  let last = null;
  let layers = null;
  const shown = new Map();
  onWidth(host, (value) => {
    width = value;
    layers = null;
    if (last) render(last);
  });
  drawing.addEventListener("click", (event) => {
    const x = event.clientX - drawing.getBoundingClientRect().left;
    if (last && x >= GUTTER && x <= width - EDGE) seek(last.end - spanMs + ((x - GUTTER) / (width - EDGE - GUTTER)) * spanMs);
  });

  function render(view) {
    last = view;
    if (width === 0) return;
    if (!layers) {
      layers = drawBase(drawing, width, view.end);
      shown.clear();
    }
    const scale = (width - GUTTER - EDGE) / spanMs;
    const start = view.end - spanMs;
    const x = (at) => GUTTER + (at - start) * scale;
    layers.scroll.setAttribute("transform", `translate(${(GUTTER + (layers.base - start) * scale).toFixed(2)} 0)`);
    drawCalls(layers, shown, history.calls, { start, end: view.end, scale });
    drawStrip(layers, history.phases, x, view.end);
    drawTicks(layers, history.marks, x, { start, end: view.end, spanMs, width });
    layers.cursor.classList.toggle("is-away", view.live);
    layers.cursor.setAttribute("transform", `translate(${x(view.at).toFixed(2)} 0)`);
  }

  return {
    render,
    /** Counted now and then only: a screen reader asks for it, nobody wants it ten times a second. */
    describe(view) {
      const counts = {};
      for (const call of history.calls)
        if (call.start >= view.end - spanMs && call.start <= view.end) counts[call.kind ?? "in flight"] = (counts[call.kind ?? "in flight"] ?? 0) + 1;
      const words = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
      summary.textContent = `The last ${spanMs / 1000} seconds: ${words.join(", ") || "no calls"}.`;
    },
    setSpan(ms) {
      spanMs = ms;
      layers = null;
      if (last) render(last);
    },
    get spanMs() {
      return spanMs;
    },
  };
}

function drawBase(drawing, width, base) {
  drawing.replaceChildren();
  set(drawing, { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT });
  const right = width - EDGE;
  const clip = svg("clipPath", { id: "timeline-clip" }, svg("rect", { x: GUTTER, y: 0, width: right - GUTTER, height: HEIGHT }));
  const lanes = svg("g", { class: "lanes" });
  LANES.forEach((word, index) => {
    const y = laneY(index);
    lanes.append(svg("text", { x: GUTTER - 12, y: y + 4, "text-anchor": "end", text: word }), svg("line", { x1: GUTTER, x2: right, y1: y, y2: y }));
  });
  lanes.append(svg("text", { class: "strip-word", x: GUTTER - 12, y: STRIP_TOP + STRIP / 2 + 4, "text-anchor": "end", text: "state" }));
  const hatch = svg(
    "pattern",
    { id: "strip-open", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("path", { class: "hatch hatch-open", d: "M0 0V6" }),
  );
  const dots = svg(
    "pattern",
    { id: "strip-half", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
    svg("circle", { class: "dots", cx: 3, cy: 3, r: 1.1 }),
  );
  const scroll = svg("g", { class: "calls" });
  const strip = svg("g", { class: "strip" });
  const ticks = svg("g", { class: "ticks" });
  const cursor = svg("g", { class: "cursor" }, svg("line", { y1: 6, y2: HEIGHT - 24 }), svg("path", { d: "M-6 0h12l-6 8z" }));
  const clipped = svg("g", { "clip-path": "url(#timeline-clip)" }, ticks, strip, scroll);
  drawing.append(
    svg("defs", {}, clip, hatch, dots),
    lanes,
    clipped,
    svg("path", { class: "frame", d: `M${GUTTER} ${TOP - 4}V${STRIP_TOP + STRIP}H${right}V${TOP - 4}` }),
    cursor,
  );
  return { scroll, strip, ticks, cursor, base };
}

const laneY = (index) => TOP + index * LANE + LANE / 2;

function laneOf(call) {
  if (call.kind === null) return 0;
  if (call.probe) return 5;
  return Math.max(0, LANES.indexOf(call.kind === "uncounted" ? "in flight" : call.kind));
}

function drawCalls({ scroll, base }, shown, calls, { start, end, scale }) {
  const seen = new Set();
  for (let index = calls.length - 1; index >= 0; index -= 1) {
    const call = calls[index];
    if (call.start < start - 60_000) break;
    if (call.start > end || (call.end ?? end) < start) continue;
    seen.add(call);
    const known = shown.get(call);
    if (known && known.kind === call.kind) {
      if (call.kind === null) known.line.setAttribute("x2", ((end - base) * scale).toFixed(2));
      continue;
    }
    known?.group.remove();
    shown.set(call, drawCall(scroll, call, base, scale, end));
  }
  for (const [call, { group }] of shown) {
    if (seen.has(call)) continue;
    group.remove();
    shown.delete(call);
  }
}

function drawCall(scroll, call, base, scale, end) {
  const y = laneY(laneOf(call));
  const from = ((call.start - base) * scale).toFixed(2);
  const to = (((call.end ?? end) - base) * scale).toFixed(2);
  const line = svg("line", { class: `span span-${call.kind ?? "flying"}`, x1: from, x2: to, y1: y, y2: y });
  const group = svg("g", { class: "call", "data-kind": call.kind ?? "flying" }, svg("title", { text: callWords(call) }), line);
  if (call.kind === null) group.append(svg("circle", { class: "start", cx: from, cy: y, r: 2 }));
  else {
    const mark = callMark(call.kind, call.probe);
    mark.setAttribute("transform", `translate(${to} ${y})`);
    group.append(mark);
  }
  scroll.append(group);
  return { group, line, kind: call.kind };
}

function callWords(call) {
  if (call.kind === null) return `Call ${call.id}: in flight since ${clockTime(call.start)}`;
  const detail = REFUSAL_WORDS[call.detail] ?? call.detail;
  const took = call.kind === "refused" ? "" : `, ${call.end - call.start} ms`;
  return `Call ${call.id}: ${call.kind}${call.probe ? " (probe)" : ""}${detail ? `, ${detail}` : ""}${took}, ${clockTime(call.end)}`;
}

function drawStrip({ strip }, phases, x, end) {
  strip.replaceChildren();
  phases.forEach((phase, index) => {
    const until = phases[index + 1]?.at ?? end;
    const from = Math.max(x(phase.at), GUTTER - 2);
    const to = x(Math.min(until, end));
    if (to < GUTTER || phase.at > end) return;
    const size = Math.max(1, to - from);
    const group = svg(
      "g",
      { class: `phase state-${phase.state}` },
      svg("title", { text: `${STATE_WORDS[phase.state]} since ${clockTime(phase.at)}` }),
    );
    for (const name of ["base", "texture"]) group.append(svg("rect", { class: name, x: from, y: STRIP_TOP, width: size, height: STRIP }));
    group.append(svg("line", { x1: from, x2: from, y1: STRIP_TOP, y2: STRIP_TOP + STRIP }));
    const word = `${STATE_WORDS[phase.state]}${phase.held ? ", held" : ""}`;
    if (size > word.length * 8 + 12) group.append(svg("text", { x: from + 8, y: STRIP_TOP + STRIP / 2 + 4, text: word }));
    strip.append(group);
  });
}

function drawTicks({ ticks }, marks, x, { start, end, spanMs, width }) {
  ticks.replaceChildren();
  const room = width < 520 ? 5 : 8;
  const step = [1, 2, 5, 10, 15, 30, 60, 120].map((seconds) => seconds * 1000).find((ms) => spanMs / ms <= room) ?? 300_000;
  const bottom = STRIP_TOP + STRIP;
  const fits = (position) => position > GUTTER + 30 && position < width - EDGE - 30;
  const offset = new Date(end).getTimezoneOffset() * 60_000;
  for (let at = Math.ceil((start - offset) / step) * step + offset; at <= end; at += step) {
    ticks.append(
      svg("path", { class: "tick", d: `M${x(at).toFixed(2)} ${TOP - 4}V${bottom + 6}` }),
      svg("text", { x: x(at), y: bottom + 20, "text-anchor": "middle", text: fits(x(at)) ? clockTime(at, false) : "" }),
    );
  }
  let free = -Infinity;
  for (const mark of marks) {
    if (mark.at < start || mark.at > end) continue;
    const position = x(mark.at);
    ticks.append(
      svg("path", { class: "event", d: `M${position.toFixed(2)} 8V${bottom}` }, svg("title", { text: `${mark.word}, ${clockTime(mark.at)}` })),
    );
    if (position - mark.word.length * 7 < free) continue;
    free = position + 4;
    ticks.append(svg("text", { class: "event-word", x: position - 5, y: 13, "text-anchor": "end", text: mark.word }));
  }
}
