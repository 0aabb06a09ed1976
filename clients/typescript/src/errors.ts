import type { components } from "./api.js";

/** What a site finds wrong with a parameter: its name in parts, and a sentence. */
export type ErrorDetail = components["schemas"]["ErrorDetail"];

type Facts = Partial<Pick<ApiError, "status" | "details" | "retryAfter" | "isTemporary" | "cause" | "message">>;

/** The site did not answer, or not with what was asked for. `message` is a sentence that names the address. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status of the answer; 0 if there was none. */
  readonly status: number = 0;
  /** Which parameters a 400 refuses, and why. */
  readonly details: readonly ErrorDetail[] = [];
  /** Seconds after which the site asks to be tried again, if it says so. */
  readonly retryAfter: number | undefined;
  /** Whether the same request may succeed later. */
  readonly isTemporary: boolean = false;

  constructor(readonly url: string, problem: string, facts: Facts = {}) {
    super(`${url} ${problem}`);
    Object.assign(this, facts);
  }

  /** The name of the first parameter that a 400 refuses, such as `["cursor"]`; else empty. */
  get path(): readonly string[] {
    return this.details[0]?.path ?? [];
  }
}

/** 304 among them, where nobody asked whether anything has changed. */
const TEMPORARY = new Set([304, 408, 425, 429, 500, 502, 503, 504]);

/** At the address of the client, there is no site. */
export function noSite(address: string, status = 0): ApiError {
  const missing = /^https?:\/\//i.test(address) ? "" : ", with https:// or http://";
  const message = `no Public Markets site answers at ${address}; give the address before /v1${missing}`;
  return new ApiError(address, "", { status, message });
}

/**
 * What an answer means that is not what was asked for. Its body should say so, but servers on the way may send any;
 * `address` is that of the client as long as it is not known to be a site's.
 */
export function refusal(url: string, response: Response, body: string, address: string | null): ApiError {
  const { error, details } = said(body);
  const isTemporary = TEMPORARY.has(response.status);
  const isWithin = response.status === 404 && address?.includes("/v1/");
  if (address !== null && !isTemporary && (error === "" || isWithin)) return noSite(address, response.status);
  const reasons = details.map(({ path, message }) => `${path.join(".")} ${message}`).join("; ");
  return new ApiError(url, [`answers ${response.status}`, error, reasons].filter(Boolean).join(": "), {
    status: response.status,
    details,
    retryAfter: seconds(response.headers.get("Retry-After")),
    isTemporary,
  });
}

function said(body: string): { readonly error: string; readonly details: readonly ErrorDetail[] } {
  try {
    const { error, details } = JSON.parse(body);
    return { error: typeof error === "string" ? error : "", details: [details].flat().filter(isDetail) };
  } catch {
    return { error: "", details: [] };
  }
}

function isDetail(value: any): value is ErrorDetail {
  return Array.isArray(value?.path) && typeof value.message === "string";
}

/** What `Retry-After` says: seconds, or a date. */
function seconds(text: string | null): number | undefined {
  const found = /^\d+$/.test(text ?? "") ? Number(text) : (Date.parse(text ?? "") - Date.now()) / 1000;
  return Number.isNaN(found) ? undefined : Math.max(0, found);
}
