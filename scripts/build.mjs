// `npm run build`: Rust → pkg/ (wasm-pack, wasm-opt, the bytes as text) → dist/ (tsc beside a copy of what pkg/ holds). Only what changed.
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { StepError, exclusively, fail, filesUnder, fingerprint, isCurrent, isMain, output, root, run, stamp, timed, unstamp } from "./shell.mjs";

/** `published`: what the sources in js/ import. The runtime is linked by hand, so its glue stays behind. */
const modules = [
  { name: "tripcurve", label: "Wasm runtime", folder: "pkg", cargo: [], published: ["tripcurve_bg.wasm", "bytes.js"] },
  { name: "core", label: "Wasm core on plain objects", folder: "pkg/core", cargo: ["--features", "objects"], published: ["core_bg.wasm", "core_bg.js", "bytes.js"] },
];

/** What wasm-opt is to do: `npm run flags` shows what each is worth. */
export const optimise = [
  "--no-inline=*add_first*", // cold; in the place of its one call it would take registers from the hot path
  ...["-Os", "--skip-pass=local-cse", "--reorder-functions"], // smaller after gzip
  ...["--low-memory-unused", "--zero-filled-memory"], // at the low end of memory there is only the end of the stack; memory is never imported
];

export const build = () =>
  exclusively("build", async () => {
    const source = wasmInputs();
    for (const module of modules) await buildWasm(module, source);
    await buildTranslation(source);
    await buildPackage();
  });

function wasmInputs() {
  const rust = filesUnder("Cargo.toml", "Cargo.lock", "src").filter((file) => /\.(rs|toml|lock)$/.test(file));
  return fingerprint([...rust, ...filesUnder("scripts/build.mjs", "node_modules/binaryen/package.json", "node_modules/esbuild/package.json")], output("rustc", ["-V"]));
}

async function buildWasm({ name, label, folder, cargo }, source) {
  const out = join(root, folder);
  const file = (suffix) => join(out, `${name}${suffix}`);
  const made = [file("_bg.js"), file("_bg.wasm"), file("_bg.d.ts"), file("_bg.d.wasm.ts"), join(out, "bytes.js")];
  if (isCurrent(`wasm-${name}`, source) && made.every(existsSync)) return;
  unstamp(`wasm-${name}`);
  await timed(`${label} (${folder}/)`, async () => {
    // Cleaned and optimised by us: wasm-pack's own .gitignore would empty `npm pack`, its wasm-opt would be downloaded.
    await run("wasm-pack", [
      ...["build", "src/wasm", "--target", "bundler", "--release", "--mode", "no-install", "--no-opt", "--no-pack", "--no-gitignore"],
      ...["--out-dir", join("..", "..", folder), "--out-name", name, "--", ...cargo],
    ]);
    const wasm = file("_bg.wasm");
    // No feature flags: wasm-opt reads the features the compiler recorded. With --all-features it writes what Node 20 cannot load.
    await run("wasm-opt", [wasm, ...optimise, "--strip-debug", "--strip-producers", "--strip-target-features", "-o", wasm]);

    const bytes = readFileSync(wasm);
    if (!WebAssembly.validate(bytes)) throw new StepError(`this Node (${process.version}) cannot load ${wasm}`);
    await writeBytes(join(out, "bytes.js"), bytes);

    // wasm-pack describes its own loader; ours links the glue itself, so the glue needs a description, and the module as an import another.
    rmSync(file("_bg.wasm.d.ts"), { force: true });
    writeFileSync(file("_bg.d.ts"), `export * from "./${name}.js";\nexport function __wbg_set_wasm(exports: WebAssembly.Exports): void;\n`);
    writeFileSync(file("_bg.d.wasm.ts"), "declare const module: WebAssembly.Module;\nexport default module;\n");
  });
  stamp(`wasm-${name}`, source);
}

/**
 * The runtime as JavaScript, for hosts that refuse WebAssembly. Compiled for the first WebAssembly there was: later instructions have no
 * translation, and wasm-bindgen would use tables of references. Given as one function, so that nothing runs at import.
 */
