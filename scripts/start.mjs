// `npm start`: all set-up, the build, then the page and its flaky service on loopback.
import { spawn } from "node:child_process";
import { build } from "./build.mjs";
import { env, fail, root } from "./shell.mjs";
import { setup } from "./setup.mjs";

try {
  await setup();
  await build();
} catch (error) {
  fail(error);
}

const server = spawn(process.execPath, ["www/server.mjs", ...process.argv.slice(2)], { cwd: root, env, stdio: "inherit" });
server.on("error", fail);
server.on("exit", (code, signal) => process.exit(signal ? 0 : code ?? 1));
// Ctrl-C reaches the whole process group; only a signal sent to this process alone has to be passed on.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => server.kill(signal));
// npm gives a signal to the shell between it and us, and that shell keeps it to itself.
const parent = process.ppid;
if (process.env.npm_lifecycle_event) setInterval(() => process.ppid !== parent && server.kill(), 500).unref();
