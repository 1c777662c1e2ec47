// `npm start`: the failing service and the page, one process, two loopback ports.
//   PORT (4173) and SERVICE_PORT (4174) choose other ports; a port that is taken is replaced by a free one.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { importMap } from "./imports.mjs";
import { listen, shut } from "./listen.mjs";
import { startService } from "./service.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
  ".ts": "text/plain; charset=utf-8",
};

/** Starts both servers; `imports` replaces the import map made from package.json. */
export async function startDemo({ port = 0, servicePort = 0, host = "127.0.0.1", root = ROOT, imports } = {}) {
  const service = await startService({ port: servicePort, host });
  const server = createServer((request, response) => {
    respond(request, response).catch((error) => {
      if (!response.headersSent) response.writeHead(500, { "Content-Type": "text/plain" });
      response.end(String(error?.message ?? error));
    });
  });

  async function respond(request, response) {
    response.setHeader("Cache-Control", "no-cache");
    response.setHeader("X-Content-Type-Options", "nosniff");
    const { pathname } = new URL(request.url, "http://page");
    if (pathname === "/service") return control(request, response);
    if (request.method !== "GET" && request.method !== "HEAD") return void response.writeHead(405).end();
    if (pathname === "/") return sendPage(response);
    const file = fileOf(pathname);
    const body = file && (await readFile(file).catch(() => null));
    if (!body) return void response.writeHead(404, { "Content-Type": "text/plain" }).end("Not found");
    response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", "Content-Length": body.length });
    response.end(request.method === "HEAD" ? undefined : body);
  }

  function fileOf(pathname) {
    let path;
    try {
      path = normalize(decodeURIComponent(pathname));
    } catch {
      return null;
    }
    if (path.includes("\0")) return null;
    const base = path.startsWith(`${sep}dist${sep}`) ? root : join(root, "www");
    return path.includes("..") || path.endsWith(sep) ? null : join(base, path);
  }

  // Only what the page needs may run on it: its own files, this one import map, and WebAssembly.
  async function sendPage(response) {
    const map = JSON.stringify(imports ?? (await importMap(root)));
    const html = (await readFile(join(root, "www", "index.html"), "utf8")).replace("{{importmap}}", () => map);
    const hash = createHash("sha256").update(map).digest("base64");
    response.setHeader(
      "Content-Security-Policy",
      `default-src 'none'; script-src 'self' 'wasm-unsafe-eval' 'sha256-${hash}'; style-src 'self'; img-src 'self' data:; ` +
        `connect-src 'self' ${service.url}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    response.writeHead(200, { "Content-Type": TYPES[".html"] });
    response.end(html);
  }

  // The control endpoint is on the page's own origin: while the service hangs, the browser's few connections to it are all taken.
  async function control(request, response) {
    let problem = null;
    if (request.method === "POST") problem = service.apply(await readJson(request));
    else if (request.method !== "GET") return void response.writeHead(405).end();
    response.writeHead(problem ? 400 : 200, { "Content-Type": TYPES[".json"] });
    response.end(JSON.stringify(problem ? { problem } : { url: service.url, ...service.state() }));
  }

  const url = await listen(server, host, port);
  return {
    url,
    service,
    async close() {
      await Promise.all([shut(server), service.close()]);
    },
  };
}

async function readJson(request) {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > 10_000) return null;
  }
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function portFrom(text, fallback) {
  const port = Number(text ?? fallback);
  if (Number.isInteger(port) && port >= 0 && port < 65_536) return port;
  throw new RangeError(`A port is a whole number from 0 to 65535, not "${text}"`);
}

async function main() {
  const port = portFrom(process.env.PORT, 4173);
  const demo = await startDemo({ port, servicePort: portFrom(process.env.SERVICE_PORT, 4174) });
  console.log(`
  Tripcurve is at ${demo.url}   (the service it calls: ${demo.service.url})

    1  Set steady calls going, then the service to "503": the point climbs to the curve and the circuit opens.
    2  Reload the page while it is open: it is still open, with the same countdown.
    3  Set steady calls going and the service to "Working": two probes go through and the circuit closes.
    4  Open the page in a second tab: both show the same verdict.

  Ctrl+C ends it.
`);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => demo.close().then(() => process.exit(0)));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await main();
