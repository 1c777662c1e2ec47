// Pages with the panel and the package, from loopback, under a policy that allows no inline style and no script but the one of the page.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { importMap } from "../../www/imports.mjs";
import { listen, shut } from "../../www/listen.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Serves the built package and `pages`: the body of each by its path. */
export async function servePages(pages, style = "") {
  const map = JSON.stringify(await importMap(root));
  const hashed = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const scripts = (body) => [map, ...[...body.matchAll(/<script type="module">(.*?)<\/script>/gs)].map(([, code]) => code)].map(hashed);
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://page").pathname);
    if (Object.hasOwn(pages, path)) {
      const policy = `default-src 'none'; script-src 'self' 'wasm-unsafe-eval' ${scripts(pages[path]).join(" ")}; style-src ${hashed(style)}; connect-src 'self'; require-trusted-types-for 'script'`;
      response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy });
      return response.end(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>Circuits</title><style>${style}</style><script type="importmap">${map}</script></head><body><main>${pages[path]}</main></body></html>`);
    }
    const code = path.startsWith("/dist/") && path.endsWith(".js") ? await readFile(join(root, path)).catch(() => null) : null;
    response.writeHead(code ? 200 : 404, { "Content-Type": "text/javascript" }).end(code ?? "");
  });
  const url = await listen(server, "127.0.0.1", 0);
  return { url, close: () => shut(server) };
}
