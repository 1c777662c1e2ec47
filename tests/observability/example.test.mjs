// examples/observability as a stranger has it: its server in front of a service that fails, scraped by a real Prometheus that judges the
// alert rules and answers what the dashboard asks.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Registry } from "prom-client";
import { collectMetrics } from "tripcurve/prometheus";
import { live, watched } from "../node/telemetry.mjs";
import { until } from "../stores/redis-server.mjs";
import { missing, promtool, startPrometheus } from "./prometheus-server.mjs";

const skip = missing ?? false;
const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tripcurve-observability-"));
after(() => rmSync(folder, { recursive: true, force: true }));
cpSync(join(root, "examples", "observability"), folder, { recursive: true });
mkdirSync(join(folder, "node_modules"));
symlinkSync(root, join(folder, "node_modules", "tripcurve"));

const text = (name) => readFileSync(join(folder, name), "utf8");
const dashboard = JSON.parse(text("dashboard.json"));
const asked = dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })));
/** As Grafana fills it in, with everything chosen. */
const filled = (expr) => expr.replaceAll("$__rate_interval", "1m").replaceAll("$job", ".*").replaceAll("$circuit", ".*");

/** What shows every metric there is. */
async function everything(options) {
  const all = watched();
  const metrics = collectMetrics(all.registry, options);
  await (await live(all))();
  all.store.down = true;
  await all.registry.get("http.other").run(() => "fine");
  return metrics;
}

const serve = async (t, answer) => {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => (server.closeAllConnections(), server.close()));
  return `127.0.0.1:${server.address().port}`;
};

