import type { components, operations } from "./api.js";
import { decompressed, linesOf } from "./bytes.js";
import { Connection, type NamedFile, type Options } from "./connection.js";
import { applyStep, linesById, sortedIds, stateOf, valueOf, type Copy, type Lines, type Store } from "./copy.js";
import { ApiError, noSite } from "./errors.js";

type Schemas = components["schemas"];

/** A market as lists show it. Properties that are newer than this program are kept. */
export type ListedMarket = Schemas["PublicMarketListItem"];
/** A market as its detail and dumps show it. */
export type Market = Schemas["PublicMarketDetailMarket"];
/** A market with order book, recent fills and history. */
export type MarketDetail = Schemas["PublicMarketDetail"];
/** A row of the lists of questions: a question, or a market that is in none. */
export type Question = Schemas["QuestionListItem"];
/** A question with all its markets. */
export type QuestionDetail = Schemas["QuestionDetail"];
export type Snapshot = Schemas["PublicMarketSnapshot"];
export type Build = Schemas["BuildRecord"];
export type Prices = Schemas["Prices"];

/** What to list: `status`, `sort`, `category` and `q`, as the API has them; `limit` is the size of its pages (100). */
export type Query = Omit<NonNullable<operations["listMarkets"]["parameters"]["query"]>, "cursor">;
/** What to list of questions: the same, but for `q`. */
export type QuestionQuery = Omit<NonNullable<operations["listQuestions"]["parameters"]["query"]>, "cursor">;

/** What became of a market; `before` and `market` are null where it did not exist. */
export interface Change {
  readonly kind: "added" | "changed" | "gone";
  readonly id: string;
  readonly before: Market | null;
  readonly market: Market | null;
}

type WhenExpired = "restart" | "error";
type Check = (found: any) => unknown;
/** A page of a list, of whichever resource. */
interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** How often something is begun anew that gets no further; pages without a market that is new; a cursor's letters. */
const [TRIES, MOST_IDLE, LONGEST_CURSOR] = [3, 100, 4_000];
/** The bytes of steps that are applied; the dump costs hardly more than so many. */
const MOST_APPLIED = 256 << 20;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const SHA256 = /^[0-9a-f]{64}$/;
/** A step is named by the first half of its digest. */
const STEP = /^[0-9a-f]{32}\.ndjson\.gz$/;

/** Reads a site. Every request that fails for good throws an `ApiError`. */
export class Client {
  readonly #base: string;
  readonly #connection: Connection;

  /** `base` is the address of the site before /v1, such as `https://api.example.org`. */
  constructor(base: string, options: Options = {}) {
    this.#base = base.trim().replace(/(?<![:/])(\/+v1)?\/*$/, "");
    this.#connection = new Connection(this.#base, options);
  }

  /**
   * Each market of a list, once, in the order of the list.
   *
   * Where a cursor has expired, `restart` goes on in the new list, without what came already; `error` does not.
   */
  markets(query: Query = {}, options: { onExpired?: WhenExpired } = {}): AsyncGenerator<ListedMarket, void> {
    return this.#walk("markets", query, options);
  }

  /**
   * Each question of a list, and each market that is in none, once, as `markets` walks.
   *
   * A site without lists of questions answers with a 404.
   */
  questions(query: QuestionQuery = {}, options: { onExpired?: WhenExpired } = {}): AsyncGenerator<Question, void> {
    return this.#walk("questions", query, options);
  }

