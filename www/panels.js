// The package's own panel, twice: the circuit at the head of the page, its transitions at the end. Both show what the page shows, now or a past moment.

import { definePanel } from "tripcurve/panel";
import { find, say } from "./dom.js";
import { STATE_WORDS, clockTime, length } from "./words.js";

export function createPanels(history, connection) {
  const panels = [find("#status"), find("#transitions")];
  const frame = find("#now");
  const recorded = find(".recorded");
  definePanel();
  let shown = null;

  return {
    render(view) {
      const { inspection, at, live } = view;
      const { state, held, until } = inspection;
      const key = live ? connection().feed : at;
      if (key !== shown) {
        shown = key;
        const source = live ? key : moment(connection().circuit, view, history);
        for (const panel of panels) panel.source = source;
      }
      frame.dataset.state = state;
      recorded.hidden = live;
      if (!live) say(recorded, `recorded ${clockTime(at)}`);
      document.title = `${STATE_WORDS[state]}${state === "open" && until !== null && !held ? ` ${length(until - at, false)}` : ""} · Tripcurve`;
    },
  };
}

/** A recorded moment, as a feed in which time stands still. */
function moment({ key }, { inspection, policy, at }, { transitions }) {
  const moves = transitions.filter((move) => move.at <= at).map((move, number) => ({ ...move, id: key, number: number + 1 }));
  const news = { tripcurve: 1, cursor: `${at}.0`, after: null, now: at, controls: false, circuits: [{ ...inspection, key, id: key, policy }], moves };
  return { news: () => news, act: () => false, on: () => () => {}, stop() {} };
}
