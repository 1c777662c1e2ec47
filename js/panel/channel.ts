// Circuits of one window shown in another, over a BroadcastChannel. Whoever shows asks, whoever has circuits answers: nobody asks, nothing is sent.

import { isFeed, type PanelFeed, type PanelFeedOptions, panelFeed, type PanelSource } from "./feed.js";

/** What is said on the channel. `from`, `to`: one of those that answer. */
type Message =
  | { readonly tripcurve: "ask"; readonly to: string | null; readonly cursor: string | null }
  | { readonly tripcurve: "act"; readonly to: string; readonly command: unknown }
  | { readonly tripcurve: "changed"; readonly from: string }
  | { readonly tripcurve: "news"; readonly from: string; readonly news: unknown };

const said = ({ data }: MessageEvent): Partial<Record<string, unknown>> => (typeof data === "object" && data !== null ? data : {});

/**
 * Shows circuits of this window to panels of others of the same origin: `<tripcurve-panel channel="name">`. They may operate them only with
 * `controls`. Costs an answer a second while one watches, else a message per transition. Gives what ends it.
 */
export function broadcast(source: PanelSource | PanelFeed, name: string, options?: PanelFeedOptions): () => void {
  const feed = isFeed(source) ? source : panelFeed(source, options);
  const channel = new BroadcastChannel(name);
  const from = Math.random().toString(36).slice(2);
  const say = (message: Message): void => channel.postMessage(message);
  channel.onmessage = (event) => {
    const { tripcurve, to, cursor, command } = said(event);
    if (tripcurve === "ask" && (to === from || to === null)) say({ tripcurve: "news", from, news: feed.news(typeof cursor === "string" ? cursor : null) });
    else if (tripcurve === "act" && to === from) feed.act(command);
  };
  const stop = feed.on(() => say({ tripcurve: "changed", from }));
  return () => {
    stop();
    if (feed !== source) feed.stop();
    channel.close();
  };
}

/** What a line tells its panel. */
export interface Ear {
  news(news: unknown): void;
  /** There may be news. */
  changed(): void;
  /** A command was not taken. */
  refused(): void;
}

/** How a panel is connected to where its circuits are. */
export interface Line {
  /** For news after the cursor. They are heard later, or never. */
  ask(cursor: string | null): void;
  act(command: unknown): void;
  close(): void;
}

/** To a feed of this window. */
export function feedLine(feed: PanelFeed, own: boolean, ear: Ear): Line {
  const stop = feed.on(ear.changed);
  return {
    ask: (cursor) => ear.news(feed.news(cursor)),
    act: (command) => feed.act(command) || ear.refused(),
    close() {
      stop();
      if (own) feed.stop();
    },
  };
}

/** Who has answered is asked again until it has been silent for so long. */
const SILENT_MS = 3_000;

/** To whoever answers on a channel: the first one, as long as it does. */
export function channelLine(name: string, ear: Ear): Line {
  const channel = new BroadcastChannel(name);
  const say = (message: Message): void => channel.postMessage(message);
  let to: string | null = null;
  let heardAt = 0;
  channel.onmessage = (event) => {
    const { tripcurve, from, news } = said(event);
    if (typeof from !== "string" || (to !== null && from !== to)) return;
    if (tripcurve === "changed") return ear.changed();
    if (tripcurve !== "news") return;
    to = from;
    heardAt = performance.now();
    ear.news(news);
  };
  return {
    ask(cursor) {
      if (performance.now() - heardAt > SILENT_MS) to = null;
      say({ tripcurve: "ask", to, cursor });
    },
    act(command) {
      if (to !== null) say({ tripcurve: "act", to, command });
    },
    close: () => channel.close(),
  };
}

/** To a server, which answers with news in JSON; commands are posted to it. One question at a time. */
export function serverLine(address: string, ear: Ear): Line {
  const closing = new AbortController();
  const url = new URL(address, document.baseURI);
  let asking = false;
  return {
    ask(cursor) {
      if (asking) return;
      asking = true;
      const question = new URL(url);
      if (cursor !== null) question.searchParams.set("after", cursor);
      const limited = new AbortController();
      const stop = (): void => limited.abort();
      const limit = setTimeout(stop, 10_000);
      closing.signal.addEventListener("abort", stop);
      // A server that fails is seen by its silence.
      fetch(question, { cache: "no-store", headers: { Accept: "application/json" }, signal: limited.signal })
        .then((response) => (response.ok ? response.json() : undefined))
        .then((news) => closing.signal.aborted || ear.news(news), () => undefined)
        .finally(() => {
          clearTimeout(limit);
          closing.signal.removeEventListener("abort", stop);
          asking = false;
        });
    },
    act(command) {
      const body = JSON.stringify(command);
      fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal: closing.signal })
        .then(({ ok }) => (ok ? ear.changed() : ear.refused()))
        .catch(() => closing.signal.aborted || ear.refused());
    },
    close: () => closing.abort(),
  };
}
