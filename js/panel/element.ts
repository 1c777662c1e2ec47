// <tripcurve-panel>: circuits as they are, for whoever has to know. It asks for news once a second, and at once when something has moved, as long
// as it is in a visible document; nothing of it runs otherwise.

import { channelLine, feedLine, type Line, serverLine } from "./channel.js";
import { plural } from "../explain.js";
import { el, say } from "./dom.js";
import { isFeed, type PanelFeed, panelFeed, type PanelSource } from "./feed.js";
import { createLog } from "./log.js";
import { type PanelCircuit, type PanelCommand, type PanelNews, parseNews } from "./news.js";
import { createRow, type Row } from "./row.js";
import { STYLE } from "./style.js";
import { clockTime, lengthWords, summary } from "./words.js";

/** The element. Attributes: `channel`, `src`, `controls`, `span-ms`, `label`; see docs/panel.md. */
export interface TripcurvePanel extends HTMLElement {
  /** What is shown: breakers, registries or a feed. Null (default): what `channel` or `src` names. */
  source: PanelSource | PanelFeed | null;
}

declare global {
  interface HTMLElementTagNameMap {
    "tripcurve-panel": TripcurvePanel;
  }
}

const TICK_MS = 1_000;
/** After so long without an answer it is said that there is none. */
const SILENT_MS = 5_000;
const ORDER = { open: 0, half_open: 1, closed: 3 };
const rank = ({ state, held }: PanelCircuit): number => (held === "closed" ? 2 : ORDER[state]);

/** Defines `<tripcurve-panel>`, or an element of another name. A second time it does nothing. Only where there is a document. */
export function definePanel(name = "tripcurve-panel"): void {
  if (!customElements.get(name)) customElements.define(name, createClass());
}

