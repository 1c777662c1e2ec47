// The page: it connects a guarded fetch to the service, listens to its circuit, and shows either what holds now or what held at a past moment.

import { connect } from "./circuit.js";
import { createCurve, legend } from "./curve.js";
import { createDiagram } from "./diagram.js";
import { find, reducedMotion, say } from "./dom.js";
import { createHistory } from "./history.js";
import { createPanels } from "./panels.js";
import { createPolicyForm } from "./policy-form.js";
import { complete, loadCore, readAt } from "./replay.js";
import { createScrubber } from "./scrubber.js";
import { createServicePanel, readService } from "./service-panel.js";
import { createTheme } from "./theme.js";
import { createTimeline } from "./timeline.js";
import { createTraffic } from "./traffic.js";

createTheme(find(".theme"));
const notice = find("#notice");
const complain = (text) => {
  say(notice, text);
  notice.hidden = text === "";
};

async function start() {
  const service = await readService();
  say(find("#service-url"), new URL(service.url).host);
  const history = createHistory();
  const loadedAt = Date.now();
  let connection = null;
  let settings = null;
  let past = null; // the moment shown and the timeline's end while stepping back; null: now
  let coreReady = false;
  let keptOver = null; // what a verdict was kept over that this tab made itself and now reads from storage
  let drawing = 0;

  function remember(verdict = null) {
    const at = Date.now();
    const { circuit } = connection;
    const inspection = circuit.inspect();
    history.phase({ at, inspection });
    history.sample({ at, inspection, verdict, text: circuit.snapshot() });
  }

  const listeners = {
    transition(detail) {
      history.transition({ ...detail, kept: detail.reason === "adopted" ? keptOver : null });
      remember();
      refresh();
    },
    outcome(detail) {
      traffic.outcome(detail);
      remember(detail.stale ? null : detail.verdict);
      refresh();
    },
    rejected: () => remember(),
    diagnostic: ({ message }) => complain(message),
  };

  const traffic = createTraffic({ connection: () => connection, history, slowMs: () => settings.policy.slowMs ?? null, changed: refresh });
  if (history.load(loadedAt)) {
    keptOver = "the reload";
    history.mark(loadedAt, "reloaded");
  }

  const timelineRoot = find("#timeline");
  const timeline = createTimeline(timelineRoot, history, (at) => seek(at));
  const scrubber = createScrubber(timelineRoot, history, { seek, live });
  const views = [
    createCurve(find("#curve")),
    createDiagram(find("#diagram")),
    createPanels(history, () => connection),
  ];
  find("#curve .legend-host").replaceWith(legend());

  function seek(at) {
    if (!coreReady || history.samples.length === 0) return;
    past = { at: Math.max(at, history.samples[0].at), end: past?.end ?? Date.now() };
    const first = past.end - timeline.spanMs;
    if (past.at < first) past.end = past.at + timeline.spanMs / 2;
    frame();
  }

  function live() {
    past = null;
    frame();
  }

  function viewNow(now) {
    const { circuit } = connection;
    return { live: true, at: now, end: now, inspection: circuit.inspect(), policy: complete(settings.policy) };
  }

  /** Many outcomes between two pictures make one. */
  function refresh() {
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      frame();
    });
  }

  function frame() {
    if (!connection || document.hidden) return;
    const now = Date.now();
    const base = past ? { live: false, at: past.at, end: past.end, ...readAt(history, past.at) } : viewNow(now);
    if (base.live) {
      history.phase(base);
      const last = history.samples.at(-1);
      if (last && (last.calls !== base.inspection.counts.calls || last.failures !== base.inspection.counts.failures)) remember();
    }
    const transition = history.transitionAt(base.at);
    const view = {
      ...base,
      now,
      spanMs: timeline.spanMs,
      transition,
      ...history.trailAt(base.at, base.inspection.state === "closed"),
    };
    for (const each of views) each.render(view);
    timeline.render(view);
    scrubber.render(view, coreReady);
    document.body.classList.toggle("is-past", !view.live);
    return view;
  }

  createPolicyForm(find("#policy"), (next, fromElsewhere) => {
    const fresh = connect(service.url, next, listeners, history.transitions);
    connection?.close();
    if (settings) {
      keptOver = "the change of policy";
      history.mark(Date.now(), fromElsewhere ? "policy (other tab)" : "policy");
    }
    connection = fresh;
    settings = next;
    history.policy(next.policy);
    remember();
    keptOver = null;
    frame();
  });

  createServicePanel(find("#service"), complain).show(service);
  wireTraffic(traffic);
  const span = find("#span");
  if (innerWidth < 600) span.value = "30000";
  timeline.setSpan(Number(span.value));
  span.addEventListener("change", () => timeline.setSpan(Number(span.value)));
  addEventListener("pagehide", history.save);
  addEventListener("visibilitychange", () => frame());

  setInterval(frame, reducedMotion() ? 1000 : 100);
  setInterval(() => timeline.describe(frame() ?? viewNow(Date.now())), 3000);
  document.body.classList.remove("is-starting");
  frame();
  loadCore().then(
    () => {
      coreReady = true;
      frame();
    },
    () => say(find("#scrub-note"), "Stepping back is not available: the core could not be loaded."),
  );
}

function wireTraffic(traffic) {
  find("#send").addEventListener("click", () => void traffic.send());
  const rate = find("#rate");
  const shown = find("#rate-value");
  const steps = [0, 0.5, 1, 2, 5, 10];
  const apply = () => {
    const perSecond = steps[Number(rate.value)];
    const words = perSecond === 0 ? "off" : `${perSecond} per second`;
    say(shown, words);
    rate.setAttribute("aria-valuetext", words);
    traffic.setRate(perSecond);
  };
  rate.addEventListener("input", apply);
  apply();
}

start().catch((error) => complain(`The page could not start: ${error.message}`));
