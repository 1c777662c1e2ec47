// The Node host: a process of its own for every guard, one at work at a time.

import { fork } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import path from "node:path";

const CHILD = fileURLToPath(new URL("./node-child.mjs", import.meta.url));
// A large young space: nothing is collected within a sample of the heap.
const FLAGS = ["--expose-gc", "--min-semi-space-size=64", "--max-semi-space-size=64", "--no-warnings"];

export async function nodeHost({ against }) {
  const modules = { tripcurve: "tripcurve", opossum: "opossum", cockatiel: "cockatiel" };
  if (against) modules.against = pathToFileURL(path.resolve(against, "dist/js/index.js")).href;
  return {
    name: `Node ${process.versions.node}`,
    heap: true,
    idle: true,
    async open(scenario, contestant) {
      const child = fork(CHILD, { execArgv: FLAGS, stdio: ["ignore", "ignore", "inherit", "ipc"] });
      const waiting = [];
      child.on("message", (answer) => waiting.shift()?.(answer));
      child.on("exit", (code) => waiting.splice(0).forEach((answer) => answer({ error: `its process ended (${code})` })));
      const ask = async (verb, ...values) => {
        child.send({ verb, values });
        const answer = await new Promise((resolve) => waiting.push(resolve));
        if (answer.error) throw new Error(answer.error);
        return answer.value;
      };
      const close = async () => void child.kill("SIGKILL");
      try {
        await ask("open", scenario, contestant, modules[contestant.library]);
      } catch (error) {
        await close();
        throw error;
      }
      return { warm: (ms) => ask("warm", ms), round: () => ask("round"), heap: () => ask("heap"), idle: (count) => ask("idle", count), close };
    },
    close: async () => {},
  };
}
