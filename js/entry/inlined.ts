// Hosts that compile from bytes: browsers, Node, Deno, Bun, service workers.

import type { Source } from "../runtime.js";

/** A module whose bytes are inlined, a character each. */
export const inlined = (bytes: string, translation?: Source["translation"]): Source => ({
  ...(translation && { translation }),
  module() {
    const code = new Uint8Array(bytes.length);
    for (let at = 0; at < code.length; at++) code[at] = bytes.charCodeAt(at);
    return code;
  },
});
