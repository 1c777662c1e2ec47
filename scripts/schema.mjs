// `npm run schema -- --update`: the JSON Schema of a policy. Every bound is asked of the core, which names it when it refuses; here are only
// the names, and what JSON Schema cannot be asked (whether buckets divide the window).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { fail, isMain, root, say } from "./shell.mjs";

export const schemaPath = join(root, "policy.schema.json");

export async function policySchema() {
  const { parsePolicy } = await import("tripcurve/core");
  /** The bounds of an option, as the refusal of −1 names them. */
  const bounds = (policy) => {
    try {
      parsePolicy(policy);
    } catch ({ min, max }) {
      return { min, max };
    }
    throw new Error(`${JSON.stringify(policy)} should be refused`);
  };
  const whole = (policy) => {
    const { min, max } = bounds(policy);
    return { type: "integer", minimum: min, maximum: max };
  };
  const option = (name) => whole({ [name]: -1 });
  const part = (kind, name, rest = {}) => whole({ window: { kind, ...rest, [name]: -1 } });
  const orNull = (schema) => ({ anyOf: [schema, { type: "null" }] });
  const pair = { type: "array", items: { type: "integer", minimum: 0 }, minItems: 2, maxItems: 2 };
  const share = (name) => ({ anyOf: [{ type: "number", exclusiveMinimum: 0, maximum: bounds({ slowMs: 1, [name]: -1 }).max }, pair] });
  const number = (name) => {
    const { min, max } = bounds({ [name]: -1 });
    return { anyOf: [{ type: "number", minimum: min, maximum: max }, pair] };
  };
  const window = (kind, properties, required) => ({
    type: "object",
    properties: { kind: { const: kind }, ...properties },
    required: ["kind", ...required],
    additionalProperties: false,
  });
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "CircuitPolicy",
    description: "When a circuit of tripcurve opens, and for how long. Lengths are milliseconds.",
    type: "object",
    properties: {
      window: {
        oneOf: [
          window("fixed", { ms: part("fixed", "ms") }, ["ms"]),
          window("time", { ms: part("time", "ms"), buckets: part("time", "buckets", { ms: 100 }) }, ["ms"]),
          window("calls", { last: part("calls", "last"), withinMs: orNull(part("calls", "withinMs", { last: 5 })) }, ["last"]),
          window("consecutive", { withinMs: orNull(part("consecutive", "withinMs")) }, []),
        ],
      },
      failureRate: orNull(share("failureRate")),
      failures: orNull(option("failures")),
      minimumCalls: option("minimumCalls"),
      slowMs: orNull(option("slowMs")),
      slowRate: share("slowRate"),
      judgeOn: { enum: ["failure", "any"] },
      openMs: option("openMs"),
      backoff: number("backoff"),
      jitter: number("jitter"),
      maxOpenMs: whole({ openMs: 0, maxOpenMs: -1 }),
      probeLimit: orNull(option("probeLimit")),
      probeSuccesses: option("probeSuccesses"),
      probeLeaseMs: orNull(option("probeLeaseMs")),
      shadow: { type: "boolean" },
    },
    additionalProperties: false,
  };
}

const print = (schema) => `${JSON.stringify(schema, null, 2)}\n`;
export const isCurrent = async () => readFileSync(schemaPath, "utf8") === print(await policySchema());

async function main() {
  await build();
  if (process.argv.includes("--update")) writeFileSync(schemaPath, print(await policySchema()));
  say((await isCurrent()) ? "policy.schema.json is current" : "policy.schema.json is not current: npm run schema -- --update");
}

if (isMain(import.meta.url)) main().catch(fail);
