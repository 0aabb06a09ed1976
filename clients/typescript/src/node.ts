import { createReadStream } from "node:fs";
import { open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { linesOf } from "./bytes.js";
import { linesById, sortedIds, type Copy, type Lines, type Store } from "./copy.js";

/**
 * Keeps a copy as NDJSON, one market per line, ascending by id; its place in the feed is in `PATH.position`, and the
 * definitions of questions, where the site has some, are in `PATH.questions`.
 */
export class FileStore implements Store {
  constructor(readonly path: string) {}

  async load(): Promise<Copy | null> {
    try {
      const { session, serial } = JSON.parse(await readFile(`${this.path}.position`, "utf-8"));
      if (typeof session !== "string" || !Number.isInteger(serial)) return null;
      const lines = await linesIn(this.path);
      return lines && { session, serial, lines, questions: await linesIn(`${this.path}.questions`) };
    } catch (error) {
      if (isLost(error)) return null;
      throw error;
    }
  }

  /** The position comes last: if it stays the old one, the next digest differs, and the copy begins with the dump. */
  async save(copy: Copy): Promise<void> {
    await replaceLines(this.path, copy.lines);
    if (copy.questions !== null) await replaceLines(`${this.path}.questions`, copy.questions);
    else await rm(`${this.path}.questions`, { force: true });
    await replace(`${this.path}.position`, [JSON.stringify({ session: copy.session, serial: copy.serial })]);
  }
}

/** The lines of a file; null if there is none, or if they cannot be read. */
async function linesIn(path: string): Promise<Lines | null> {
  try {
    const lines: string[] = [];
    for await (const line of linesOf(createReadStream(path))) lines.push(line);
    return linesById(lines);
  } catch (error) {
    if (isLost(error)) return null;
    throw error;
  }
}

function isLost(error: unknown): boolean {
  return error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT";
}

function replaceLines(path: string, lines: Lines): Promise<void> {
  return replace(path, sortedIds(lines).map((id) => `${lines.get(id)}\n`));
}

/** Replace a file once all of it is on the disk. */
async function replace(path: string, pieces: string[]): Promise<void> {
  const part = `${path}.${process.pid}.part`;
  try {
    const file = await open(part, "w");
    try {
      await writeFile(file, new Blob(pieces).stream());
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, path);
  } finally {
    await rm(part, { force: true });
  }
}
