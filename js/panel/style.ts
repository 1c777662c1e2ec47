// How it looks. Colours follow the page's `color-scheme`; each can be set by a property of its own.

export const STYLE = `
:host {
  --_ground: var(--tripcurve-ground, light-dark(#fff, #14181b));
  --_ink: var(--tripcurve-ink, light-dark(#1c2126, #e4e7e9));
  --_soft: var(--tripcurve-soft, light-dark(#59626b, #9aa4ad));
  --_rule: var(--tripcurve-rule, light-dark(#dfe2e1, #2b3238));
  --_edge: light-dark(#868e94, #66717a);
  --_closed: var(--tripcurve-closed, light-dark(#0b5f9e, #63aef0));
  --_open: var(--tripcurve-open, light-dark(#b8430c, #f08a4e));
  --_half_open: var(--tripcurve-half-open, light-dark(#8a6500, #e2b646));
  --_focus: var(--tripcurve-focus, light-dark(#0b5f9e, #8cc8ff));
  --_mono: var(--tripcurve-mono, ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace);
  display: block; container-type: inline-size; box-sizing: border-box;
  padding: var(--tripcurve-padding, 14px 16px); background: var(--_ground); color: var(--_ink);
  font: 14px/1.4 var(--tripcurve-font, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif);
  font-variant-numeric: tabular-nums; text-align: start;
}
@supports not (color: light-dark(#000, #fff)) {
  :host {
    --_ground: var(--tripcurve-ground, #fff); --_ink: var(--tripcurve-ink, #1c2126); --_soft: var(--tripcurve-soft, #59626b);
    --_rule: var(--tripcurve-rule, #dfe2e1); --_edge: #868e94; --_closed: var(--tripcurve-closed, #0b5f9e);
    --_open: var(--tripcurve-open, #b8430c); --_half_open: var(--tripcurve-half-open, #8a6500); --_focus: var(--tripcurve-focus, #0b5f9e);
  }
}
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; }
p, ul { margin: 0; padding: 0; list-style: none; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
:focus-visible { outline: 2px solid var(--_focus); outline-offset: 2px; }
button { font: inherit; font-size: 13px; color: inherit; padding: 3px 10px; min-height: 26px; border: 1px solid var(--_edge); border-radius: 3px; background: none; cursor: pointer; white-space: nowrap; }
button:hover { border-color: var(--_ink); }
button:active { background: var(--_rule); }

section { position: relative; }
.top { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 6px 16px; }
.summary { font-weight: 600; }
.notice { color: var(--_open); padding-top: 4px; }
.copied { color: var(--_soft); font-size: 13px; }
.empty { color: var(--_soft); padding: 8px 0; }
textarea { display: block; width: 100%; height: 9em; margin-top: 8px; font: 12px/1.4 var(--_mono); color: inherit; background: none; border: 1px solid var(--_edge); }

.heads, .row { display: grid; grid-template-columns: 7.8rem minmax(0, 1fr) 7rem 9.5rem 5.2rem; gap: 0 1.25rem; }
.controls :is(.heads, .row) { grid-template-columns: 7.8rem minmax(0, 1fr) 7rem 9.5rem 5.2rem 4.4rem; }
.heads { color: var(--_soft); font-size: 12px; padding: 12px 0 5px; }
.heads :nth-child(5) { text-align: end; }
.row { align-items: start; padding: 9px 0; border-top: 1px solid var(--_rule); content-visibility: auto; contain-intrinsic-size: auto 58px; }
.row[data-state="closed"] { --_state: var(--_closed); }
.row[data-state="open"] { --_state: var(--_open); }
.row[data-state="half_open"] { --_state: var(--_half_open); }
.state { display: flex; align-items: center; gap: 9px; }
.sign { flex: none; width: 28px; height: 16px; margin-top: -6px; overflow: visible; fill: none; stroke: var(--_state); stroke-width: 1.6; stroke-linecap: round; }
.sign circle { fill: var(--_ground); }
.lever { stroke-width: 2.4; }
.row[data-state="half_open"] .lever { stroke-dasharray: 2.6 3.4; }
.word { font-weight: 600; }
.row:not([data-state="closed"]) .word { color: var(--_state); }
.key { font-family: var(--_mono); font-size: 13px; overflow-wrap: anywhere; }
.reason { color: var(--_soft); font-size: 13px; }
.row:not([data-state="closed"]) .reason { color: var(--_ink); }
.gauge { position: relative; height: 6px; margin-top: 7px; background: var(--_rule); }
.bar { position: absolute; inset-block: 0; inset-inline-start: 0; inline-size: 0; background: var(--_state); transition: inline-size 200ms; }
.is-early .bar { background: repeating-linear-gradient(-45deg, var(--_state) 0 1.5px, transparent 1.5px 4px); }
.tick { position: absolute; inset-block: -4px; inline-size: 2px; margin-inline-start: -1px; background: var(--_ink); }
.is-empty { visibility: hidden; }
.counted, .note { color: var(--_soft); font-size: 12px; }
.counted { margin-top: 3px; }
.strip { display: block; width: 100%; height: 16px; margin-top: 2px; }
.trace-closed { fill: var(--_closed); }
.trace-open { fill: var(--_open); }
.trace-half_open { fill: var(--_half_open); }
.next { text-align: end; white-space: nowrap; }
.left { font-weight: 600; }
.row > .more { justify-self: end; padding-inline: 7px; border-color: var(--_rule); }
.row > .more:hover { border-color: var(--_ink); }
.verbs { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: 6px 14px; padding-top: 10px; align-items: center; }
.group { display: flex; flex-wrap: wrap; align-items: center; gap: 5px; }
.group > span { color: var(--_soft); font-size: 12px; padding-inline-end: 2px; }
.log { border-top: 1px solid var(--_rule); padding-top: 8px; }
summary { font-weight: 600; cursor: pointer; width: fit-content; padding: 2px 0; }
.count { color: var(--_soft); font-weight: 400; }
.scroll { max-height: var(--tripcurve-log-height, 13rem); overflow: auto; margin-top: 2px; }
table { width: 100%; border-collapse: collapse; font-size: 13px; }
th { position: sticky; top: 0; background: var(--_ground); color: var(--_soft); font-size: 12px; font-weight: 400; text-align: start; padding: 4px 16px 4px 0; white-space: nowrap; }
td { padding: 4px 16px 4px 0; border-top: 1px solid var(--_rule); vertical-align: baseline; }
td:first-child, td:nth-child(3) { white-space: nowrap; }
:is(th, td):last-child { text-align: end; padding-inline-end: 2px; white-space: nowrap; }
.from { color: var(--_soft); }
tr[data-state="open"] .word { color: var(--_open); }
tr[data-state="half_open"] .word { color: var(--_half_open); }
tr[data-state="closed"] .word { color: var(--_closed); }

@container (max-width: 850px) {
  .heads { display: none; }
  .top { padding-bottom: 10px; }
  :is(.row, .controls .row) { grid-template: "state next more" "name name name" "window recent recent" / minmax(0, 1fr) minmax(0, 1fr) auto; gap: 4px 1rem; }
  .state { grid-area: state; } .next { grid-area: next; display: flex; gap: 8px; justify-content: end; align-items: baseline; } .name { grid-area: name; }
  .window { grid-area: window; } .recent { grid-area: recent; } .row > .more { grid-area: more; }
  .state, .next, .row > .more { align-self: center; }
  .row { contain-intrinsic-size: auto 110px; }
  .strip { margin-top: 4px; }
  .row:has(.is-empty) .window { display: none; }
  .row:has(.is-empty) .recent { grid-column: 1 / -1; }
}
@container (max-width: 560px) {
  th:nth-child(4), td:nth-child(4), .from, .copy > span { display: none; }
  td.key { width: 100%; font-size: 12px; }
  th, td { padding-inline-end: 10px; }
  button { min-height: 34px; }
}
@media (prefers-reduced-motion: reduce) { .bar { transition: none; } }
@media (forced-colors: active) {
  .bar, .tick, .trace-open, .trace-half_open, .trace-closed { forced-color-adjust: none; }
}
`;
