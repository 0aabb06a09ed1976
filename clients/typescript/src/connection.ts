import { piecesOf, sha256 } from "./bytes.js";
import { ApiError, refusal } from "./errors.js";

/** How to read a site; the defaults suit programs that may wait. */
export interface Options {
  /** Another `fetch`, for instance one that goes through a proxy. */
  readonly fetch?: typeof fetch | undefined;
  /** How often a request that failed for now is sent again (5). */
  readonly retries?: number | undefined;
  /** Milliseconds without any byte after which an answer is given up (30,000). */
  readonly timeout?: number | undefined;
  /** The longest wait before a retry, in milliseconds (120,000); if a site asks for more, the error is thrown. */
  readonly longestWait?: number | undefined;
  /** Waits some milliseconds; by default with `setTimeout`. */
  readonly wait?: ((milliseconds: number) => Promise<unknown>) | undefined;
  /** How many answers to keep, to ask whether they have changed (100). */
  readonly cacheSize?: number | undefined;
  /** Ends whatever is being read or waited for. */
  readonly signal?: AbortSignal | undefined;
}

/** A file that a head names. `digest` is its SHA-256 in hexadecimal digits, or the beginning of that. */
export interface NamedFile {
  readonly url: string;
  readonly size: number;
  readonly digest: string;
}

/** JSON is not read beyond this. */
const LONGEST_BODY = 64 << 20;

/** Sends each request until it is answered. While the site asks to wait, none is sent. */
export class Connection {
  readonly #options: { readonly [name in keyof Omit<Options, "signal">]-?: NonNullable<Options[name]> };
  readonly #signal: AbortSignal | undefined;
  readonly #cache = new Map<string, { readonly etag: string; readonly text: string }>();
  #pause: Promise<unknown> = Promise.resolve();

  constructor(options: Options) {
    const { fetch = globalThis.fetch, retries = 5, timeout = 30_000, longestWait = 120_000, cacheSize = 100 } = options;
    const { signal, wait = (milliseconds: number) => pause(milliseconds, signal) } = options;
    this.#options = { fetch, retries, timeout, longestWait, cacheSize, wait };
    this.#signal = signal;
  }

  /** The JSON at an address, if `isValid`; else throws `ApiError`. */
  json<T>(url: string, isValid: (value: any) => unknown): Promise<T> {
    return this.#retried(async () => {
      const known = this.#cache.get(url);
      const { response, body } = await this.#send(url, LONGEST_BODY, known && { "If-None-Match": known.etag });
      const isKnown = known !== undefined && response.status === 304;
      if (!isKnown && response.status !== 200) throw refusal(url, response, await body.text());
      const text = isKnown ? known.text : await body.text();
      const value: unknown = await new Response(text).json().catch(() => undefined);
      if (!isValid(value)) throw damaged(url, "is not what was asked for");
      this.#keep(url, isKnown ? known.etag : response.headers.get("ETag"), text);
      return value as T;
    });
  }

  /** The bytes of a file, if they are those that were named; else throws `ApiError`. */
  file(named: NamedFile): Promise<Blob> {
    return this.#retried(async () => {
      const { response, body } = await this.#send(named.url, named.size);
      if (response.status !== 200) throw refusal(named.url, response, await body.text());
      const digest = await sha256(await body.arrayBuffer());
      if (!digest.startsWith(named.digest)) throw damaged(named.url, "is not the file that the head names");
      return body;
    });
  }

  async wait(milliseconds: number): Promise<void> {
    await this.#options.wait(milliseconds);
    this.#signal?.throwIfAborted();
  }

  async #retried<T>(attempt: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      await this.#pause;
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof ApiError && error.isTemporary) || failures >= this.#options.retries) throw error;
        const asked = 1000 * (error.retryAfter ?? 0);
        if (asked > this.#options.longestWait) throw error;
        const backoff = Math.min((500 + 500 * Math.random()) * 2 ** failures, this.#options.longestWait);
        const waited = this.wait(Math.max(asked, backoff));
        // Who is over a limit stays there if the other requests go on.
        if (asked > 0) this.#pause = waited.catch(() => undefined);
        await waited;
      }
    }
  }

  /** An answer, whole; an `ApiError` that is temporary if it did not come to its end. */
  async #send(url: string, longest: number, headers: HeadersInit = {}): Promise<{ response: Response; body: Blob }> {
    const { fetch, timeout } = this.#options;
    this.#signal?.throwIfAborted();
    const ended = new AbortController();
    const signal = this.#signal ? AbortSignal.any([this.#signal, ended.signal]) : ended.signal;
    const end = () => ended.abort();
    let timer = setTimeout(end, timeout);
    const renew = () => {
      clearTimeout(timer);
      timer = setTimeout(end, timeout);
    };
    try {
      const response = await fetch(url, { headers, signal });
      return { response, body: await wholeBody(url, response, longest, renew) };
    } catch (error) {
      this.#signal?.throwIfAborted();
      if (error instanceof ApiError) throw error;
      throw damaged(url, ended.signal.aborted ? `sent nothing for ${timeout} ms` : "cannot be read", error);
    } finally {
      clearTimeout(timer);
      end(); // of an answer that is too long, nothing more is sent
    }
  }

  #keep(url: string, etag: string | null, text: string): void {
    this.#cache.delete(url); // so that it is the newest
    if (etag !== null) this.#cache.set(url, { etag, text });
    for (const oldest of this.#cache.keys()) if (this.#cache.size > this.#options.cacheSize) this.#cache.delete(oldest);
  }
}

/** Wait, at most until the signal. */
function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener("abort", end);
  });
}

async function wholeBody(url: string, response: Response, longest: number, renew: () => void): Promise<Blob> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const piece of response.body ? piecesOf(response.body) : []) {
    renew();
    pieces.push(piece);
    size += piece.length;
    if (response.ok && size > longest) throw damaged(url, `is longer than ${longest} bytes`);
  }
  return new Blob(pieces);
}

function damaged(url: string, problem: string, cause?: unknown): ApiError {
  return new ApiError(url, problem, { isTemporary: true, cause });
}
