// The runtime as JavaScript, for hosts that refuse WebAssembly. It was compiled for the first WebAssembly, which gives back one number:
// where the runtime gives two they are left in a place that is named first.

import { make } from "../../pkg/js/runtime.js";
import { refused } from "../policy.js";
import { report } from "../host.js";
import { type Core, FIRST_ABSENT } from "../runtime.js";

type Pair = [at: number, bytes: number];

/** Any reference: the module only hands it back. */
const REFERENCE = 132;

export function translated(imports: object, policies: readonly Float64Array[]): Core {
  const raw = make(imports);
  const pair = (verb: (place: number, ...values: number[]) => void) => (...values: number[]): Pair => {
    const place = raw.__wbindgen_add_to_stack_pointer(-16);
    verb(place, ...values);
    const [at, bytes] = new Int32Array(raw.memory.buffer, place, 2);
    raw.__wbindgen_add_to_stack_pointer(16);
    return [at!, bytes!];
  };
  const block = (): Float64Array => new Float64Array(raw.memory.buffer, raw.scratch(), 24);
  // What could not be checked when it was given is told now; its circuits let everything pass.
  const handles = policies.map((slots): number => {
    block().set(slots);
    const handle: number = raw.policy();
    if (handle < 0) report(refused({}, -1 - handle, ...block()));
    return handle;
  });
  return {
    ...raw,
    create: (policy, now) => raw.create(handles[policy - FIRST_ABSENT] ?? policy, now),
    encode: pair(raw.encode),
    seal: pair(raw.seal),
    propose: pair(raw.propose),
    __externref_table_alloc: () => REFERENCE,
  };
}