async function buildTranslation(source) {
  const folder = join(root, "pkg", "js");
  const out = join(folder, "runtime.js");
  if (isCurrent("translation", source) && existsSync(out)) return;
  unstamp("translation");
  await timed("The same in JavaScript (pkg/js/)", async () => {
    const work = join(root, "target", "js");
    const at = (name) => join(work, name);
    mkdirSync(folder, { recursive: true });
    await run("cargo", ["build", "--manifest-path", "src/wasm/Cargo.toml", "--target", "wasm32-unknown-unknown", "--release", "--target-dir", work], { env: { RUSTFLAGS: "-C target-cpu=mvp" } });
    await run("wasm-opt", ["-g", "--strip-target-features", at("wasm32-unknown-unknown/release/tripcurve_wasm.wasm"), "-o", at("plain.wasm")]);
    await run("wasm-bindgen", ["--target", "bundler", "--no-typescript", "--out-dir", work, "--out-name", "tripcurve", at("plain.wasm")]);
    // The precompiled parts of Rust's library use these all the same.
    const used = ["--enable-bulk-memory", "--enable-bulk-memory-opt", "--enable-sign-ext", "--enable-nontrapping-float-to-int", "--enable-mutable-globals"];
    const lowered = ["--llvm-memory-copy-fill-lowering", "--signext-lowering", "--llvm-nontrapping-fptoint-lowering"];
    await run("wasm-opt", [at("tripcurve_bg.wasm"), ...used, ...lowered, "-Oz", "--strip-debug", "-o", at("lowered.wasm")]);
    await run("wasm2js", [at("lowered.wasm"), ...used, "-O", "-o", at("translated.js")]);

    const [, body] = /^import [^\n]*\n(.*)\nvar retasmFunc = asmFunc\(/s.exec(readFileSync(at("translated.js"), "utf8")) ?? [];
    if (!body) throw new StepError("wasm2js writes another form than this script expects");
    const { transform } = await import("esbuild");
    const { code } = await transform(`export const make = (imports) => {${body}\nreturn asmFunc(imports);};`, { minify: true, format: "esm" });
    writeFileSync(out, code);
    writeFileSync(join(folder, "runtime.d.ts"), "/** Makes the runtime's exports. Those that give two numbers take the place for them first. */\nexport declare const make: (imports: object) => any;\n");
  });
  stamp("translation", source);
}

/** The module's bytes as one string literal, a character per byte. After gzip a fifth smaller than base64, and decoding is one loop. */
async function writeBytes(path, bytes) {
  const literal = Array.from(bytes, (byte, at) => {
    const next = bytes[at + 1] ?? 0;
    if (byte === 0) return next >= 0x30 && next <= 0x39 ? "\\x00" : "\\0";
    if (byte === 0x0a) return "\\n";
    if (byte === 0x0d) return "\\r";
    if (byte === 0x22) return '\\"';
    if (byte === 0x5c) return "\\\\";
    return String.fromCharCode(byte);
  }).join("");
  writeFileSync(path, `export const bytes = "${literal}";\n`);
  writeFileSync(path.replace(/\.js$/, ".d.ts"), "/** The module's bytes, a character (0 to 255) each. */\nexport declare const bytes: string;\n");

  const { bytes: text } = await import(`${pathToFileURL(path)}?${Date.now()}`);
  if (!Buffer.from(text, "latin1").equals(bytes) || text.length !== bytes.length) throw new StepError(`${path} does not hold the module's bytes`);
}

async function buildPackage() {
  const copied = [...modules.flatMap(({ folder, published }) => published.map((file) => `${folder}/${file}`)), "pkg/js/runtime.js"];
  const inputs = fingerprint(filesUnder("js", "tsconfig.json", "scripts/build.mjs", "node_modules/typescript/package.json", "pkg"));
  const dist = join(root, "dist");
  if (isCurrent("dist", inputs) && existsSync(join(dist, "js", "index.js"))) return;
  await timed("TypeScript (dist/)", async () => {
    // Made beside the old one and exchanged when complete: whoever serves or tests dist/ meanwhile never sees half of it.
    const next = join(root, "target", "dist-next");
    rmSync(next, { recursive: true, force: true });
    await run("tsc", ["--project", "tsconfig.json", "--outDir", next]);
    for (const file of copied) {
      mkdirSync(join(next, file, ".."), { recursive: true });
      copyFileSync(join(root, file), join(next, file));
    }
    await commonJs(next);
    rmSync(dist, { recursive: true, force: true });
    renameSync(next, dist);
  });
  stamp("dist", inputs);
}

/** The same, file by file, for runners that can only `require` (Jest before Node 24.9): one copy of each module, as there is of the others. */
async function commonJs(folder) {
  const files = filesUnder(relative(root, folder)).filter((file) => !/entry\/(.*workerd|edge-light)\./.test(file)); // they import the module as a file
  const out = join(folder, "cjs");
  const { build } = await import("esbuild");
  await build({
    ...{ entryPoints: files.filter((file) => file.endsWith(".js")), outdir: out, outbase: folder, format: "cjs", target: "es2022", charset: "utf8", logLevel: "error" },
    supported: { "dynamic-import": false },
  });
  for (const file of files.filter((file) => file.endsWith(".d.ts"))) {
    mkdirSync(join(out, relative(folder, file), ".."), { recursive: true });
    copyFileSync(file, join(out, relative(folder, file)));
  }
  writeFileSync(join(out, "package.json"), '{ "type": "commonjs" }\n');
}

if (isMain(import.meta.url)) build().catch(fail);
