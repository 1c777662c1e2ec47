// `npm run www`: the page as files that any host can serve, also in a folder below its root; they are in target/www. There the service that
// fails on demand is a service worker.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { build as bundle } from "esbuild";
import { build as vite } from "vite";
import { build } from "./build.mjs";
import { entries } from "./surface.mjs";
import { fail, isMain, root, say } from "./shell.mjs";

export const folder = join(root, "target", "www");

export async function buildPage() {
  rmSync(folder, { recursive: true, force: true });
  const html = {
    name: "the page without a server",
    // package.json says of the package that its modules do nothing by themselves; those of the page do.
    transform: (code, id) => (id.startsWith(join(root, "www")) && id.endsWith(".js") ? { code, map: null, moduleSideEffects: true } : null),
    transformIndexHtml: { order: "pre", handler: (text) => text.replace(/^<script type="importmap">.*\n/m, "").replace('src="/main.js"', 'src="/static/main.js"') },
  };
  await vite({
    root: join(root, "www"),
    base: "./",
    configFile: false,
    logLevel: "error",
    plugins: [html],
    // The package by its own names.
    resolve: { alias: entries().map(({ specifier, file }) => ({ find: new RegExp(`^${specifier}$`), replacement: file })) },
    build: { outDir: folder, emptyOutDir: true, target: "es2022", assetsInlineLimit: 0, modulePreload: false },
  });
  await bundle({ entryPoints: [join(root, "www", "static", "service-worker.js")], bundle: true, minify: true, format: "esm", target: "es2022", outfile: join(folder, "service-worker.js"), logLevel: "error" });
}

async function main() {
  await build();
  await buildPage();
  say(`The page is in ${folder}`);
}

if (isMain(import.meta.url)) main().catch(fail);
