const LINE_FEED = 10;

export interface Line {
  readonly offset: number;
  /** Without the line feed. */
  readonly bytes: Buffer;
  /** Whether there was a line feed. */
  readonly whole: boolean;
}

/**
 * The lines of a file. All that end in one chunk come together: each by itself would cost a turn.
 * @param from the offset of the first chunk.
 */
export async function* linesOf(chunks: AsyncIterable<Buffer>, from = 0): AsyncGenerator<readonly Line[]> {
  let offset = from;
  let begun: Buffer[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    const lines: Line[] = [];
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      const rest = chunk.subarray(start, end);
      const bytes = begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
      lines.push({ offset, bytes, whole: true });
      offset += bytes.length + 1;
      begun = [];
      start = end + 1;
    }
    begun.push(chunk.subarray(start));
    yield lines;
  }
  const bytes = Buffer.concat(begun);
  if (bytes.length > 0) yield [{ offset, bytes, whole: false }];
}
