// `tripcurve/core`: the pure core on plain objects. This entry carries the module's bytes; entry/core.workerd.ts imports the module.

import { bytes } from "../pkg/core/bytes.js";
import { inlined } from "./entry/inlined.js";
import * as data from "./data.js";
import * as objects from "./objects.js";

const source = /* @__PURE__ */ inlined(bytes);

export const parsePolicy = /* @__PURE__ */ objects.using(source, objects.parsePolicy);
export const parseKey = /* @__PURE__ */ objects.using(source, objects.parseKey);
export const closed = /* @__PURE__ */ objects.using(source, objects.closed);
export const at = /* @__PURE__ */ objects.using(source, objects.at);
export const admit = /* @__PURE__ */ objects.using(source, objects.admit);
export const settle = /* @__PURE__ */ objects.using(source, objects.settle);
export const record = /* @__PURE__ */ objects.using(source, objects.record);
export const force = /* @__PURE__ */ objects.using(source, objects.force);
export const hold = /* @__PURE__ */ objects.using(source, objects.hold);
export const release = /* @__PURE__ */ objects.using(source, objects.release);
export const reset = /* @__PURE__ */ objects.using(source, objects.reset);
export const inspect = /* @__PURE__ */ objects.using(source, objects.inspect);
export const adopt = /* @__PURE__ */ objects.using(source, objects.adopt);
export const encode = /* @__PURE__ */ objects.using(source, objects.encode);
export const decode = /* @__PURE__ */ objects.using(source, objects.decode);
export const entropy = /* @__PURE__ */ objects.using(source, objects.entropy);
export const explain = /* @__PURE__ */ objects.using(source, data.explain);
export const policyFromEnv = /* @__PURE__ */ objects.using(source, data.policyFromEnv);
export const fetchOptionsSchema = /* @__PURE__ */ objects.using(source, data.fetchOptionsSchema);
export const policySchema = /* @__PURE__ */ objects.using(source, data.policySchema);
export const snapshotSchema = /* @__PURE__ */ objects.using(source, data.snapshotSchema);

export type { Explanation, StandardSchema } from "./data.js";
export type { CircuitSnapshot, CoreAdmission, CorePermit, ParsedPolicy, Stamp, Step } from "./objects.js";
export { CircuitError, InvalidCircuitError } from "./errors.js";
