// WebKit, as Debian has it: a small browser that is driven over HTTP, on a screen that nobody sees.
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";

const libraries = "/usr/lib/x86_64-linux-gnu";
const [folder] = existsSync(libraries) ? readdirSync(libraries).filter((name) => /^webkit2gtk-4/.test(name) && existsSync(`${libraries}/${name}/MiniBrowser`)) : [];
const found = folder && existsSync("/usr/bin/WebKitWebDriver") && existsSync("/usr/bin/xvfb-run");

/** Why there is none. */
export const skip = found ? false : "WebKit is not installed: apt-get install webkit2gtk-driver xvfb xauth";

export async function outcomeInWebKit(url) {
  const port = 10_000 + Math.floor(Math.random() * 50_000);
  const driver = spawn("xvfb-run", ["-a", "WebKitWebDriver", `--port=${port}`, "--host=127.0.0.1"], { detached: true, stdio: "ignore" });
  const ask = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${value.error}: ${value.message}`);
    return value;
  };
  try {
    for (let tries = 100; ; tries--) {
      if (await ask("GET", "/status").then(() => true, () => false)) break;
      if (tries === 0) throw new Error("WebKitWebDriver does not answer");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const options = { binary: `${libraries}/${folder}/MiniBrowser`, args: ["--automation"] };
    const { sessionId, capabilities } = await ask("POST", "/session", { capabilities: { alwaysMatch: { browserName: "MiniBrowser", "webkitgtk:browserOptions": options } } });
    const session = `/session/${sessionId}`;
    await ask("POST", `${session}/timeouts`, { script: 20_000 });
    await ask("POST", `${session}/url`, { url });
    const script = `
      const done = arguments[0];
      const look = () => "outcome" in globalThis ? Promise.resolve(globalThis.outcome).then(done, (error) => done(String(error))) : setTimeout(look, 50);
      look();`;
    const outcome = await ask("POST", `${session}/execute/async`, { script, args: [] });
    await ask("DELETE", session);
    return { version: capabilities.browserVersion, outcome };
  } finally {
    process.kill(-driver.pid, "SIGTERM");
  }
}
