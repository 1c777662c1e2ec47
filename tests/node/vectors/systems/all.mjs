// The six systems, each with the ways in which its traces are replayed.
import { WAYS } from "../circuit.mjs";
import { Fenced } from "./fenced.mjs";
import { Fuse } from "./fuse.mjs";
import { Phil } from "./phil.mjs";
import { Rasuvaeff } from "./rasuvaeff.mjs";
import { Reqtide } from "./reqtide.mjs";
import { Utopia } from "./utopia.mjs";

const { permit, run, plain, core, json } = WAYS;

// `plain` where the adapter need not know which results were late; `core` where nothing is shared or stored.
export const SYSTEMS = [
  { System: Phil, ways: [permit, run, core, json] },
  { System: Reqtide, ways: [permit, run, plain, core, json] },
  { System: Rasuvaeff, ways: [permit, run] },
  { System: Utopia, ways: [permit, run] },
  { System: Fuse, ways: [permit, run] },
  { System: Fenced, ways: [permit, run, plain, core, json] },
];
