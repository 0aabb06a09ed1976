/** The SHA-256 digest in hexadecimal digits. */
export async function sha256(bytes: BufferSource): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The longest line of a file, in bytes. */
const LONGEST_LINE = 16 << 20;

/** Bytes that come in pieces, however short these are. */
export class Gathered {
  #bytes = new Uint8Array(1 << 16);
  size = 0;

  add(piece: Uint8Array): void {
    const before = this.#bytes.subarray(0, this.size);
    this.size += piece.length;
    if (this.size > this.#bytes.length) {
      this.#bytes = new Uint8Array(2 * this.size);
      this.#bytes.set(before);
    }
    this.#bytes.set(piece, before.length);
  }

  /** All of them; what is added later may overwrite them. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, this.size);
    this.size = 0;
    return taken;
  }
}

/**
 * The lines of a text that comes in pieces, without their line feeds. Other line separators are part of a line.
 *
 * Throws a `SyntaxError` if they are no UTF-8, or longer than they may be: one of them, or all, of `most` bytes.
 */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>, most = Infinity): AsyncGenerator<string> {
  const begun = new Gathered();
  let room = most;
  for await (const piece of pieces) {
    room -= piece.length;
    if (room < 0) throw new SyntaxError(`holds more than ${most} bytes`);
    for (let [start, end] = [0, 0]; start < piece.length; start = end + 1) {
      end = piece.indexOf(10, start);
      if (end < 0) end = piece.length;
      begun.add(piece.subarray(start, end));
      if (begun.size >= LONGEST_LINE) throw new SyntaxError(`has a line of more than ${LONGEST_LINE >> 20} MB`);
      if (end < piece.length) yield textOf(begun.take());
    }
  }
  if (begun.size > 0) yield textOf(begun.take());
}

/** The text in UTF-8. Throws a `SyntaxError` if it is none. */
export function textOf(bytes: Uint8Array, ignoreBOM = true): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM }).decode(bytes);
  } catch {
    throw new SyntaxError("is not valid Unicode");
  }
}

/** What a gzip file holds. Throws an error of the platform if it is damaged. */
export function decompressed(file: Blob): AsyncGenerator<Uint8Array> {
  return piecesOf(file.stream().pipeThrough(new DecompressionStream("gzip")));
}

/** What comes in a stream. Not every browser iterates over streams by itself. */
export async function* piecesOf<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    reader.cancel().catch(() => undefined); // whoever has enough
  }
}
