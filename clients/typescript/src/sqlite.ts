import type { Copy, Lines, Store } from "./copy.js";

/** What is used of a database: `DatabaseSync` of `node:sqlite` has it, and so has that of better-sqlite3. */
export interface Database {
  prepare(sql: string): { all(): any[]; run(...values: any[]): unknown };
}

/**
 * Keeps a copy in SQLite: the table `markets` has the id and the line of each, `questions` those of definitions where
 * the site has some, and `position` the place in the feed.
 */
export class SqliteStore implements Store {
  constructor(readonly database: Database) {
    this.#run("CREATE TABLE IF NOT EXISTS markets (id TEXT PRIMARY KEY, line TEXT NOT NULL)");
    this.#run("CREATE TABLE IF NOT EXISTS position (session TEXT, serial INTEGER)");
  }

  async load(): Promise<Copy> {
    const [position = { session: "", serial: 0 }] = this.database.prepare("SELECT * FROM position").all();
    const known = this.database.prepare("SELECT name FROM sqlite_master WHERE name = 'questions'").all();
    const questions = known.length > 0 ? this.#lines("questions") : null;
    return { ...position, lines: this.#lines("markets"), questions };
  }

  async save({ session, serial, lines, questions }: Copy): Promise<void> {
    this.#run("BEGIN IMMEDIATE");
    try {
      this.#run("DELETE FROM markets");
      this.#insert("markets", lines);
      this.#run("DROP TABLE IF EXISTS questions");
      if (questions !== null) {
        this.#run("CREATE TABLE questions (id TEXT PRIMARY KEY, line TEXT NOT NULL)");
        this.#insert("questions", questions);
      }
      this.#run("REPLACE INTO position (rowid, session, serial) VALUES (1, ?, ?)", session, serial);
      this.#run("COMMIT");
    } catch (error) {
      this.#run("ROLLBACK");
      throw error;
    }
  }

  #lines(table: string): Lines {
    const rows = this.database.prepare(`SELECT id, line FROM ${table}`).all();
    return new Map(rows.map(({ id, line }) => [id, line]));
  }

  #insert(table: string, lines: Lines): void {
    const insert = this.database.prepare(`INSERT INTO ${table} VALUES (?, ?)`);
    for (const one of lines) insert.run(...one);
  }

  #run(sql: string, ...values: unknown[]): void {
    this.database.prepare(sql).run(...values);
  }
}
