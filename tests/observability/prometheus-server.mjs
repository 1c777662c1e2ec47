// Debian's Prometheus on loopback with a folder of its own, ended by its pid; and promtool, which comes with it.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { freePort, until } from "../stores/redis-server.mjs";

const prometheus = process.env.PROMETHEUS ?? "/usr/bin/prometheus";
const promtoolPath = join(dirname(prometheus), "promtool");

/** Why there is none to start; undefined if there is. */
export const missing = [prometheus, promtoolPath].every((path) => spawnSync(path, ["--version"]).status === 0) ? undefined : "prometheus is not installed";

/** What promtool says, and whether all is well. `input` is what it reads. */
export function promtool(args, { cwd, input } = {}) {
  const { status, stdout, stderr } = spawnSync(promtoolPath, args, { cwd, input, encoding: "utf8" });
  return { ok: status === 0, said: `${stdout}${stderr}` };
}

/** `ask(path)` gives the `data` of an answer of its API; a query that cannot be parsed throws. `close()` stops it and removes its folder. */
export async function startPrometheus(configuration) {
  const folder = mkdtempSync(join(tmpdir(), "tripcurve-prometheus-"));
  const port = await freePort();
  const file = join(folder, "prometheus.yml");
  writeFileSync(file, configuration);
  const child = spawn(
    prometheus,
    [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, "data")}`, `--web.listen-address=127.0.0.1:${port}`, "--log.level=warn"],
    { stdio: ["ignore", "inherit", "pipe"] },
  );
  let said = "";
  child.stderr.on("data", (data) => (said += data));
  const ended = new Promise((resolve) => child.once("close", resolve));
  let over = false;
  void ended.then(() => (over = true));
  const server = {
    async ask(path) {
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
      const { status, data, error } = await answer.json();
      if (status !== "success") throw new Error(error);
      return data;
    },
    query: async (expression) => (await server.ask(`query?query=${encodeURIComponent(expression)}`)).result,
    async close() {
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await until(async () => {
      if (over) throw new Error(`prometheus ended: ${said}`);
      return (await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined))?.ok;
    }, "prometheus to be ready");
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}
