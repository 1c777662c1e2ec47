// The table of docs/hosts.md: what the last run of the matrix found. `npm run test:hosts -- --update` writes it.
import { readFileSync, writeFileSync } from "node:fs";

const page = new URL("../../docs/hosts.md", import.meta.url);
const [BEGIN, END] = ["<!-- made by npm run test:hosts -- --update -->", "<!-- end -->"];

export function tableOf(rows) {
  const lines = rows.map(({ host, version, how, backend }) => `| ${host} | ${version} | ${how} | \`${backend}\` |`);
  return ["| host | tested version | how | `backend` |", "|---|---|---|---|", ...lines].join("\n");
}

/** The rows that the page has, as they are written. */
export const written = () => readFileSync(page, "utf8").split(BEGIN)[1].split(END)[0].trim().split("\n").slice(2);

export function write(rows) {
  const [before, rest] = readFileSync(page, "utf8").split(BEGIN);
  writeFileSync(page, `${before}${BEGIN}\n${tableOf(rows)}\n${END}${rest.split(END)[1]}`);
}
