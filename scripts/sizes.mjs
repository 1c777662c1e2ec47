// What the package weighs: the Wasm modules, and whole entries as a user's bundler delivers them. `npm run sizes` shows it beside the recorded
// figures in tests/sizes/sizes.json, `npm run sizes -- --update` records it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build as bundle } from "esbuild";
import { build } from "./build.mjs";
import { entries } from "./surface.mjs";
import { fail, isMain, output, root, say } from "./shell.mjs";

export const recordPath = join(root, "tests", "sizes", "sizes.json");

/** The bounds, in bytes after gzip. A module or entry beyond its bound shows as an open `todo` in the tests, and the record keeps it from growing further. */
export const limits = { "Wasm runtime": 6 * 1024, "main entry, everything": 12 * 1024, "tripcurve/panel": 15 * 1000 };

export async function measure() {
  const wasm = (path) => readFileSync(join(root, "dist", "pkg", path));
  return {
    "Wasm runtime": weigh(wasm("tripcurve_bg.wasm")),
    "Wasm core on plain objects": weigh(wasm("core/core_bg.wasm")),
    "main entry, everything": weigh(await bundled('export * from "tripcurve"')),
    "main entry, wrapFetch and localStorage": weigh(
      await bundled('export { wrapFetch } from "tripcurve"; export { localStorageStore } from "tripcurve/stores/local-storage"'),
    ),
    "main entry in workerd, without the module": weigh(await bundled('export * from "tripcurve"', ["workerd"])),
    "the runtime in JavaScript, loaded where WebAssembly is refused": weigh(readFileSync(join(root, "dist", "pkg", "js", "runtime.js"))),
    ...Object.fromEntries(await Promise.all(others().map(async (specifier) => [specifier, weigh(await bundled(`export * from "${specifier}"`))]))),
  };
}

/** Every entry beside the main one, with all it needs that is not there yet when it is the only one. */
const others = () => entries().map(({ specifier }) => specifier).filter((specifier) => specifier !== "tripcurve");

function weigh(bytes) {
  return { raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotliCompressSync(bytes).length };
}

/** What a page loads at once; what is loaded only when it is needed lies in files of its own. */
async function bundled(contents, conditions = []) {
  const { outputFiles, metafile } = await bundle({
    stdin: { contents, resolveDir: root },
    ...{ bundle: true, minify: true, write: false, format: "esm", target: "es2022", charset: "utf8", platform: "neutral", outdir: "out" },
    ...{ splitting: true, metafile: true },
    conditions,
    external: ["cloudflare:workers", "*.wasm", "@opentelemetry/api"],
    logLevel: "error",
  });
  const wanted = [Object.keys(metafile.outputs).find((path) => metafile.outputs[path].entryPoint === "<stdin>")];
  for (const path of wanted) {
    for (const { path: other, kind, external } of metafile.outputs[path].imports) {
      if (!external && kind === "import-statement" && !wanted.includes(other)) wanted.push(other);
    }
  }
  return Buffer.concat(wanted.map((path) => outputFiles.find((file) => file.path.endsWith(path)).contents));
}

export const compiler = () => output("rustc", ["-V"]);

async function main() {
  await build();
  const sizes = await measure();
  const recorded = JSON.parse(readFileSync(recordPath, "utf8")).sizes;
  for (const [name, { raw, gzip, brotli }] of Object.entries(sizes)) {
    const change = recorded[name] ? gzip - recorded[name].gzip : null;
    say(
      `${name.padEnd(64)} ${String(raw).padStart(7)} B  gzip ${String(gzip).padStart(6)}  brotli ${String(brotli).padStart(6)}` +
        `${limits[name] ? `  of at most ${limits[name]}` : ""}${change ? `  (${change > 0 ? "+" : ""}${change} against the record)` : ""}`,
    );
  }
  if (process.argv.includes("--update")) writeFileSync(recordPath, `${JSON.stringify({ compiler: compiler(), sizes }, null, 2)}\n`);
}

if (isMain(import.meta.url)) main().catch(fail);
