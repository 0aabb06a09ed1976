// Makes the types of the API from its OpenAPI document, and the version: `node types.mjs openapi.json api.ts`.
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const [document, target] = process.argv.slice(2);

// An enumeration may get new values, so those of answers are open. What callers choose from stays closed: typos show.
const ASKED_FOR = /\/(StatusFilter|Sort)$/;
const ANY_OTHER = ts.factory.createIntersectionTypeNode([
  ts.factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword),
  ts.factory.createTypeLiteralNode([]), // or editors would forget the known values
]);

function transform(schema, { path }) {
  if (!schema.enum || schema.type !== "string" || ASKED_FOR.test(path)) return undefined;
  const known = schema.enum.map((value) => ts.factory.createLiteralTypeNode(ts.factory.createStringLiteral(value)));
  return ts.factory.createUnionTypeNode([...known, ANY_OTHER]);
}

const tree = await openapiTS(JSON.parse(readFileSync(document, "utf-8")), { immutable: true, transform });
const { version } = JSON.parse(readFileSync("package.json", "utf-8"));
writeFileSync(target, `${astToString(tree)}export const VERSION = ${JSON.stringify(version)};\n`);
