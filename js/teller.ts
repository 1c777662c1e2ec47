// What one circuit tells, to those who listen to it and to those who listen to its registry: in order, step after step.

import { type BreakerEvents, type Listeners, listen, noListeners, tell } from "./events.js";
import type { Config } from "./options.js";

export class Teller {
  readonly #key: string;
  readonly #config: Pick<Config, "told" | "clock" | "registry">;
  #listeners: Listeners | undefined;
  /** What waits for the step in progress. */
  #queue: (() => void)[] | undefined;

  constructor(key: string, config: Pick<Config, "told" | "clock" | "registry">) {
    this.#key = key;
    this.#config = config;
  }

  /** Somebody has asked to hear of this circuit itself. */
  get asked(): boolean {
    return this.#listeners !== undefined;
  }

  /** `changed`: who hears what is another matter now. */
  on<E extends keyof BreakerEvents>(event: E, listener: (detail: BreakerEvents[E]) => void, signal: AbortSignal | undefined, changed: () => void): () => void {
    return listen((this.#listeners ??= noListeners()), event, listener, signal, changed);
  }

  silence(): void {
    this.#listeners = undefined;
  }

  heard(event: keyof BreakerEvents): boolean {
    return (this.#listeners?.[event].size ?? 0) + (this.#config.registry?.listeners[event].size ?? 0) > 0;
  }

  /** Does `work`, and then what it and those who hear of it have asked for. */
  step(work: () => void): void {
    if (this.#queue) {
      this.#queue.push(work);
      return;
    }
    const queue = (this.#queue = [work]);
    try {
      for (let next = queue.shift(); next; next = queue.shift()) next();
    } finally {
      this.#queue = undefined;
    }
  }

  emit<E extends keyof BreakerEvents>(event: E, detail: BreakerEvents[E]): void {
    this.step(() => {
      if (this.#listeners) tell(this.#listeners[event], detail);
      if (this.#config.registry) tell(this.#config.registry.listeners[event], detail);
    });
  }

  /** `once`: for all calls together. Gives whether it was told now. */
  diagnose(code: string, message: string, cause?: unknown, once = false): boolean {
    const { told, clock } = this.#config;
    if (once && told.has(code)) return false;
    if (once) told.add(code);
    if (this.heard("diagnostic")) {
      this.emit("diagnostic", { key: this.#key, code, message, at: clock(), ...(cause === undefined ? {} : { cause }) });
    }
    return true;
  }
}