  async *#walk<T extends { readonly id: string }>(
    resource: "markets" | "questions",
    query: Query,
    options: { onExpired?: WhenExpired },
  ): AsyncGenerator<T, void> {
    const seen = new Set<string>();
    let [cursor, idle, hasRestarted]: [string | null, number, boolean] = [null, 0, false];
    let pages = 0; // without an item that is new
    for (;;) {
      let page: Page<T>;
      try {
        page = await this.#page(resource, query, cursor);
      } catch (error) {
        const isMissing = error instanceof ApiError && error.status === 404;
        if (isMissing && resource === "markets") throw noSite(this.#base, 404); // every site has lists of these
        const isExpired = error instanceof ApiError && error.path[0] === "cursor";
        if (!isExpired || options.onExpired === "error" || idle === TRIES) throw error;
        await this.#connection.wait(1000 * idle ** 3); // a cache on the way may still have the old first page
        [cursor, idle, hasRestarted] = [null, idle + 1, true];
        continue;
      }
      pages += 1;
      for (const item of page.items) {
        if (seen.has(item.id)) {
          if (hasRestarted) continue;
          throw new ApiError(this.#base, `lists ${item.id} twice`);
        }
        seen.add(item.id);
        idle = pages = 0;
        yield item;
      }
      if (page.nextCursor === null) return;
      // In a new list, all that came already may come first, an item to a page.
      const isEndless = page.nextCursor === cursor || pages > seen.size + MOST_IDLE;
      if (isEndless) throw new ApiError(this.#base, "has a page that leads to itself, or to nothing new");
      if (page.nextCursor.length > LONGEST_CURSOR) throw new ApiError(this.#base, "has a nextCursor that is too long");
      cursor = page.nextCursor;
    }
  }

  /** One market by its id, or its slug where the site has them. One that is not public is a 404. */
  market(ref: string): Promise<MarketDetail> {
    return this.#json(`/v1/public/markets/${encodeURIComponent(ref)}`, (found) => isIt(found?.market, ref));
  }

  /**
   * One question by its id, or its slug where the site has them, with all its markets. One that is not public is a 404,
   * and so is a row of the kind `single`: that is a market.
   */
  question(ref: string): Promise<QuestionDetail> {
    const isDetail = (found: any) => isIt(found?.question, ref) && Array.isArray(found.markets);
    return this.#json(`/v1/public/questions/${encodeURIComponent(ref)}`, isDetail);
  }

  /** Small groups of open markets, for a landing page. */
  snapshot(): Promise<Snapshot> {
    const groups = ["freshMarkets", "closingSoonMarkets"];
    return this.#json("/v1/public/markets/snapshot", (found) => groups.every((name) => Array.isArray(found?.[name])));
  }

  /** How fresh the data is, how many markets there are, and what the site offers. */
  build(): Promise<Build> {
    return this.#json("/v1/build.json", (found) => typeof found?.asOf === "string");
  }

  /** Probability and volume of each open market. A site without them answers with a 404. */
  prices(): Promise<Prices> {
    return this.#json("/v1/prices.json", (found) => Array.isArray(found?.markets));
  }

  /** Each listed market, ascending by id. The whole file is checked before the first one comes. */
  async *dump(): AsyncGenerator<Market, void> {
    const path = "/v1/dumps/head.json";
    const isHead = (found: any) => Array.isArray(found?.markets) && found.markets.every(isDump);
    const [file, url] = await this.#fromHead<Schemas["DumpHead"], [Blob, string]>(path, isHead, async (head) => {
      const found = head.markets.find(isNdjson);
      if (found === undefined) throw new ApiError(this.#base + path, "names no NDJSON");
      const named = this.#dumpFile(found);
      return [await this.#connection.file(named), named.url];
    });
    for await (const [, market] of this.#linesIn(file, url)) yield market;
  }

  /**
   * Bring a copy up to date and tell, once it is saved, what has changed.
   *
   * It begins with the dump and goes on with the steps of the change feed. Its digest is the one that the site names.
   * With an `interval` in milliseconds, look for the next build again and again, until the loop is left.
   */
  async *follow(store: Store, { interval }: { interval?: number } = {}): AsyncGenerator<Change, void> {
    for (;;) {
      const before = await store.load();
      const after = await this.#newest(before);
      const [old, lines] = [before?.lines ?? new Map<string, string>(), after.lines];
      const changed = sortedIds(new Map([...old, ...lines])).filter((id) => old.get(id) !== lines.get(id));
      const isMoved = after.session !== before?.session || after.serial !== before.serial;
      const isRedefined = after.questions !== (before?.questions ?? null);
      if (isMoved || isRedefined || changed.length > 0) await store.save(after, changed);
      for (const id of changed) yield changeOf(id, old.get(id), lines.get(id));
      if (interval === undefined) return;
      await this.#connection.wait(interval);
    }
  }

  /** The newest state: made of the copy by steps if they lead there, else of the dump. */
  #newest(copy: Copy | null): Promise<Copy> {
    const path = "/v1/changes/head.json";
    return this.#fromHead<Schemas["ChangesHead"], Copy>(path, isChangesHead, async (head, attempt) => {
      const steps = copy && attempt === 1 ? stepsSince(copy, head) : null;
      const lines = new Map(steps && copy?.lines);
      if (steps === null) {
        for (const [id, line] of linesById(await this.#lines(this.#dumpFile(head.dump)))) lines.set(id, line);
      }
      let room = MOST_APPLIED;
      for (const { name, size } of steps ?? []) {
        const url = this.#absolute(head.stepsUrl) + name;
        const step = await this.#lines({ url, size, digest: name.slice(0, 32) }, room);
        await applyStep(lines, step);
        for (const line of step) room -= line.length;
      }
      const state = await stateOf(lines);
      if (state !== head.state) throw new ApiError(this.#base + path, "has another digest than the copy");
      const questions = await this.#definitions(copy?.questions ?? null, head.questions);
      return { session: head.session, serial: head.serial, lines, questions };
    });
  }

  /** The definitions of questions that a head names: those of the copy if they are the same; null if it names none. */
  async #definitions(known: Lines | null, named: Schemas["ChangesHead"]["questions"]): Promise<Lines | null> {
    if (named === undefined) return null;
    if (known !== null && (await stateOf(known)) === named.state) return known;
    const file = this.#dumpFile(named.files.find(isNdjson)!);
    const questions = linesById(await this.#lines(file));
    if ((await stateOf(questions)) !== named.state) throw new ApiError(file.url, "has another digest than the head says");
    return questions;
  }

  /** What the files make that a head names. If one is missing or wrong, the head is read again: it may be newer. */
  async #fromHead<H, T>(path: string, isHead: Check, use: (head: H, attempt: number) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const head = await this.#json<H>(path, isHead);
      try {
        return await use(head, attempt);
      } catch (error) {
        // A newer head may name better files: one is missing, damaged, or not what it should be.
        const isAboutFiles = !(error instanceof ApiError) || [0, 404, 410].includes(error.status);
        if (!isAboutFiles || attempt === TRIES) throw error;
        await this.#connection.wait(1000 * (attempt - 1));
      }
    }
  }

  async #lines(file: NamedFile, most?: number): Promise<string[]> {
    const lines: string[] = [];
    for await (const [line] of this.#linesIn(await this.#connection.file(file), file.url, most)) lines.push(line);
    return lines;
  }

  /** The lines of a file and their values. Throws `ApiError` if it is damaged. */
  async *#linesIn(file: Blob, url: string, most = this.#connection.largestFile): AsyncGenerator<[string, any]> {
    try {
      for await (const line of linesOf(decompressed(file), most)) yield [line, valueOf(line)];
    } catch (cause) {
      throw new ApiError(url, `is damaged: ${cause instanceof Error ? cause.message : cause}`, { cause });
    }
  }

  #page<T>(resource: string, query: Query, cursor: string | null): Promise<Page<T>> {
    const given = Object.entries({ limit: 100, ...query, cursor }).filter(([, value]) => value != null);
    const asked = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
    return this.#json(`/v1/public/${resource}?${asked}`, isPage);
  }

  #json<T>(path: string, isValid: Check): Promise<T> {
    return this.#connection.json(this.#base + path, isValid);
  }

  #dumpFile({ url, size, sha256 }: Omit<Schemas["MarketsFile"], "name" | "format">): NamedFile {
    return { url: this.#absolute(url), size, digest: sha256 };
  }

  /** Heads may name files by addresses relative to themselves, which all have the same depth. */
  #absolute(url: string): string {
    return this.#connection.permitted(url, `${this.#base}/v1/changes/head.json`);
  }
}

