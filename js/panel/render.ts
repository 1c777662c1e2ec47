// The circuits as HTML, for pages without scripts, and for what is there before they have run.

import { explanation } from "../explain.js";
import { isFeed, type PanelFeed, panelFeed, type PanelSource } from "./feed.js";
import { stateWords } from "./words.js";

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => ENTITIES[character]!);

/** A table of what holds now: as a page's part, or inside `<tripcurve-panel>`, which shows itself instead where scripts run. */
export function renderCircuits(source: PanelSource | PanelFeed): string {
  const feed = isFeed(source) ? source : panelFeed(source);
  const { circuits, now } = feed.news();
  if (feed !== source) feed.stop();
  const rows = circuits.map((circuit) => {
    const cells = [stateWords(circuit), circuit.id, explanation(circuit, circuit.policy, now)];
    return `<tr data-state="${circuit.state}">${cells.map((cell) => `<td>${escaped(cell)}</td>`).join("")}</tr>`;
  });
  return `<table><thead><tr><th scope="col">State</th><th scope="col">Circuit</th><th scope="col">Why</th></tr></thead><tbody>${rows.join("")}</tbody></table>`;
}
