import { sha256 } from "./bytes.js";

/** Lines of NDJSON by the ids with which they begin, exactly as the site writes them. */
export type Lines = ReadonlyMap<string, string>;

/** All markets of a site at one state of its change feed. */
export interface Copy {
  readonly session: string;
  readonly serial: number;
  /** The line of each market: the JSON of `market` in its detail. */
  readonly lines: Lines;
  /** The line of each question: its definition. Null if the site has no questions. */
  readonly questions: Lines | null;
}

/** Where a copy is kept. `save` replaces it as a whole or not at all. */
export interface Store {
  /** The copy that was saved last; null if there is none, or if it cannot be read. */
  load(): Promise<Copy | null>;
  /** `changed` are the ids whose lines are new, others or gone since the copy that was loaded. */
  save(copy: Copy, changed: readonly string[]): Promise<void>;
}

/** Keeps a copy in memory. */
export class MemoryStore implements Store {
  copy: Copy | null = null;

  async load(): Promise<Copy | null> {
    return this.copy;
  }

  async save(copy: Copy): Promise<void> {
    this.copy = copy;
  }
}

/** The lines by their ids. Throws a `SyntaxError` if one is not that of a market. */
export function linesById(lines: Iterable<string>): Map<string, string> {
  return new Map(Array.from(lines, (line) => [idOf(line), line]));
}

/**
 * The value of a line. Throws a `SyntaxError` if it is no JSON, or an `URIError` if a text has half of a surrogate
 * pair: databases could not keep it, or not read it again.
 */
export function valueOf(line: string): any {
  const check = (name: string, value: unknown) => {
    encodeURIComponent(typeof value === "string" ? `${name} ${value}` : name);
    return value;
  };
  return JSON.parse(line, /\\u[dD][89a-fA-F]/.test(line) ? check : undefined);
}

/** The id with which a line begins. Others would have another order, or no place, in some store. */
function idOf(line: string): string {
  const id = /^\{"id":"([ !#-[\]-~]+)"[,}]/.exec(line)?.[1];
  if (id === undefined) throw new SyntaxError(`not the line of a market: ${line.slice(0, 80)}`);
  return id;
}

/** The ids in the order of dumps. */
export function sortedIds(lines: Lines): string[] {
  return [...lines.keys()].sort();
}

/** The digest that a head calls `state`. */
export async function stateOf(lines: Lines): Promise<string> {
  return sha256(await new Blob(sortedIds(lines).map((id) => `${lines.get(id)}\n`)).arrayBuffer());
}

/** Apply a step to the lines of a copy. Throws a `SyntaxError` if it is none. */
export async function applyStep(lines: Map<string, string>, step: readonly string[]): Promise<void> {
  const gone = new Set(step.flatMap((line) => /^\{"gone":"([0-9a-f]{64})"\}$/.exec(line)?.[1] ?? []));
  if (gone.size > 0) {
    const ids = [...lines.keys()];
    const digests = await Promise.all(ids.map((id) => sha256(new TextEncoder().encode(id))));
    for (const [at, id] of ids.entries()) if (gone.has(digests[at]!)) lines.delete(id);
  }
  for (const line of step.slice(gone.size)) {
    const id = idOf(line);
    const known = lines.get(id);
    lines.set(id, known === undefined ? line : lineOf([...properties(known), ...properties(line)]));
  }
}

/** The names and values of a line as they are written: `"prob"` and `0.50`. Encoded again, they could be others. */
function properties(line: string): [name: string, value: string][] {
  JSON.parse(line); // in what is no JSON, each quotation mark would be looked for anew
  const found: [string, string][] = [];
  let [depth, start, name] = [0, 1, ""];
  for (const { 0: token, index } of line.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]/g)) {
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    if (depth === 1 && token === ":") [name, start] = [line.slice(start, index), index + 1];
    if (depth === 0 || (depth === 1 && token === ",")) {
      found.push([name, line.slice(start, index)]);
      start = index + 1;
    }
  }
  return found;
}

/** A line; of properties with the same name, the last one, in the place of the first. */
function lineOf(all: readonly [name: string, value: string][]): string {
  return `{${Array.from(new Map(all), ([name, value]) => `${name}:${value}`).join(",")}}`;
}
