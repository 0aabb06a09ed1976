export type { components, operations } from "./api.js";
export * from "./client.js";
export type { Options } from "./connection.js";
export { MemoryStore, type Copy, type Lines, type Store } from "./copy.js";
export { SqliteStore, type Database } from "./sqlite.js";
export { ApiError, type ErrorDetail } from "./errors.js";
