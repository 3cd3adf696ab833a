import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { linesOf } from '../../lib/files/lines.ts';
import { rotatedFiles } from '../../lib/files/rotated.ts';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { optionalKey, Type } from '../../plugins-sdk/config-key.ts';
import { millisecondsOf } from '../../plugins-sdk/schema/duration.ts';
import { userPath } from '../../service/surroundings.ts';
import { complain, print } from '../../service/terminal.ts';
import { codeOf, escapeUnprintable } from '../../service/text.ts';
import { type Given, UsageError } from '../arguments.ts';
import { givenConfig } from './given-config.ts';

/** Read only. */
const pathKey = optionalKey('settings', 'audit.path', Type.String());

/** What the options take, and how to say so. */
const SHAPES = {
  digest: [/^0x[0-9a-f]{64}$/i, 'a digest: 0x and 64 hex digits'],
  request: [/^0x[0-9a-f]{64}$/i, 'the X-Request-Id of a response: 0x and 64 hex digits'],
  payment: [
    /^0x([0-9a-f]{64}|[0-9a-f]{40})$/i,
    'a transaction or a nonce (0x and 64 hex digits), or a payer (0x and 40)',
  ],
  endpoint: [/^0x[0-9a-f]{64}$|.\/./i, 'an endpoint ID (0x and 64 hex digits), or a name such as prices/latest'],
} as const;

const CHUNK = 1 << 20;
const [OPEN, CLOSE] = Buffer.from('{}');
/** Milliseconds for which another process may go on to write a file that was renamed. */
const LATE_LINES_MS = 60_000;
const DAMAGED = Symbol('damaged');

interface Filter {
  /** Whether a line has it, before it is parsed: texts that it must contain. */
  readonly texts: readonly string[];
  /** Epoch milliseconds. */
  readonly since: number;
  matches(line: Readonly<Record<string, unknown>>): boolean;
}

/**
 * Prints the lines of an audit record that have all that is asked for, the oldest first, those of renamed files included.
 * @returns 0, or 1 when there is none, which stderr says.
 */
export async function findAudited(given: Given): Promise<number> {
  const filter = readFilter(given);
  const path = await readPath(given);
  // Opened first: what is renamed meanwhile is not missed.
  const current = await open(path).catch(missing);
  const former = await rotatedFiles(path).catch(missing);
  if (current === undefined && (former === undefined || former.length === 0))
    throw new Error(`${path}: file not found`);
  const about = await current?.stat();
  let found = 0;
  for (const { path: name, until } of former ?? []) {
    if (until + LATE_LINES_MS < filter.since) continue;
    if ((await stat(name).catch(missing))?.ino !== about?.ino) found += await findIn(name, filter);
  }
  if (current !== undefined) found += await findIn(path, filter, current);
  if (found > 0) return 0;
  await complain('audit find', ['nothing was found']);
  return 1;
}

async function findIn(name: string, filter: Filter, handle?: FileHandle): Promise<number> {
  const options = { highWaterMark: CHUNK };
  const chunks = handle === undefined ? createReadStream(name, options) : handle.createReadStream(options);
  let found = 0;
  let damaged = 0;
  try {
    for await (const lines of linesOf(chunks)) {
      const fits: string[] = [];
      for (const { bytes } of lines) {
        const line = lineIn(bytes, filter);
        if (line === DAMAGED) damaged += 1;
        else if (line !== undefined) fits.push(`${escapeUnprintable(line)}\n`);
      }
      found += fits.length;
      if (fits.length > 0) await print(fits.join(''));
      if (!process.stdout.writable) break;
    }
  } catch (error) {
    throw new Error(`${name}: cannot be read (${codeOf(error)})`);
  }
  const lines = damaged === 1 ? 'a line that was cut short was' : `${damaged} lines that were cut short were`;
  if (damaged > 0) await complain('warning', [`${name}: ${lines} skipped`]);
  return found;
}

/** The text of a line that is wanted. */
function lineIn(bytes: Buffer, { texts, matches }: Filter): string | typeof DAMAGED | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes[0] !== OPEN || bytes.at(-1) !== CLOSE) return DAMAGED;
  if (!texts.every((text) => bytes.includes(text))) return undefined;
  const text = bytes.toString();
  const line = jsonIn(text);
  if (!isRecord(line)) return DAMAGED;
  return matches(line) ? text : undefined;
}

/** @throws UsageError before anything is read. */
function readFilter(given: Given): Filter {
  const lower = (name: keyof typeof SHAPES) => {
    const text = given.optional(name);
    const [shape, meaning] = SHAPES[name];
    if (text === undefined || shape.test(text)) return text?.toLowerCase();
    throw new UsageError(`--${name} must be ${meaning}`);
  };
  const [digest, request, payment, endpoint] = [lower('digest'), lower('request'), lower('payment'), lower('endpoint')];
  const until = readTime(given, 'until') ?? Number.POSITIVE_INFINITY;
  const isWanted = (wanted: string | undefined, ...values: unknown[]) =>
    wanted === undefined || values.some((value) => String(value).toLowerCase() === wanted);
  const since = readTime(given, 'since') ?? Number.NEGATIVE_INFINITY;
  return {
    texts: [digest, request].filter((text) => text !== undefined),
    since,
    matches: (line) => {
      const time = Date.parse(String(line.time));
      return (
        time >= since &&
        time <= until &&
        isWanted(digest, line.digest) &&
        isWanted(request, line.requestId) &&
        isWanted(endpoint, line.endpointId, line.endpoint) &&
        isWanted(payment, ...(isRecord(line.payment) ? Object.values(line.payment) : []))
      );
    },
  };
}

/** Epoch milliseconds of a moment, or of so long ago. */
function readTime(given: Given, name: 'since' | 'until'): number | undefined {
  const text = given.optional(name);
  if (text === undefined) return undefined;
  const ago = millisecondsOf(text);
  const time = ago === undefined ? Date.parse(text) : Date.now() - ago;
  if (!Number.isNaN(time)) return time;
  throw new UsageError(
    `option --${name} <time> must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 2h`,
  );
}

async function readPath(given: Given): Promise<string> {
  const [file, path] = [given.optional('config'), given.optional('path')];
  if ((file === undefined) === (path === undefined)) {
    throw new UsageError('one of --config <file> and --path <file> is needed: it says which record to look in');
  }
  if (file === undefined) return userPath(path ?? '');
  const loaded = await givenConfig(given);
  const named = pathKey.in(loaded.config);
  if (named === undefined) throw new Error(`${file}: settings.audit is not set, so that nothing is recorded`);
  return resolve(dirname(loaded.file), named);
}

function missing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}
