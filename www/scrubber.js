// The scrubber: a slider under the timeline, buttons for one recorded change back or forth, and the way back to now.

import { find, say } from "./dom.js";
import { STATE_WORDS, clockTime, length } from "./words.js";

export function createScrubber(root, history, { seek, live }) {
  const slider = find("#scrub", root);
  const back = find("#scrub-back", root);
  const forth = find("#scrub-forth", root);
  const now = find("#scrub-live", root);
  const note = find("#scrub-note", root);
  let at = 0;
  let end = 0;

  const step = (direction) => {
    const next = history.step(at, direction);
    if (next !== null && next < end) seek(next);
    else if (direction > 0) live();
  };
  slider.addEventListener("input", () => (Number(slider.value) >= end ? live() : seek(Number(slider.value))));
  slider.addEventListener("keydown", (event) => {
    const moves = {
      ArrowLeft: () => step(-1),
      ArrowDown: () => step(-1),
      ArrowRight: () => step(1),
      ArrowUp: () => step(1),
      Home: () => seek(Number(slider.min)),
      End: live,
      Escape: live,
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  });
  back.addEventListener("click", () => step(-1));
  forth.addEventListener("click", () => step(1));
  now.addEventListener("click", live);

  return {
    render(view, ready) {
      ({ at, end } = view);
      slider.disabled = !ready;
      back.disabled = !ready || history.step(at, -1) === null;
      forth.disabled = view.live;
      now.disabled = view.live;
      slider.min = String(Math.round(end - view.spanMs));
      slider.max = String(Math.round(end));
      slider.value = String(Math.round(at));
      const { state, counts } = view.inspection;
      slider.setAttribute(
        "aria-valuetext",
        view.live ? "now" : `${clockTime(at)}, ${STATE_WORDS[state]}, ${counts.failures} of ${counts.calls} failed`,
      );
      say(note, view.live ? "Showing now" : `Showing ${clockTime(at)}, ${length(view.now - at, false)} ago`);
      note.classList.toggle("is-past", !view.live);
    },
  };
}
