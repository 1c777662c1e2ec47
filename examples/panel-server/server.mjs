// A gateway in front of UPSTREAM, with a circuit for each origin, and a page of all its circuits at /circuits.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { wrapFetch } from "tripcurve";
import { panelFeed, renderCircuits } from "tripcurve/panel";

const { UPSTREAM = "https://api.example.com", PORT = "4100", CONTROLS } = process.env;

const guarded = wrapFetch(fetch, { timeoutMs: 5_000, onOpen: "respond" });
const feed = panelFeed(guarded.registry, { controls: CONTROLS === "1" }); // from the start, so that transitions are known

// What a browser needs of the package: its modules, which are one folder.
const modules = new URL("..", import.meta.resolve("tripcurve/panel"));

const page = () => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Circuits</title>
<script type="module" src="/modules/page.js"></script>
</head>
<body>
<h1>Circuits</h1>
<tripcurve-panel src="/circuits.json" controls>${renderCircuits(feed)}</tripcurve-panel>
</body>
</html>`;
const script = 'import { definePanel } from "./panel/index.js"; definePanel();';

const routes = {
  async "GET /circuits"(_, response) {
    response.setHeader("Content-Security-Policy", "default-src 'self'").setHeader("Content-Type", "text/html; charset=utf-8").end(page());
  },
  async "GET /circuits.json"({ searchParams }, response) {
    response.setHeader("Content-Type", "application/json").end(JSON.stringify(feed.news(searchParams.get("after"))));
  },
  // Only as JSON: a form of another site cannot send that.
  async "POST /circuits.json"(_, response, request) {
    const isJson = request.headers["content-type"] === "application/json";
    response.writeHead(isJson && feed.act(await json(request)) ? 204 : 403).end();
  },
};

async function json(request) {
  let text = "";
  for await (const chunk of request) if ((text += chunk).length > 1_000) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function module({ pathname }, response) {
  const file = new URL(pathname.slice("/modules/".length), modules);
  const isModule = file.href.startsWith(modules.href) && file.pathname.endsWith(".js");
  const code = pathname === "/modules/page.js" ? script : isModule && (await readFile(fileURLToPath(file)).catch(() => null));
  response.writeHead(code ? 200 : 404, { "Content-Type": "text/javascript" }).end(code || "");
}

async function gateway({ pathname, search }, response, { method }) {
  try {
    const answer = await guarded(new URL(pathname + search, UPSTREAM), { method });
    response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
  } catch (error) {
    response.writeHead(502).end(String(error));
  }
}

const server = createServer((request, response) => {
  const url = new URL(request.url, "http://gateway");
  const route = routes[`${request.method} ${url.pathname}`] ?? (url.pathname.startsWith("/modules/") ? module : gateway);
  void route(url, response, request);
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/ leads to ${UPSTREAM}; its circuits are at /circuits`));
