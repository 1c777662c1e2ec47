// The module: compiled and linked at the first breaker, synchronously, never at import. Where the host refuses WebAssembly its
// translation to JavaScript is loaded; until then, and without it, calls pass uncounted.

// Linked by hand: what wasm-bindgen would add for strings and errors is larger than all of this, and works at import.

import type { Awaitable } from "./awaitable.js";
import { report } from "./host.js";

/** What runs the circuits: WebAssembly, its translation to JavaScript where the host refuses it, or nothing, and calls pass uncounted. */
export type Backend = "wasm" | "js" | "none";

/** The module's numeric exports; see src/wasm/src/runtime/mod.rs. */
export interface Core {
  memory?: WebAssembly.Memory;
  __wbindgen_malloc(bytes: number, align: number): number;
  __wbindgen_free(at: number, bytes: number, align: number): void;
  __wbindgen_exn_store(index: number): void;
  __externref_table_alloc(): number;
  scratch(): number;
  policy(): number;
  create(policy: number, now: number): number;
  drop(handle: number): void;
  closed_token(handle: number): number;
  admit(handle: number, now: number): number;
  retry_at(handle: number, now: number): number;
  settle(handle: number, token: number, outcome: number, duration: number, now: number): number;
  settle_until(handle: number, token: number, outcome: number, duration: number, now: number, until: number): number;
  record(handle: number, outcome: number, duration: number, until: number, now: number): number;
  force(handle: number, state: number, until: number, now: number): number;
  hold(handle: number, as: number, now: number): number;
  release(handle: number, now: number): number;
  reset(handle: number, now: number): number;
  next_transition(): number;
  inspect(handle: number, now: number): void;
  encode(handle: number): [at: number, bytes: number];
  restore(handle: number, at: number, bytes: number, now: number): number;
  adopt(handle: number, at: number, bytes: number, now: number): number;
  shift(handle: number, by: number): void;
  share_tally(handle: number): void;
  seal(handle: number): [at: number, bytes: number];
  propose(handle: number, token: number, outcome: number, duration: number, now: number, until: number): [at: number, bytes: number];
  commit(handle: number, now: number): number;
}

/** What an entry knows about its host. */
export interface Source {
  /** The compiled module, or its bytes. None: the host has no WebAssembly. */
  module?(): WebAssembly.Module | Uint8Array<ArrayBuffer>;
  /** The same in JavaScript. */
  translation?(): Awaitable<Translation>;
  /** Where the host keeps promises alive by itself. */
  waitUntil?(work: Promise<unknown>): void;
}

export interface Translation {
  /** `policies`: those that were handed to the absent core; their handles go on from `FIRST_ABSENT`. */
  translated(imports: object, policies: readonly Float64Array[]): Core;
}

const ABSENT: Record<string, unknown> = { admit: -100, create: -1, closed_token: -1, encode: [], seal: [], propose: [] };
export const FIRST_ABSENT = 1e6;
const policies: Float64Array[] = [];

/** No circuit is known, every call is let in; policies are kept for the core that may come. */
const absent = /* @__PURE__ */ new Proxy({} as Core, {
  get(_, name) {
    if (name === "memory") return undefined;
    return name === "policy" ? () => FIRST_ABSENT - 1 + policies.push(noBlock.slice()) : () => ABSENT[name as string] ?? 0;
  },
});

export let core: Core = absent;
export let backend: Backend = "none";
export let source: Source | undefined;
/** Why there is no module. */
export let refusal: unknown;
let untranslatable = false;

/** The module asks its host for random numbers, by a name that holds a hash, and for nothing else that matters here. */
const imports = /* @__PURE__ */ (() => ({
  "./tripcurve_bg.js": new Proxy({}, { get: (_, name) => (String(name).includes("getRandomValues") ? random : () => {}) }),
}))();

function random(at: number, bytes: number): void {
  try {
    crypto.getRandomValues(memory(at, bytes));
  } catch {
    // Refused where a worker starts. The module is told, and asks again at the next verb.
    core.__wbindgen_exn_store(core.__externref_table_alloc());
  }
}

