import { VERSION } from "./api.js";
import { Gathered, piecesOf, sha256, textOf } from "./bytes.js";
import { ApiError, noSite, refusal } from "./errors.js";

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
  /** How many answers to keep, to ask whether they have changed (100); together they have 16 MB at most. */
  readonly cacheSize?: number | undefined;
  /** Hosts that may be asked besides the site's own, each with its port unless it is the usual one. */
  readonly hosts?: readonly string[] | undefined;
  /** The most bytes of a file, decompressed (2 GB). */
  readonly largestFile?: number | undefined;
  /** Ends whatever is being read or waited for. */
  readonly signal?: AbortSignal | undefined;
}

interface Received {
  readonly response: Response;
  readonly body: Blob;
}

/** A file that a head names. `digest` is its SHA-256 in hexadecimal digits, or the beginning of that. */
export interface NamedFile {
  readonly url: string;
  readonly size: number;
  readonly digest: string;
}

/** The largest answer that is read, and all that are kept; how much of an error is; and how many redirects are. */
const [MOST_BYTES, MOST_SAID, MOST_REDIRECTS] = [16 << 20, 64 << 10, 5];
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const [GZIP, AS_IT_IS] = [{ "Accept-Encoding": "gzip" }, { "Accept-Encoding": "identity" }];
const NO_CODING = /^(identity)?$/i;
/** What an answer may have been encoded with, once. Browsers choose for themselves what they accept. */
const IS_BROWSER = !new Request("http://localhost", { headers: GZIP }).headers.has("Accept-Encoding");
/** In browsers, it would have other sites asked for their permission. */
const AGENT = IS_BROWSER ? {} : { "User-Agent": `public-markets-client/${VERSION}` };
/** What Node and Deno say of an address or a certificate that is wrong, and will stay so. */
const HOPELESS = /^(bad port|ENOTFOUND|ERR_(SSL|TLS)|CERT_|DEPTH_|SELF_|UNABLE_)|not known|peer cert|ContentType/i;
const CODING = IS_BROWSER ? /^[\w-]*$/ : /^(identity|gzip|x-gzip)?$/i;

/** Sends each request until it is answered. While the site asks to wait, none is sent. */
export class Connection {
  readonly #options: { readonly [name in keyof Omit<Options, "signal" | "largestFile">]-?: NonNullable<Options[name]> };
  readonly largestFile: number;
  readonly #signal: AbortSignal | undefined;
  readonly #cache = new Map<string, { readonly etag: string; readonly text: string; readonly size: number }>();
  readonly #site: URL;
  /** The address, until it has answered as a site does: before that, what is no JSON comes from another server. */
  #address: string | null;
  #pause: Promise<unknown> = Promise.resolve();

  constructor(base: string, options: Options) {
    const { fetch = globalThis.fetch, retries = 5, timeout = 30_000, longestWait = 120_000, cacheSize = 100 } = options;
    const { signal, wait = (milliseconds: number) => pause(milliseconds, signal), hosts = [] } = options;
    this.#options = { fetch, retries, timeout, longestWait, cacheSize, wait, hosts };
    this.largestFile = options.largestFile ?? 2 * 2 ** 30;
    this.#signal = signal;
    this.#site = addressOf(base);
    this.#address = base;
  }

