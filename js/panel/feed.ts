// Where a panel's news come from: breakers and registries, looked at when somebody asks. Nothing is told call by call, so a panel costs the
// calls nothing; what is remembered is the last transitions.

import type { CircuitBreaker } from "../breaker.js";
import { whole } from "../errors.js";
import { hear, type Transition } from "../events.js";
import type { CircuitRegistry } from "../registry.js";
import { type PanelCircuit, type PanelMove, type PanelNews, parseCommand } from "./news.js";

/** What a panel may show: a breaker, a registry (that of a guarded fetch is `guarded.registry`), or several. */
export type PanelSource = CircuitBreaker | CircuitRegistry | readonly (CircuitBreaker | CircuitRegistry)[];

export interface PanelFeedOptions {
  /** Take commands (force, hold, release, reset) from whoever asks. Default false. */
  controls?: boolean;
  /** Transitions kept, of all circuits together, 0 to 10,000. Default 200. */
  transitions?: number;
  /** Transitions from before, oldest first: those kept over a reload, say. */
  past?: readonly Transition[];
}

/** Answers questions of panels, here or elsewhere. */
export interface PanelFeed {
  /** What is new since an answer with this cursor; everything without one, or where it is not known. Plain data, also for JSON. */
  news(cursor?: string | null): PanelNews;
  /** Does what a panel asks for; false: it is no command, the circuit is not there, or `controls` is off. */
  act(command: unknown): boolean;
  /** Calls back after transitions and new circuits, once for all of a moment, until the returned function is called. */
  on(changed: () => void): () => void;
  /** Listens to the circuits no more. */
  stop(): void;
}

interface Known {
  readonly circuit: PanelCircuit;
  readonly text: string;
  readonly version: number;
}

/** News of circuits for panels: for a page's own, `broadcast` and a server's JSON. Throws InvalidCircuitError for options that cannot work. */
export function panelFeed(source: PanelSource, options: PanelFeedOptions = {}): PanelFeed {
  const { controls = false, past = [] } = options;
  const limit = whole("transitions", options.transitions ?? 200, 0, 10_000);
  const sources = Array.isArray(source) ? source : [source as CircuitBreaker | CircuitRegistry];
  const name = Math.random().toString(36).slice(2);
  const known = new Map<string, Known>();
  const moves: PanelMove[] = [];
  const listeners = new Set<() => void>();
  let version = 0;
  /** Since then a circuit has gone, which only everything can tell. */
  let gone = 0;
  let telling = false;

  const idOf = (key: string, index: number): string => (sources.length > 1 ? `${index}/${key}` : key);
  const remember = (move: Transition, index: number): void => {
    const { key, from, to, reason, at, generation, counts, until } = move;
    moves.push({ key, from, to, reason, at, generation, counts, until, id: idOf(key, index), number: ++version });
    if (moves.length > limit) moves.shift();
  };
  const changed = (): void => {
    if (telling) return;
    telling = true;
    queueMicrotask(() => {
      telling = false;
      for (const listener of [...listeners]) hear(listener, undefined as never);
    });
  };

  for (const move of past) remember(move, 0);
  const stops = sources.flatMap((each, index) => [each.on("transition", (move: Transition) => remember(move, index)), each.on("state", changed)]);

  const look = (): void => {
    const there = new Set<string>();
    sources.forEach((each, index) => {
      for (const found of "key" in each ? [each.inspect()] : each.inspect()) {
        const id = idOf(found.key, index);
        there.add(id);
        const before = known.get(id);
        const text = JSON.stringify(found);
        if (before?.text === text) continue;
        const policy = before?.circuit.policy ?? ("key" in each ? each.policy : each.policyOf(found.key));
        known.set(id, { circuit: { ...found, id, policy }, text, version: ++version });
      }
    });
    for (const id of known.keys()) {
      if (there.has(id)) continue;
      known.delete(id);
      gone = ++version;
    }
  };

  return {
    news(cursor) {
      look();
      const [from, number] = cursor?.split(".") ?? [];
      const seen = Number(number);
      const partly = from === name && seen >= gone && seen <= version;
      const after = partly ? seen : -1;
      return {
        ...{ tripcurve: 1, cursor: `${name}.${version}`, after: partly ? cursor! : null, now: Date.now(), controls },
        circuits: [...known.values()].filter((each) => each.version > after).map(({ circuit }) => circuit),
        moves: moves.filter((move) => move.number > after),
      };
    },
    act(given) {
      const command = controls ? parseCommand(given) : null;
      if (!command) return false;
      look();
      const circuit = known.get(command.id)?.circuit;
      if (!circuit) return false;
      const each = sources[sources.length > 1 ? Number.parseInt(command.id, 10) : 0]!;
      const breaker = "key" in each ? each : each.get(circuit.key);
      if (command.verb === "force") breaker.force(command.to);
      else if (command.verb === "hold") breaker.hold(command.to);
      else breaker[command.verb]();
      return true;
    },
    on(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    stop() {
      for (const stop of stops) stop();
      listeners.clear();
    },
  };
}

export const isFeed = (source: object): source is PanelFeed => "news" in source;
