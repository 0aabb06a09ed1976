/** The SHA-256 digest in hexadecimal digits. */
export async function sha256(bytes: BufferSource): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The lines of a text that comes in pieces, without their line feeds. Other line separators are part of a line. */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let begun: string[] = [];
  for await (const piece of pieces) {
    const [first = "", ...others] = decoder.decode(piece, { stream: true }).split("\n");
    begun.push(first);
    for (const next of others) {
      yield begun.join("");
      begun = [next];
    }
  }
  const last = begun.join("") + decoder.decode();
  if (last !== "") yield last;
}

/** What a gzip file holds. Throws an error of the platform if it is damaged. */
export function decompressed(file: Blob): AsyncGenerator<Uint8Array> {
  return piecesOf(file.stream().pipeThrough(new DecompressionStream("gzip")));
}

/** What comes in a stream. Not every browser iterates over streams by itself. */
export async function* piecesOf<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}
