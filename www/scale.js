// The geometry of the trip curve: the plane of calls and failures, its scales, and where the policy's line runs in it.

import { shareValue } from "./words.js";

/** Where a policy opens, for drawing only; null where it does not say. */
export function tripLines(policy) {
  const minimum = policy.minimumCalls ?? null;
  const share = (value) => (value === null || value === undefined || minimum === null ? null : { share: shareValue(value), minimum });
  const count = policy.failures ?? null;
  const slowShare = policy.slowMs === null || policy.slowMs === undefined ? null : share(policy.slowRate ?? 1);
  return { count, failures: count === null ? share(policy.failureRate) : null, slow: slowShare };
}

const STEPS = [10, 12, 16, 20, 24, 30, 40, 50, 60, 80];

/** The end of both axes: room for the line's corner and for the calls counted so far. */
export function axisEnd(lines, mostCalls) {
  const corner = Math.max(lines.count ?? 0, lines.failures?.minimum ?? 0, lines.slow?.minimum ?? 0, 4);
  const wanted = Math.max(corner * 2.4, mostCalls * 1.12);
  for (let scale = 1; ; scale *= 10) {
    const step = STEPS.find((value) => value * scale >= wanted);
    if (step) return step * scale;
  }
}

/** Distance between labelled ticks: 1, 2 or 5 times a power of ten, at most `most` of them. */
export function tickStep(end, most) {
  for (let scale = 1; ; scale *= 10) {
    const step = [1, 2, 5].find((value) => end / (value * scale) <= most);
    if (step) return step * scale;
  }
}

/** Maps counts to pixels inside a frame. */
export function plane({ left, top, width, height }, end) {
  const x = (calls) => left + (Math.min(calls, end) / end) * width;
  const y = (failures) => top + height - (Math.min(failures, end) / end) * height;
  return { x, y, end, left, top, width, height, right: left + width, bottom: top + height };
}

/** The line itself as a path, and the area behind it in which the circuit opens. */
export function boundary(line, { x, y, end }) {
  if (line.count !== undefined) {
    const path = `M${x(line.count)} ${y(line.count)}L${x(end)} ${y(line.count)}`;
    return { path, area: `${path}L${x(end)} ${y(end)}Z`, corner: [line.count, line.count] };
  }
  const { share, minimum } = line;
  const path = `M${x(minimum)} ${y(minimum)}L${x(minimum)} ${y(minimum * share)}L${x(end)} ${y(end * share)}`;
  return { path, area: `${path}L${x(end)} ${y(end)}Z`, corner: [minimum, minimum * share] };
}
