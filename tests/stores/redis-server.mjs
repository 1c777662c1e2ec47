// A Redis of one's own on loopback: keeps nothing on disk, is ended by its pid, and can come back on the same port.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const redisServer = process.env.REDIS_SERVER ?? "/usr/bin/redis-server";

/** Why there is none to start; undefined if there is. */
export const missing = spawnSync(redisServer, ["--version"]).status === 0 ? undefined : "redis-server is not installed";

/**
 * `port`, `pid` (of the running process), `stop(signal)` (waits for its end; SIGKILL is a crash), `restart()` (empty, on the same port),
 * `close()` (stops and removes its folder).
 */
export async function startRedis({ args = [] } = {}) {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "tripcurve-redis-"));
  const wanted = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder, "--loglevel", "warning", ...args];
  let child;
  const server = {
    port,
    get pid() {
      return child?.pid;
    },
    async restart() {
      await server.stop();
      child = spawn(redisServer, wanted, { stdio: ["ignore", "pipe", "inherit"] });
      child.ended = new Promise((resolve) => child.once("close", resolve));
      let said = "";
      child.stdout.on("data", (data) => (said += data));
      const failed = child.ended.then(() => Promise.reject(new Error(`redis-server ended: ${said}`)));
      await Promise.race([answers(port), failed]);
    },
    async stop(signal = "SIGTERM") {
      if (!child) return;
      const { ended } = child;
      child.kill(signal);
      child = undefined;
      await ended;
    },
    async close() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.restart();
  return server;
}

/** Three masters that share the slots. */
export async function startCluster() {
  const nodes = [];
  for (let i = 0; i < 3; i++) {
    const bus = await freePort();
    const node = await startRedis({ args: ["--cluster-enabled", "yes", "--cluster-port", String(bus), "--cluster-node-timeout", "5000"] });
    nodes.push(Object.assign(node, { bus }));
  }
  await Promise.all(
    nodes.map(({ port }, i) => command(port, `CLUSTER ADDSLOTSRANGE ${Math.ceil((16_384 * i) / 3)} ${Math.ceil((16_384 * (i + 1)) / 3) - 1}`)),
  );
  for (const { port, bus } of nodes.slice(1)) await command(nodes[0].port, `CLUSTER MEET 127.0.0.1 ${port} ${bus}`);
  for (const { port } of nodes) {
    await until(async () => {
      const info = await command(port, "CLUSTER INFO");
      return info.includes("cluster_state:ok") && info.includes("cluster_known_nodes:3") && info.includes("cluster_size:3");
    }, "the cluster to agree");
  }
  return {
    ports: nodes.map(({ port }) => port),
    nodes,
    close: () => Promise.all(nodes.map(({ close }) => close())),
  };
}

export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Asks again, for up to 15 seconds. */
export async function until(check, what) {
  for (const end = Date.now() + 15_000; ; ) {
    if (await check()) return;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

const answers = (port) => until(async () => (await command(port, "PING").catch(() => "")).startsWith("+PONG"), "redis-server");

/** One command on a connection of its own: the raw answer. */
function command(port, line) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(`${line}\r\n`));
    socket.setTimeout(5_000, () => socket.destroy(new Error("no answer")));
    socket.on("error", reject);
    let answer = "";
    socket.on("data", (data) => {
      answer += data;
      const bulk = /^\$(\d+)\r\n/.exec(answer);
      if (!answer.endsWith("\r\n") || (bulk && answer.length < bulk[0].length + Number(bulk[1]) + 2)) return;
      socket.end();
      if (answer.startsWith("-")) reject(new Error(answer));
      else resolve(answer);
    });
  });
}