/** The example's server, as `npm start` starts it. */
async function startExample(t, upstream) {
  const env = { ...process.env, PORT: "0", UPSTREAM: upstream };
  const child = spawn(process.execPath, ["server.mjs"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  t.after(() => (child.kill(), ended));
  const address = await new Promise((resolve, reject) => {
    child.stdout.once("data", (line) => resolve(/^http:\/\/(\S+)\/ leads/.exec(line)[1]));
    void ended.then(() => reject(new Error("the example's server ended")));
  });
  return address;
}

test("every name in the dashboard, the alert rules and their tests is one that is shown", async () => {
  const shown = (await everything()).text();
  const metrics = new Set([...shown.matchAll(/^(circuit_breaker\w+){/gm)].map(([, name]) => name));
  const labels = new Set([...shown.matchAll(/[{,](\w+)="/g)].map(([, name]) => name));
  const rules = text("alerts.yml").split("\n").filter((line) => !/^ *(summary|description|#)/.test(line));
  const series = text("alerts.test.yml").split("\n").filter((line) => line.includes("- series:"));
  let names = 0;
  for (const expression of [...asked.map(({ expr }) => expr), ...rules, ...series]) {
    for (const [, name, selector] of expression.matchAll(/\b(circuit_breaker\w+|error_type)\b({?)/g)) {
      names++;
      assert.ok(metrics.has(name) || (selector === "" && labels.has(name)), `${name} in ${expression}`);
    }
  }
  assert.ok(names > 100, `${names} names`);
});

test("the dashboard asks the Prometheus that is chosen, and its panels lie beside each other", () => {
  const variables = dashboard.templating.list.map(({ name }) => name);
  assert.deepEqual(variables, ["datasource", "job", "circuit"]);
  const taken = new Map();
  for (const { id, title, description, datasource, gridPos, targets } of dashboard.panels) {
    for (const source of [datasource, ...targets.map(({ datasource }) => datasource)]) assert.deepEqual(source, { type: "prometheus", uid: "${datasource}" }, title);
    assert.ok(description.endsWith("."), title);
    assert.equal(dashboard.panels.filter((other) => other.id === id).length, 1, title);
    assert.ok(gridPos.x + gridPos.w <= 24, title);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.equal(taken.get(`${x} ${y}`), undefined, `${title} lies on ${taken.get(`${x} ${y}`)}`);
        taken.set(`${x} ${y}`, title);
      }
    }
  }
});

test("promtool finds nothing to say about the metrics, by themselves or through prom-client", { skip }, async () => {
  const register = new Registry();
  const metrics = await everything({ register, prefix: "shop.eu" });
  for (const input of [metrics.text(), await register.metrics(), (await everything()).text()]) {
    assert.deepEqual(promtool(["check", "metrics"], { input }), { ok: true, said: "" });
  }
});

test("promtool accepts the example's configuration and alert rules, and their tests pass", { skip }, () => {
  for (const args of [["check", "config", "prometheus.yml"], ["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]]) {
    const { ok, said } = promtool(args, { cwd: folder });
    assert.ok(ok && said.includes("SUCCESS"), said);
  }
});

test("every alert rule is tested: told in one case at least", () => {
  const told = new Set([...text("alerts.test.yml").matchAll(/alertname: (\w+)\n +exp_alerts:\n/g)].map(([, name]) => name));
  const rules = [...text("alerts.yml").matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  assert.deepEqual([...told].sort(), rules.sort());
});

test("Prometheus scrapes the example's server, judges its rules and answers all that the dashboard asks", { skip }, async (t) => {
  let status = 200;
  const upstream = await serve(t, (_, response) => response.writeHead(status).end());
  const gateway = await startExample(t, `http://${upstream}`);
  const metrics = await everything();
  const other = await serve(t, (_, response) => response.setHeader("Content-Type", metrics.contentType).end(metrics.text()));
  const configuration = text("prometheus.yml")
    .replace(/_interval: 15s/g, "_interval: 1s")
    .replace("alerts.yml", join(folder, "alerts.yml"))
    .replace('["127.0.0.1:9464"]', JSON.stringify([gateway]));
  const prometheus = await startPrometheus(`${configuration}\n  - job_name: everything\n    static_configs:\n      - targets: ["${other}"]\n`);
  t.after(() => prometheus.close());

  const get = () => fetch(`http://${gateway}/orders`);
  assert.equal((await get()).status, 200);
  status = 500;
  await until(async () => (await get()).headers.has("retry-after"), "the circuit to open");
  const name = `http.${upstream.replace(":", ".")}`;
  const circuit = `job="gateway",circuit_breaker_name="${name}"`;
  const valueOf = async (expression) => Number((await prometheus.query(expression))[0]?.value[1]);
  await until(async () => (await valueOf(`circuit_breaker_state{${circuit},circuit_breaker_state="open"}`)) === 1, "the open circuit");
  assert.ok((await valueOf(`circuit_breaker_refusals_total{${circuit},circuit_breaker_reason="open"}`)) >= 1);
  assert.ok((await valueOf(`circuit_breaker_callback_failures_total{${circuit},error_type="500"}`)) >= 5);
  assert.equal(await valueOf(`circuit_breaker_transitions_total{${circuit},circuit_breaker_to_state="open",circuit_breaker_reason="failure_rate"}`), 1);

  // A rate needs two scrapes.
  await until(async () => (await valueOf('min(count_over_time(up[1m]))')) >= 3 && (await valueOf("min(up)")) === 1, "some scrapes");
  for (const { title, expr } of asked) assert.notEqual((await prometheus.query(filled(expr))).length, 0, `${title}: ${expr}`);

  const pending = async () => {
    const { groups } = await prometheus.ask("rules");
    const rules = groups.flatMap(({ rules }) => rules);
    assert.equal(rules.length, 7);
    if (rules.some(({ health }) => health === "unknown")) return false;
    for (const { name, health, lastError } of rules) assert.equal(health, "ok", `${name}: ${lastError}`);
    return rules.find((rule) => rule.name === "CircuitNotClosed").alerts.some(({ labels, state }) => labels.circuit_breaker_name === name && state === "pending");
  };
  await until(pending, "the rules to be judged");
  const firing = (await prometheus.ask("alerts")).alerts.filter(({ state }) => state === "firing");
  assert.deepEqual(firing, [], "none is told before its time");
});