function isPage(found: any): boolean {
  const isItem = (item: any) => typeof item?.id === "string";
  const isCursor = found?.nextCursor === null || typeof found?.nextCursor === "string";
  return isCursor && Array.isArray(found.items) && found.items.every(isItem);
}

/** Whether this can be what was asked for: by another id than this, or by a slug, it cannot be told. */
function isIt(found: any, ref: string): boolean {
  return typeof found?.id === "string" && (!UUID.test(ref) || found.id === ref.toLowerCase());
}

function isDump(file: any): boolean {
  return typeof file?.url === "string" && Number.isSafeInteger(file.size) && SHA256.test(file.sha256);
}

function isChangesHead(found: any): boolean {
  const isStep = (step: any) => STEP.test(step?.name) && Number.isSafeInteger(step.size);
  const areTexts = [found?.session, found?.stepsUrl].every((text) => typeof text === "string");
  const hasState = Number.isSafeInteger(found?.serial) && SHA256.test(found.state) && isDump(found.dump);
  return areTexts && hasState && Array.isArray(found.steps) && found.steps.every(isStep) && areDefined(found.questions);
}

/** Whether a head says where definitions of questions are, or that there are none. */
function areDefined(named: any): boolean {
  if (named === undefined) return true;
  const { state, files } = named ?? {};
  return SHA256.test(state) && Array.isArray(files) && files.every(isDump) && files.some(isNdjson);
}

function isNdjson(file: { readonly format: string }): boolean {
  return file.format === "ndjson";
}

/** The steps that lead from a copy to the newest state; null if none do. */
function stepsSince(copy: Copy, head: Schemas["ChangesHead"]): Schemas["ChangesHead"]["steps"] | null {
  const behind = head.serial - copy.serial;
  if (copy.session !== head.session || behind < 0 || behind > head.steps.length) return null;
  return head.steps.slice(head.steps.length - behind);
}

function changeOf(id: string, before: string | undefined, after: string | undefined): Change {
  const kind = before === undefined ? "added" : after === undefined ? "gone" : "changed";
  return { kind, id, before: JSON.parse(before ?? "null"), market: JSON.parse(after ?? "null") };
}