/**
 * Every entry names its source and takes the public values back from here: nothing runs at import, and a bundler cannot keep one
 * without the other.
 */
export function using<T>(from: Source, values: T): T {
  source ??= from;
  return values;
}

/** Compiles and links the module unless that was done, or refused, before. */
export function link(): void {
  if (backend !== "none" || refusal !== undefined) return;
  const { module, translation } = source!;
  if (!module) return translate(translation!() as Translation);
  try {
    const given = module();
    // Not instanceof: a module of another realm is one, too.
    install(new WebAssembly.Instance("byteLength" in given ? new WebAssembly.Module(given) : given, imports));
  } catch (error) {
    refusal = error ?? "refused";
    if (!translation) report(refusal);
  }
}

/** There may be a translation to wait for. */
export const translatable = (): boolean => backend === "none" && refusal !== undefined && !untranslatable && source!.translation !== undefined;

/** Loads it. For one caller: a promise made for one request must not be awaited by another. Always resolves. */
export async function load(): Promise<void> {
  try {
    const translation = await source!.translation!();
    if (backend === "none") translate(translation);
  } catch {
    if (!untranslatable) report(refusal);
    untranslatable = true;
  }
}

function translate({ translated }: Translation): void {
  core = translated(imports, policies);
  backend = "js";
}

/**
 * Compiles the module without blocking. Optional: the first breaker does it otherwise, in about a millisecond. Where the host refuses
 * WebAssembly it loads the translation to JavaScript, for which the first call would wait. Always resolves; `backend` of a breaker says
 * what came of it.
 */
export async function ready(): Promise<void> {
  if (backend === "none" && refusal === undefined) {
    try {
      const made = (await WebAssembly.instantiate(source!.module!() as BufferSource, imports)) as { instance?: WebAssembly.Instance };
      if (backend === "none") install(made.instance ?? (made as unknown as WebAssembly.Instance));
    } catch {
      link();
    }
  }
  if (translatable()) await load();
}

function install(instance: WebAssembly.Instance): void {
  core = instance.exports as unknown as Core;
  backend = "wasm";
}

// Views are made afresh: growing memory detaches them.
const memory = (at: number, bytes: number): Uint8Array<ArrayBuffer> => new Uint8Array(core.memory!.buffer as ArrayBuffer, at >>> 0, bytes);

/** The block of numbers through which the module answers what does not fit one number. */
export const block = (): Float64Array => (core.memory ? new Float64Array(core.memory.buffer, core.scratch() >>> 0, 24) : noBlock);
const noBlock = /* @__PURE__ */ new Float64Array(24);

/** The text a verb of the module gives. */
export function textOf([at, bytes]: [at: number, bytes: number]): string {
  if (!core.memory) return "";
  const text = new TextDecoder().decode(memory(at, bytes));
  core.__wbindgen_free(at, bytes, 1);
  return text;
}

/** A token of a probe, which decides. */
export const isProbe = (token: number): boolean => token >= 0 && (token & 1) === 1;

/** Hands a stored text over; the module frees it. What is longer than any circuit is cut, or a hostile one would grow the memory for good. */
export function decode(verb: "restore" | "adopt", handle: number, text: unknown, now: number): number {
  if (!core.memory) return 0;
  const bytes = new TextEncoder().encode(typeof text === "string" ? text.slice(0, 40_000) : "");
  const at = core.__wbindgen_malloc(bytes.length, 1);
  memory(at, bytes.length).set(bytes);
  return core[verb](handle, at, bytes.length, now);
}

const NO_CIRCUIT = [0, 0, 1, 0, NaN, 0, 0, 0, 0, 0, 0, 0, NaN];

/** The circuit at `now`: state, held, admits, since, until, calls, failures, slow, probes in flight, successes, rejected, generation, next change. */
export function inspect(handle: number, now: number): ArrayLike<number> & Iterable<number> {
  if (handle < 0) return NO_CIRCUIT;
  core.inspect(handle, now);
  return block();
}
