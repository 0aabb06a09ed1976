import { createReadStream } from "node:fs";
import { open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { linesOf } from "./bytes.js";
import { linesById, sortedIds, type Copy, type Store } from "./copy.js";

/** Keeps a copy as NDJSON, one market per line, ascending by id; its place in the feed is in `PATH.position`. */
export class FileStore implements Store {
  constructor(readonly path: string) {}

  async load(): Promise<Copy | null> {
    try {
      const { session, serial } = JSON.parse(await readFile(`${this.path}.position`, "utf-8"));
      if (typeof session !== "string" || !Number.isInteger(serial)) return null;
      const lines: string[] = [];
      for await (const line of linesOf(createReadStream(this.path))) lines.push(line);
      return { session, serial, lines: linesById(lines) };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (error instanceof SyntaxError || code === "ENOENT") return null;
      throw error;
    }
  }

  /** The position comes last: if it stays the old one, the next digest differs, and the copy begins with the dump. */
  async save(copy: Copy): Promise<void> {
    await replace(this.path, sortedIds(copy.lines).map((id) => `${copy.lines.get(id)}\n`));
    await replace(`${this.path}.position`, [JSON.stringify({ session: copy.session, serial: copy.serial })]);
  }
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
