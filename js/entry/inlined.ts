// Hosts that compile from bytes: browsers, Node, Deno, Bun, service workers.

import bytes from "../../pkg/bytes.js";
import type { Source } from "../runtime.js";

export const inlined: Source = {
  module() {
    const code = new Uint8Array(bytes.length);
    for (let at = 0; at < code.length; at++) code[at] = bytes.charCodeAt(at);
    return code;
  },
};
