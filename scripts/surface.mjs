// What a user of the package can name: every export of every entry with its type, and the files npm publishes. Two tracked lists in
// tests/surface/ that a test compares; `npm run surface -- --update` rewrites them, so that a change of either is part of the diff.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { build } from "./build.mjs";
import { env, fail, isMain, root, say } from "./shell.mjs";

export const lists = { "exports.txt": publicExports, "files.txt": packedFiles };
export const listPath = (name) => join(root, "tests", "surface", name);

/** The entries of package.json that are code: [import specifier, types, default file]. */
export function entries() {
  const { name, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.entries(exports)
    .filter(([, target]) => target.default)
    .map(([subpath, { default: target }]) => ({ specifier: name + subpath.slice(1), types: join(root, target.types), file: join(root, target.default) }));
}

function publicExports() {
  const all = entries();
  const program = ts.createProgram(
    all.map(({ types }) => types),
    { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, target: ts.ScriptTarget.ES2022, types: [] },
  );
  return all.map(({ specifier, types }) => [`# ${specifier}`, ...describe(program, types), ""].join("\n")).join("\n");
}

function describe(program, path) {
  const checker = program.getTypeChecker();
  return checker
    .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path)))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((symbol) => declarations(checker, symbol).map(print));
}

/** Where a symbol is written out: through re-exports, and through an entry's `const X: typeof api.X` with its `type X = api.X`. */
function declarations(checker, symbol) {
  const origin = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  return (origin.declarations ?? []).flatMap((declaration) => {
    if (ts.isVariableDeclaration(declaration) && declaration.type && ts.isTypeQueryNode(declaration.type))
      return declarations(checker, checker.getSymbolAtLocation(declaration.type.exprName));
    if (ts.isTypeAliasDeclaration(declaration) && ts.isTypeReferenceNode(declaration.type) && ts.isQualifiedName(declaration.type.typeName)) return [];
    return [declaration];
  });
}

const printer = ts.createPrinter({ removeComments: true });

function print(declaration) {
  const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : withoutPrivate(declaration);
  return printer.printNode(ts.EmitHint.Unspecified, node, declaration.getSourceFile()).replace(/^export /, "").replace(/^declare /, "");
}

function withoutPrivate(node) {
  if (!ts.isClassDeclaration(node)) return node;
  const members = node.members.filter((member) => !ts.isPrivateIdentifier(member.name ?? node) && !(ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private));
  return ts.factory.updateClassDeclaration(node, node.modifiers, node.name, node.typeParameters, node.heritageClauses, members);
}

function packedFiles() {
  // The build is up to date here, and its output would get mixed into the list.
  const [{ files }] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"], { cwd: root, env, encoding: "utf8" }));
  return `${files.map(({ path }) => path).sort().join("\n")}\n`;
}

async function main() {
  await build();
  for (const [name, make] of Object.entries(lists)) {
    const text = make();
    if (process.argv.includes("--update")) writeFileSync(listPath(name), text);
    say(text);
  }
}

if (isMain(import.meta.url)) main().catch(fail);
