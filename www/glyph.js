// The drawn signs. A state is an electrical contact: lever down, lever up, lever half up. A call is a shape of its own.

import { svg } from "./dom.js";

const LEVERS = { closed: [9, 0], half_open: [8, -8], open: [5, -15] };

/** The contact of a state, 44 wide, its centre at 0, 0. */
export function contact(state) {
  const [x, y] = LEVERS[state];
  return svg(
    "g",
    { class: `contact contact-${state}` },
    svg("path", { d: "M-22 0H-9M9 0H22" }),
    svg("path", { class: "lever", d: `M-9 0L${x} ${y}` }),
    svg("circle", { cx: -9, cy: 0, r: 2.6 }),
    svg("circle", { cx: 9, cy: 0, r: 2.6 }),
  );
}

const MARKS = {
  success: () => svg("circle", { r: 3.4 }),
  failure: () => svg("path", { d: "M-3.6 -3.6L3.6 3.6M3.6 -3.6L-3.6 3.6" }),
  slow: () => svg("path", { d: "M0 -4.2L4.4 3.6H-4.4Z" }),
  refused: () => svg("path", { d: "M0 -4.6V4.6" }),
  uncounted: () => svg("circle", { class: "hollow", r: 3 }),
};

/** The sign of a call, its centre at 0, 0; a probe has a diamond around it. */
export function callMark(kind, probe = false) {
  const mark = svg("g", { class: `mark mark-${kind}` }, MARKS[kind]());
  if (probe) mark.append(svg("path", { class: "diamond", d: "M0 -8.2L8.2 0L0 8.2L-8.2 0Z" }));
  return mark;
}
