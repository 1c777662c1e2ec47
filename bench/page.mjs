// The page of one guard: opens one subject and lets the host time it.

import { subject } from "./subject.mjs";

let opened;

globalThis.bench = {
  async open(scenario, contestant, module) {
    opened = await subject(scenario, contestant, module);
  },
  warm: (ms) => opened.warm(ms),
  round: () => opened.round(10),
};
