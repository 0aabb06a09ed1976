import type { components, operations } from "./api.js";
import { decompressed, linesOf } from "./bytes.js";
import { Connection, type NamedFile, type Options } from "./connection.js";
import { applyStep, linesById, sortedIds, stateOf, valueOf, type Copy, type Store } from "./copy.js";
import { ApiError, noSite } from "./errors.js";

type Schemas = components["schemas"];

/** A market as lists show it. Properties that are newer than this program are kept. */
export type ListedMarket = Schemas["PublicMarketListItem"];
/** A market as its detail and dumps show it. */
export type Market = Schemas["PublicMarketDetailMarket"];
/** A market with order book, recent fills and history. */
export type MarketDetail = Schemas["PublicMarketDetail"];
export type Snapshot = Schemas["PublicMarketSnapshot"];
export type Build = Schemas["BuildRecord"];
export type Prices = Schemas["Prices"];

/** What to list: `status`, `sort`, `category` and `q`, as the API has them; `limit` is the size of its pages (100). */
export type Query = Omit<NonNullable<operations["listMarkets"]["parameters"]["query"]>, "cursor">;

/** What became of a market; `before` and `market` are null where it did not exist. */
export interface Change {
  readonly kind: "added" | "changed" | "gone";
  readonly id: string;
  readonly before: Market | null;
  readonly market: Market | null;
}

type WhenExpired = "restart" | "error";
type Check = (found: any) => unknown;

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
  async *markets(query: Query = {}, options: { onExpired?: WhenExpired } = {}): AsyncGenerator<ListedMarket, void> {
    const seen = new Set<string>();
    let [cursor, idle, hasRestarted]: [string | null, number, boolean] = [null, 0, false];
    let pages = 0; // without a market that is new
    for (;;) {
      let page: Schemas["PublicMarketList"];
      try {
        page = await this.#page(query, cursor);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) throw noSite(this.#base, 404); // every site has lists
        const isExpired = error instanceof ApiError && error.path[0] === "cursor";
        if (!isExpired || options.onExpired === "error" || idle === TRIES) throw error;
        await this.#connection.wait(1000 * idle ** 3); // a cache on the way may still have the old first page
        [cursor, idle, hasRestarted] = [null, idle + 1, true];
        continue;
      }
      pages += 1;
      for (const market of page.items) {
        if (seen.has(market.id)) {
          if (hasRestarted) continue;
          throw new ApiError(this.#base, `lists ${market.id} twice`);
        }
        seen.add(market.id);
        idle = pages = 0;
        yield market;
      }
      if (page.nextCursor === null) return;
      // In a new list, all that came already may come first, a market to a page.
      const isEndless = page.nextCursor === cursor || pages > seen.size + MOST_IDLE;
      if (isEndless) throw new ApiError(this.#base, "has a page that leads to itself, or to nothing new");
      if (page.nextCursor.length > LONGEST_CURSOR) throw new ApiError(this.#base, "has a nextCursor that is too long");
      cursor = page.nextCursor;
    }
  }

  /** One market by its id, or its slug where the site has them. One that is not public is a 404. */
  market(ref: string): Promise<MarketDetail> {
    const isIt = (id: unknown) => typeof id === "string" && (!UUID.test(ref) || id === ref.toLowerCase());
    return this.#json(`/v1/public/markets/${encodeURIComponent(ref)}`, (found) => isIt(found?.market?.id));
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
      const found = head.markets.find((one) => one.format === "ndjson");
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
      if (isMoved || changed.length > 0) await store.save(after, changed);
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
      return { session: head.session, serial: head.serial, lines };
    });
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

  #page(query: Query, cursor: string | null): Promise<Schemas["PublicMarketList"]> {
    const given = Object.entries({ limit: 100, ...query, cursor }).filter(([, value]) => value != null);
    const asked = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
    return this.#json(`/v1/public/markets?${asked}`, isPage);
  }

  #json<T>(path: string, isValid: Check): Promise<T> {
    return this.#connection.json(this.#base + path, isValid);
  }

  #dumpFile({ url, size, sha256 }: Schemas["MarketsFile"]): NamedFile {
    return { url: this.#absolute(url), size, digest: sha256 };
  }

  /** Heads may name files by addresses relative to themselves, which all have the same depth. */
  #absolute(url: string): string {
    return this.#connection.permitted(url, `${this.#base}/v1/changes/head.json`);
  }
}

function isPage(found: any): boolean {
  const isMarket = (item: any) => typeof item?.id === "string";
  const isCursor = found?.nextCursor === null || typeof found?.nextCursor === "string";
  return isCursor && Array.isArray(found.items) && found.items.every(isMarket);
}

function isDump(file: any): boolean {
  return typeof file?.url === "string" && Number.isSafeInteger(file.size) && SHA256.test(file.sha256);
}

function isChangesHead(found: any): boolean {
  const isStep = (step: any) => STEP.test(step?.name) && Number.isSafeInteger(step.size);
  const areTexts = [found?.session, found?.stepsUrl].every((text) => typeof text === "string");
  const hasState = Number.isSafeInteger(found?.serial) && SHA256.test(found.state) && isDump(found.dump);
  return areTexts && hasState && Array.isArray(found.steps) && found.steps.every(isStep);
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
