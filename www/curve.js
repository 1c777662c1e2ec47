// The trip curve: the window's counts as a point in the plane of calls and failures, and the line at which the circuit opens.
// The chart (frame, scales, line) is drawn when the policy or the size changes; the needle moves on it.

import { el, find, onWidth, say, set, svg } from "./dom.js";
import { callMark } from "./glyph.js";
import { axisEnd, boundary, plane, tickStep, tripLines } from "./scale.js";
import { countWords, percent, plural, reasonWords } from "./words.js";

export function createCurve(root) {
  const host = find(".curve-chart", root);
  const reading = { share: find(".reading-share", root), counts: find(".reading-counts", root), limit: find(".reading-limit", root) };
  const chart = svg("svg", { class: "curve", role: "img", "aria-labelledby": "curve-title curve-text" });
  const summary = find("#curve-text");
  host.append(chart);
  let width = 0;
  let drawn = "";
  let trailDrawn = "";
  let parts = null;
  let last = null;
  onWidth(host, (value) => {
    width = value;
    if (last) render(last);
  });

  function render(view) {
    last = view;
    if (width === 0) return;
    const lines = tripLines(view.policy);
    const end = axisEnd(lines, Math.max(view.inspection.counts.calls, ...view.trail.map((sample) => sample.calls), 0));
    const key = JSON.stringify([width, end, lines]);
    if (key !== drawn) {
      drawn = key;
      trailDrawn = "";
      parts = drawChart(chart, width, end, lines);
    }
    const trailKey = `${view.trail.length}/${view.trail[0]?.at}/${view.trail.at(-1)?.at}/${view.opened?.at}`;
    if (trailKey !== trailDrawn) {
      trailDrawn = trailKey;
      drawTrail(parts, view);
    }
    moveNeedle(parts, view);
    writeReading(view, lines);
  }

  function writeReading(view, lines) {
    const { counts, state, held } = view.inspection;
    const shown = state === "closed" ? counts : (view.opened?.counts ?? counts);
    const opens = limitWords(lines);
    say(reading.share, shown.calls > 0 ? percent(shown.failures / shown.calls) : "–");
    say(reading.counts, state === "closed" || view.opened ? shareWords(shown) : "Nothing is counted while open");
    say(reading.limit, state === "closed" ? (held === "closed" ? "held closed: never opens" : opens) : openedWords(view));
    root.classList.toggle("is-parked", state !== "closed");
    say(summary, `${shareWords(counts)}; ${opens}.`);
  }
  return { render };
}

const shareWords = ({ calls, failures }) => (calls === 0 ? "No calls counted yet" : `${failures} of ${plural(calls, "call")} failed`);

function openedWords({ opened, inspection }) {
  if (inspection.held) return "held open by hand";
  return opened ? "opened here; the window is empty until it closes" : "the window is empty until it closes";
}

function limitWords({ count, failures, slow }) {
  const words = [];
  if (count !== null) words.push(`opens at ${plural(count, "failure")}`);
  if (failures) words.push(`opens at ${percent(failures.share)}, from ${plural(failures.minimum, "call")} on`);
  if (slow) words.push(`${words.length ? "or" : "opens"} at ${percent(slow.share)} slow`);
  return words.join(", ");
}

