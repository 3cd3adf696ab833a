import { open } from 'node:fs/promises';
import { ConfigErrors, errorAt } from './findings.ts';
import { isRecord } from './path.ts';

const MAX_BYTES = 1024 * 1024;

/** Why a file could not be read, in words; its `code` is that of the file system. */
export class UnreadableFile extends ConfigErrors {
  readonly code: string;

  constructor(file: string, code: string) {
    super([errorAt(file, reasons[code] ?? `cannot be read (${code})`)]);
    this.code = code;
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'file not found',
  EISDIR: 'is a directory, expected a file',
  EACCES: 'cannot be read, permission denied',
  EPERM: 'cannot be read, permission denied',
};

/**
 * Reads at most 1 MiB.
 * @throws UnreadableFile
 * @throws ConfigErrors when the file is larger.
 */
export async function readBounded(file: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    const handle = await open(file);
    // Not `readFile`: a pipe or device has no size to check beforehand.
    for await (const chunk of handle.createReadStream({ end: MAX_BYTES })) chunks.push(chunk);
  } catch (error) {
    throw new UnreadableFile(file, isRecord(error) ? String(error.code) : 'unknown');
  }
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MAX_BYTES) throw new ConfigErrors([errorAt(file, 'larger than 1 MiB')]);
  return bytes;
}