  /** The address that an answer from another one names, if it may be asked; else throws `ApiError`. */
  permitted(address: string, before: string): string {
    const url = addressOf(address, before);
    const isSame = url.protocol === "https:" && url.hostname === this.#site.hostname;
    if (before.startsWith("https:") && url.protocol === "http:") throw new ApiError(before, "leads from https to http");
    if (!isSame && ![this.#site.host, ...this.#options.hosts].includes(url.host)) {
      const host = url.host.slice(0, 100);
      throw new ApiError(before, `leads to another host; if that is right, allow it: hosts: ["${host}"]`);
    }
    return url.href;
  }

  /** The JSON at an address, if `isValid`; else throws `ApiError`. */
  json<T>(url: string, isValid: (value: any) => unknown): Promise<T> {
    return this.#retried(async () => {
      const known = this.#cache.get(url);
      const { response, body } = await this.#send(url, MOST_BYTES, CODING, {
        ...GZIP,
        ...(known && { "If-None-Match": known.etag }),
      });
      const isKnown = known !== undefined && response.status === 304;
      if (!isKnown && response.status !== 200) throw refusal(url, response, await body.text(), this.#address);
      const kept = { etag: response.headers.get("ETag"), text: textIn(await body.arrayBuffer()), size: body.size };
      const { etag, text, size } = isKnown ? known : kept;
      const value: unknown = await new Response(text).json().catch(() => undefined);
      const isJson = value !== undefined || /json/.test(response.headers.get("Content-Type") ?? "json");
      if (this.#address !== null && !isJson) throw noSite(this.#address, response.status);
      if (!isValid(value)) throw new ApiError(url, "is not what was asked for", { isTemporary: value === undefined });
      this.#address = null;
      this.#cache.delete(url); // so that it is the newest
      if (etag !== null) this.#cache.set(url, { etag, text, size });
      this.#forget();
      return value as T;
    });
  }

  /** The bytes of a file, if they are those that were named; else throws `ApiError`. */
  file(named: NamedFile): Promise<Blob> {
    if (named.size > this.largestFile) throw new ApiError(named.url, "is longer than largestFile allows");
    return this.#retried(async () => {
      const { response, body } = await this.#send(named.url, named.size, NO_CODING, AS_IT_IS);
      if (response.status !== 200) throw refusal(named.url, response, await body.text(), null);
      const digest = await sha256(await body.arrayBuffer());
      if (digest.startsWith(named.digest)) return body;
      throw new ApiError(named.url, "is not the file that the head names", { isTemporary: true });
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
  async #send(url: string, longest: number, coding: RegExp, headers: object): Promise<Received> {
    const { timeout } = this.#options;
    this.#signal?.throwIfAborted();
    const ended = new AbortController();
    const signal = this.#signal ? AbortSignal.any([this.#signal, ended.signal]) : ended.signal;
    const end = () => ended.abort();
    let timer = setTimeout(end, timeout);
    const renew = () => {
      clearTimeout(timer);
      timer = setTimeout(end, timeout);
    };
    // Node 20 can forget who reads a body that cannot be decompressed.
    const isOver = new Promise<never>((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
    const received = async (): Promise<Received> => {
      const response = await this.#redirected(url, { headers: { ...AGENT, ...headers }, signal, redirect: "manual" });
      renew();
      if (!response.ok) {
        // What is wrong with an error does not matter.
        return { response, body: await wholeBody(url, response, MOST_SAID, renew).catch(() => new Blob()) };
      }
      const found = response.headers.get("Content-Encoding") ?? "";
      const problem = `has the Content-Encoding ${found.slice(0, 20)}, which cannot be read`;
      if (!coding.test(found)) throw new ApiError(url, problem);
      return { response, body: await wholeBody(url, response, longest, renew) };
    };
    try {
      return await Promise.race([received(), isOver]);
    } catch (error) {
      this.#signal?.throwIfAborted();
      if (error instanceof ApiError) throw error;
      const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string };
      const reason = cause?.code ?? cause?.message ?? message ?? "";
      if (this.#address !== null && HOPELESS.test(reason)) throw noSite(`${this.#address} (${reason})`);
      const problem = ended.signal.aborted ? `sent nothing for ${timeout} ms` : `cannot be read (${reason})`;
      throw new ApiError(url, problem, { isTemporary: true, cause: error });
    } finally {
      clearTimeout(timer);
      end(); // of an answer that is too long, nothing more is sent
    }
  }

  /** The answer to a request, where redirects lead. */
  async #redirected(url: string, request: RequestInit): Promise<Response> {
    let [place, { fetch }] = [url, this.#options];
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects += 1) {
      const response = await fetch(place, request);
      if (response.type === "opaqueredirect") {
        // Browsers do not tell where, and have rules of their own.
        const followed = await fetch(place, { ...request, redirect: "follow" });
        this.permitted(followed.url, place);
        return followed;
      }
      const location = REDIRECTS.has(response.status) ? response.headers.get("Location") : null;
      if (location === null) return response;
      await response.body?.cancel();
      place = this.permitted(location, place);
    }
    throw new ApiError(url, `redirects more than ${MOST_REDIRECTS} times`);
  }

  /** Forget the answers that were used longest ago, until the others are few enough. */
  #forget(): void {
    let bytes = [...this.#cache.values()].reduce((sum, { size }) => sum + size, 0);
    for (const [url, { size }] of this.#cache) {
      if (this.#cache.size <= this.#options.cacheSize && bytes <= MOST_BYTES) return;
      this.#cache.delete(url);
      bytes -= size;
    }
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
  const body = new Gathered();
  for await (const piece of response.body ? piecesOf(response.body) : []) {
    renew();
    body.add(piece);
    if (body.size > longest) throw new ApiError(url, `is longer than ${longest} bytes`);
  }
  return new Blob([body.take()]);
}

/** What is in a body; nothing that is JSON, if it is no text. */
function textIn(body: ArrayBuffer): string {
  try {
    return textOf(new Uint8Array(body), false);
  } catch {
    return "";
  }
}

/** An address of http or https, of a client or that an answer `from` another one names; else throws `ApiError`. */
function addressOf(address: string, from?: string): URL {
  const [url, by] = [URL.canParse(address, from) ? new URL(address, from) : null, from ?? "the site"];
  if (url === null || !/^https?:$/.test(url.protocol)) {
    // What is before the @ may be a password.
    if (from === undefined && !address.includes("@")) throw noSite(address);
    throw new ApiError(by, "names an address that is none of http or https");
  }
  if (url.username || url.password) throw new ApiError(by, "names an address that has a user name in it; leave it out");
  return url;
}