function createClass(): CustomElementConstructor {
  return class extends HTMLElement implements TripcurvePanel {
    static observedAttributes = ["channel", "src", "controls", "span-ms", "label"];

    #source: PanelSource | PanelFeed | null = null;
    #line: Line | undefined;
    #timer: ReturnType<typeof setTimeout> | undefined;
    #asked = false;
    #drawn = false;
    #refused = false;
    #cursor: string | null = null;
    /** What the sender's clock is ahead of ours. */
    #ahead = 0;
    #heardAt: number | null = null;
    #shownSince = 0;
    #takesCommands = false;
    #numbers = 0;
    readonly #rows = new Map<string, Row>();
    readonly #names = new Intl.Collator("en", { numeric: true });

    readonly #log = createLog();
    readonly #summary = el("p", { class: "summary", part: "summary" });
    readonly #notice = el("p", { class: "notice", part: "notice", hidden: true });
    readonly #empty = el("p", { class: "empty", text: "No circuit yet. One appears with its first call." });
    readonly #spanHead = el("span");
    readonly #heads = el("div", { class: "heads", part: "heads", "aria-hidden": "true" }, ...["State", "Circuit", "Counted"].map((text) => el("span", { text })), this.#spanHead, el("span", { text: "Next probe" }));
    readonly #list = el("ul", { part: "circuits", role: "list" });
    readonly #copied = el("span", { class: "copied", role: "status" });
    readonly #copy = el("button", { type: "button", part: "button", class: "copy", "aria-label": "Copy snapshot", onclick: () => void this.#copySnapshot() }, "Copy", el("span", { text: " snapshot" }));
    readonly #text = el("textarea", { readonly: true, "aria-label": "Snapshot, to copy", hidden: true });
    readonly #announcer = el("p", { class: "unseen", part: "announcer", role: "status", "aria-live": "polite" });
    readonly #frame = el(
      "section",
      {},
      el("div", { class: "top", part: "top" }, this.#summary, el("span", {}, this.#copied, " ", this.#copy)),
      ...[this.#notice, this.#text, this.#heads, this.#list, this.#empty, this.#log.element, this.#announcer],
    );

    constructor() {
      super();
      const root = this.attachShadow({ mode: "open" });
      if ("replaceSync" in CSSStyleSheet.prototype && "adoptedStyleSheets" in root) {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(STYLE);
        root.adoptedStyleSheets = [sheet];
      } else (root as ShadowRoot).append(el("style", { text: STYLE }));
      (root as ShadowRoot).append(this.#frame);
    }

    get source(): PanelSource | PanelFeed | null {
      return this.#source;
    }

    set source(source: PanelSource | PanelFeed | null) {
      if (source === this.#source) return;
      this.#source = source;
      if (this.isConnected) this.#connect();
    }

    connectedCallback(): void {
      // Set before the element was defined.
      if (Object.hasOwn(this, "source")) {
        const { source } = this;
        delete (this as Partial<TripcurvePanel>).source;
        this.#source = source;
      }
      document.addEventListener("visibilitychange", this.#seen);
      this.#connect();
    }

    disconnectedCallback(): void {
      document.removeEventListener("visibilitychange", this.#seen);
      this.#disconnect();
    }

    attributeChangedCallback(name: string): void {
      if (!this.isConnected) return;
      if (name === "channel" || name === "src") this.#connect();
      else this.#draw();
    }

    #connect(): void {
      this.#disconnect();
      this.#cursor = null;
      this.#heardAt = null;
      const channel = this.getAttribute("channel");
      const src = this.getAttribute("src");
      const ear = { news: (news: unknown) => this.#hear(parseNews(news)), changed: this.#soon, refused: this.#refuse };
      const source = this.#source;
      if (source) {
        const feed = isFeed(source) ? source : panelFeed(source, { controls: true });
        this.#line = feedLine(feed, feed !== source, { ...ear, news: (news) => this.#hear(news as PanelNews) });
      } else if (channel !== null) this.#line = channelLine(channel, ear);
      else if (src !== null) this.#line = serverLine(src, ear);
      this.#seen();
    }

    #disconnect(): void {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#line?.close();
      this.#line = undefined;
    }

    readonly #seen = (): void => {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      if (document.hidden) return;
      this.#shownSince = Date.now();
      this.#tick();
    };

    #tick(): void {
      const line = this.#line;
      this.#drawn = false;
      try {
        line?.ask(this.#cursor);
        if (!this.#drawn) this.#draw();
      } finally {
        if (line) this.#timer = setTimeout(() => this.#tick(), this.#untilNext());
      }
    }

    /** A second at most, so that the countdown of whoever is probed next shows every second once. */
    #untilNext(): number {
      const now = this.#now();
      const left = [...this.#rows.values()].flatMap(({ circuit: { state, until } }) => (state === "open" && until !== null && until > now ? until - now : []));
      return Math.max(20, (left.length > 0 ? Math.min(...left) : 0) % TICK_MS || TICK_MS);
    }

    /** Something has moved: asks again, once for all that moves in this moment. */
    readonly #soon = (): void => {
      if (this.#asked || document.hidden) return;
      this.#asked = true;
      queueMicrotask(() => {
        this.#asked = false;
        this.#line?.ask(this.#cursor);
      });
    };

    readonly #refuse = (): void => {
      this.#refused = true;
      this.#draw();
    };

    #now = (): number => Date.now() + this.#ahead;

    #hear(news: PanelNews | null): void {
      if (!news || (news.after !== null && news.after !== this.#cursor)) return;
      const same = this.#cursor !== null && this.#cursor.split(".")[0] === news.cursor.split(".")[0];
      if (!same) {
        this.#log.clear();
        for (const row of this.#rows.values()) row.forget();
      }
      this.#cursor = news.cursor;
      this.#ahead = news.now - Date.now();
      this.#heardAt = Date.now();
      this.#takesCommands = news.controls;

      const changed: Row[] = [];
      const there = new Set<string>();
      for (const circuit of news.circuits) {
        there.add(circuit.id);
        const row = this.#rows.get(circuit.id);
        if (!row) this.#add(circuit);
        else {
          if (row.circuit.state !== circuit.state || row.circuit.held !== circuit.held) changed.push(row);
          row.update(circuit);
        }
      }
      if (news.after === null) for (const id of [...this.#rows.keys()]) if (!there.has(id)) this.#remove(id);
      const last = this.#log.moves.at(-1)?.number ?? 0;
      const moves = news.moves.filter(({ number }) => number > last);
      for (const move of moves) this.#rows.get(move.id)?.moved(move);
      this.#log.add(moves);
      this.#draw();
      if (same) this.#announce(changed);
    }

    #add(circuit: PanelCircuit): void {
      const row = createRow(circuit, ++this.#numbers, (command) => this.#act(command));
      this.#rows.set(circuit.id, row);
      this.#list.append(row.element);
    }

    #remove(id: string): void {
      this.#rows.get(id)?.element.remove();
      this.#rows.delete(id);
    }

    #act(command: PanelCommand): void {
      this.#refused = false;
      this.#line?.act(command);
      this.#soon();
    }

    #draw(): void {
      this.#drawn = true;
      const now = this.#now();
      const spanMs = Math.max(1_000, Number(this.getAttribute("span-ms")) || 300_000);
      const controls = this.hasAttribute("controls") && this.#takesCommands;
      this.#frame.setAttribute("aria-label", this.getAttribute("label") ?? "Circuits");
      this.#frame.classList.toggle("controls", controls);
      const rows = [...this.#rows.values()];
      for (const row of rows) row.draw(now, spanMs, controls);
      this.#sort(rows);
      const circuits = rows.map(({ circuit }) => circuit);
      say(this.#summary, summary(circuits));
      say(this.#spanHead, `Last ${lengthWords(spanMs)}`);
      this.#heads.hidden = rows.length === 0;
      this.#empty.hidden = rows.length > 0 || this.#heardAt === null;
      const notice = this.#silence();
      this.#notice.hidden = notice === "";
      say(this.#notice, notice);
    }

    /** What is troubled comes first. Rows stay where they are while somebody is at them. */
    #sort(rows: Row[]): void {
      if (this.#list.matches(":hover, :focus-within")) return;
      rows.sort(({ circuit: a }, { circuit: b }) => rank(a) - rank(b) || this.#names.compare(a.id, b.id));
      rows.forEach(({ element }, index) => {
        const at = this.#list.children[index];
        if (at !== element) this.#list.insertBefore(element, at ?? null);
      });
    }

    /** What is shown may be old, and that has to be seen. */
    #silence(): string {
      const heard = this.#heardAt;
      if (!this.#line) return "Nothing to show: there is no source, channel or src.";
      if (Date.now() - Math.max(heard ?? 0, this.#shownSince) < SILENT_MS) return this.#refused ? "The last command was not taken." : "";
      if (heard === null) return "Nobody answers yet.";
      return `No news for ${lengthWords(Date.now() - heard)}: this is what was known at ${clockTime(heard + this.#ahead)} UTC.`;
    }

    /** Heard once per change, never with the countdown. */
    #announce(changed: readonly Row[]): void {
      if (changed.length === 0) return;
      const few = changed.map(({ circuit, sentence }) => `${circuit.id}: ${sentence}.`).join(" ");
      const now = summary([...this.#rows.values()].map(({ circuit }) => circuit));
      this.#announcer.textContent = changed.length <= 3 ? few : `${plural(changed.length, "circuit")} changed. Now ${now}.`;
    }

    async #copySnapshot(): Promise<void> {
      const circuits = [...this.#rows.values()].map(({ circuit, sentence }) => ({ ...circuit, explanation: sentence }));
      const text = JSON.stringify({ at: new Date(this.#now()).toISOString(), circuits, transitions: this.#log.moves }, null, 2);
      const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
      this.#text.hidden = copied === true;
      this.#text.value = copied ? "" : text;
      if (!copied) this.#text.select();
      say(this.#copied, copied ? "Copied" : "This page may not copy: take the text below");
    }
  };
}
