import type { Copy, Store } from "./copy.js";

/** What is used of a database: `DatabaseSync` of `node:sqlite` has it, and so has that of better-sqlite3. */
export interface Database {
  prepare(sql: string): { all(): any[]; run(...values: any[]): unknown };
}

/** Keeps a copy in SQLite: the table `markets` has the id and the line of each, `position` the place in the feed. */
export class SqliteStore implements Store {
  constructor(readonly database: Database) {
    this.#run("CREATE TABLE IF NOT EXISTS markets (id TEXT PRIMARY KEY, line TEXT NOT NULL)");
    this.#run("CREATE TABLE IF NOT EXISTS position (session TEXT, serial INTEGER)");
  }

  async load(): Promise<Copy> {
    const [position = { session: "", serial: 0 }] = this.database.prepare("SELECT * FROM position").all();
    const rows = this.database.prepare("SELECT * FROM markets").all();
    return { ...position, lines: new Map(rows.map(({ id, line }) => [id, line])) };
  }

  async save({ session, serial, lines }: Copy): Promise<void> {
    this.#run("BEGIN IMMEDIATE");
    try {
      this.#run("DELETE FROM markets");
      const insert = this.database.prepare("INSERT INTO markets VALUES (?, ?)");
      for (const market of lines) insert.run(...market);
      this.#run("REPLACE INTO position (rowid, session, serial) VALUES (1, ?, ?)", session, serial);
      this.#run("COMMIT");
    } catch (error) {
      this.#run("ROLLBACK");
      throw error;
    }
  }

  #run(sql: string, ...values: unknown[]): void {
    this.database.prepare(sql).run(...values);
  }
}
