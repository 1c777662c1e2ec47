// The panel: circuits on a screen. Importing it does nothing, also where there is no document.

export { definePanel, type TripcurvePanel } from "./element.js";
export { panelFeed, type PanelFeed, type PanelFeedOptions, type PanelSource } from "./feed.js";
export { broadcast } from "./channel.js";
export { renderCircuits } from "./render.js";
export { REASON_WORDS, STATE_WORDS } from "./words.js";
export type { PanelCircuit, PanelCommand, PanelMove, PanelNews } from "./news.js";