function drawChart(chart, width, end, lines) {
  const narrow = width < 460;
  const height = Math.round(Math.min(470, Math.max(280, width * 0.82)));
  const frame = { left: 54, top: 12, width: width - 54 - (narrow ? 54 : 76), height: height - 12 - 50 };
  const at = plane(frame, end);
  chart.replaceChildren();
  set(chart, { viewBox: `0 0 ${width} ${height}`, width, height });

  const hatch = (id, name, turn) =>
    svg(
      "pattern",
      { id, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` },
      svg("path", { class: `hatch ${name}`, d: "M0 0V7" }),
    );
  chart.append(svg("defs", {}, hatch("hatch-open", "hatch-open", 45), hatch("hatch-slow", "hatch-slow", -45)));

  const scale = svg("g", { class: "scale" });
  chart.append(scale);
  drawScales(scale, at, narrow, lines.failures?.share ?? null);

  const zone = svg("g", { class: "zone" });
  chart.append(zone);
  const rule = lines.count === null ? lines.failures : { count: lines.count };
  if (lines.slow) zone.append(svg("path", { class: "line line-slow", d: boundary(lines.slow, at).path }));
  if (rule) drawZone(zone, rule, at, narrow);
  if (lines.slow) {
    const label = svg("text", {
      class: "zone-word word-slow",
      x: at.x(end) - 6,
      y: at.y(end * lines.slow.share) + 14,
      "text-anchor": "end",
      text: "slow calls",
    });
    zone.append(label);
  }

  const trail = svg("g", { class: "trail" });
  const needle = svg("g", { class: "needle" });
  chart.append(trail, needle);
  return {
    at,
    trail,
    needle: drawNeedle(needle, at),
    slow: lines.slow !== null,
    labels: [...chart.querySelectorAll(".on-calls, .on-failures, .on-share")],
  };
}

function drawScales(scale, at, narrow, limit) {
  const { x, y, end, left, right, top, bottom } = at;
  const step = tickStep(end, narrow ? 6 : 8);
  const minor = tickStep(end, narrow ? 30 : 50);
  let ticks = "";
  for (let value = 0; value <= end; value += minor) {
    const size = value % step === 0 ? 9 : 5;
    ticks += `M${x(value)} ${bottom}v${-size}M${x(value)} ${top}v${size}M${left} ${y(value)}h${size}`;
    if (value % step !== 0) continue;
    scale.append(svg("text", { class: "on-calls", x: x(value), y: bottom + 24, "text-anchor": "middle", text: value }));
    scale.append(svg("text", { class: "on-failures", x: left - 12, y: y(value) + 4, "text-anchor": "end", text: value }));
  }
  let grid = "";
  for (let value = step; value < end; value += step) grid += `M${x(value)} ${bottom}V${y(value)}M${x(value)} ${y(value)}H${right}`;
  for (let part = 0; part <= 20; part += 1) ticks += `M${right} ${y((part / 20) * end)}h${part % 5 === 0 ? -9 : -5}`;
  for (const part of [0, 25, 50, 75, 100]) {
    if (limit !== null && Math.abs(y(limit * end) - y((part / 100) * end)) < 14) continue;
    scale.append(svg("text", { class: "on-share", x: right + 10, y: y((part / 100) * end) + 4, text: part === 100 ? "100 %" : part }));
  }
  scale.prepend(
    svg("path", { class: "grid", d: grid }),
    svg("path", { class: "diagonal", d: `M${x(0)} ${y(0)}L${x(end)} ${y(end)}` }),
    svg("path", { class: "tick", d: ticks }),
    svg("rect", { class: "frame", x: left, y: top, width: right - left, height: bottom - top }),
  );
  scale.append(
    svg("text", { class: "axis", x: (left + right) / 2, y: bottom + 46, "text-anchor": "middle", text: "calls in the window" }),
    svg("text", { class: "axis", transform: `translate(9 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle", text: "failures" }),
  );
  if (!narrow)
    scale.append(
      svg("text", {
        class: "axis",
        transform: `translate(${right + 66} ${(top + bottom) / 2}) rotate(90)`,
        "text-anchor": "middle",
        text: "share failed",
      }),
    );
}

function drawZone(zone, rule, at, narrow) {
  const { path, area, corner } = boundary(rule, at);
  const { x, y, end, right } = at;
  zone.append(svg("path", { class: "tint", d: area }), svg("path", { class: "area", d: area }), svg("path", { class: "line line-open", d: path }));
  zone.append(svg("circle", { class: "corner", cx: x(corner[0]), cy: y(corner[1]), r: 3 }));
  const share = rule.share ?? null;
  if (share !== null) {
    zone.append(svg("text", { class: "limit on-share", x: right + 10, y: y(end * share) + 4, text: Number((share * 100).toFixed(1)) }));
    zone.append(svg("path", { class: "judged", d: `M${x(rule.minimum)} ${y(rule.minimum * share)}V${at.bottom}` }));
    if (rule.minimum > 1) {
      const from = at.left + 12;
      if (x(rule.minimum) - from > 66)
        zone.append(
          svg("text", {
            class: "zone-word word-idle",
            x: (at.left + x(rule.minimum)) / 2 + 4,
            y: at.bottom - 12,
            "text-anchor": "middle",
            text: "not judged",
          }),
        );
    }
  }
  const middle = (corner[0] + end) / 2 + end * 0.1;
  const low = share === null ? corner[1] : middle * share;
  if (y(low) - y(middle) > 34) {
    zone.append(
      svg("text", {
        class: "zone-word word-open",
        x: x(middle),
        y: (y(low) + y(middle)) / 2 + 5,
        "text-anchor": "middle",
        text: narrow ? "OPENS" : "OPENS HERE",
      }),
    );
  }
  const floor = y(0) - y(low);
  if (floor > 40) zone.append(svg("text", { class: "zone-word", x: right - 14, y: at.bottom - 24, "text-anchor": "end", text: "STAYS CLOSED" }));
}

function drawNeedle(group, at) {
  const flag = (name) =>
    svg("g", { class: `flag ${name}` }, svg("rect", { x: -14, y: -9, width: 28, height: 18, rx: 2 }), svg("text", { y: 4, "text-anchor": "middle" }));
  const parts = {
    ray: svg("line", { class: "ray", x1: at.x(0), y1: at.y(0) }),
    crossX: svg("line", { class: "cross" }),
    crossY: svg("line", { class: "cross" }),
    callsFlag: flag("flag-calls"),
    failuresFlag: flag("flag-failures"),
    shareFlag: svg(
      "g",
      { class: "flag flag-share" },
      svg("path", { d: "M0 0l9 -9h42v18h-42z" }),
      svg("text", { x: 29, y: 4, "text-anchor": "middle" }),
    ),
    slow: svg("g", { class: "slow-point" }, svg("path", { d: "M0 -7L7.5 6H-7.5Z" }), svg("text", { x: 13, y: 5 })),
    point: svg("g", { class: "point" }, svg("circle", { class: "halo", r: 9 }), svg("circle", { class: "core", r: 3.5 })),
  };
  group.append(...Object.values(parts));
  return parts;
}

function moveNeedle({ at, needle, slow, labels }, view) {
  const { counts, state } = view.inspection;
  const shown = state === "closed" ? counts : (view.opened?.counts ?? null);
  needle.point.parentNode.classList.toggle("is-away", shown === null);
  for (const label of labels) label.classList.toggle("is-away", shown !== null && shown.calls > 0 && isUnderFlag(label, at, shown));
  if (shown === null) return;
  const x = at.x(shown.calls);
  const y = at.y(shown.failures);
  const share = shown.calls > 0 ? shown.failures / shown.calls : 0;
  set(needle.ray, { x2: at.right, y2: at.y(share * at.end) });
  set(needle.crossX, { x1: x, x2: x, y1: y, y2: at.bottom });
  set(needle.crossY, { x1: at.left, x2: x, y1: y, y2: y });
  place(needle.point, x, y);
  place(needle.callsFlag, x, at.bottom + 20, shown.calls);
  place(needle.failuresFlag, at.left - 24, y, shown.failures);
  place(needle.shareFlag, at.right + 1, at.y(share * at.end), percent(share).replace(" ", "\u2009"));
  needle.slow.classList.toggle("is-away", !slow || state !== "closed");
  place(needle.slow, x, at.y(shown.slow), `${shown.slow} slow`);
  for (const flag of [needle.callsFlag, needle.failuresFlag, needle.shareFlag]) flag.classList.toggle("is-away", shown.calls === 0);
}

// A number of the scale makes room for the flag that stands on it.
function isUnderFlag(label, { x, y, end }, { calls, failures }) {
  if (label.matches(".on-calls")) return Math.abs(Number(label.getAttribute("x")) - x(calls)) < 24;
  const flag = label.matches(".on-failures") ? y(failures) : y((failures / calls) * end);
  return Math.abs(Number(label.getAttribute("y")) - 4 - flag) < 15;
}

function place(element, x, y, text) {
  element.style.transform = `translate(${x}px, ${y}px)`;
  if (text !== undefined) say(element.lastChild, String(text));
}

// Older points are fainter; a step across the line ends in a ring where the circuit opened.
function drawTrail({ at, trail }, { trail: samples, opened, live }) {
  trail.replaceChildren();
  const points = samples.map((sample) => ({ ...sample }));
  if (opened) points.push({ calls: opened.counts.calls, failures: opened.counts.failures, verdict: "failure" });
  points.forEach((point, index) => {
    const age = (index + 1) / points.length;
    const before = points[index - 1];
    const opacity = (0.15 + 0.75 * age * age).toFixed(2);
    if (before)
      trail.append(svg("line", { x1: at.x(before.calls), y1: at.y(before.failures), x2: at.x(point.calls), y2: at.y(point.failures), opacity }));
    if (point.verdict !== "success" && point.verdict !== "failure") return;
    const mark = callMark(point.verdict);
    set(mark, { transform: `translate(${at.x(point.calls)} ${at.y(point.failures)}) scale(0.8)`, opacity });
    trail.append(mark);
  });
  if (!opened) return;
  const { calls, failures } = opened.counts;
  trail.append(
    svg(
      "g",
      { class: live ? "opened is-new" : "opened", transform: `translate(${at.x(calls)} ${at.y(failures)})` },
      svg("title", { text: `${reasonWords(opened)}: ${countWords(opened)}` }),
      svg("circle", { r: 13 }),
    ),
  );
}

/** The signs used on the curve. */
export function legend() {
  const item = (kind, word, probe) =>
    el("li", {}, svg("svg", { viewBox: "-10 -10 20 20", width: 20, height: 20, "aria-hidden": "true" }, callMark(kind, probe)), word);
  return el("ul", { class: "legend" }, item("success", "success"), item("failure", "failure"), item("slow", "slow"));
}
