/** A damaged state file is noticed, and nothing is made up. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { engineOn, folder, put, started } from './file-setup.ts';

const KEYS = ['a', 'b', 'c'];
const RESTORE = 'restore it from a backup, or move it away: then payments made before now are refused';

type Values = Readonly<Record<string, string | undefined>>;

/** A line of the file as the format says. */
function line(synced: number | string, content: unknown): string {
  const body = `${synced} ${JSON.stringify(content)}`;
  return `${crc32(body).toString(16).padStart(8, '0')} ${body}\n`;
}

const HEADER = line(0, ['signed-data-proxy state', 2]);
/** The header of a file from before marks, as long. */
const OLD = line(0, ['signed-data-proxy state', 1]);

/** The second line, which says how much was on disk. */
const mark = (synced: number) => line(`${synced}`.padStart(16, '0'), []);
const BEGIN = HEADER.length + mark(0).length;
const begin = (synced = BEGIN) => HEADER + mark(synced);
const damagedAt = (place: number) =>
  `settings.state: FILE is damaged at byte ${place} (a record in the middle does not match its checksum): ${RESTORE}`;

interface Found {
  readonly values?: Values;
  readonly refusal?: string;
  readonly logged: unknown[][];
}

/** What an engine makes of a file, whose path is left out. */
async function openedWith(t: Pick<TestContext, 'after'>, content: string | Uint8Array): Promise<Found> {
  const path = join(await folder(t), 'state');
  await writeFile(path, content);
  const { engine, logged } = engineOn(path);
  try {
    await engine.start();
  } catch (error) {
    assert.ok(error instanceof Error);
    assert.deepEqual(await readFile(path), Buffer.from(content), 'a file that is refused is left as it was');
    return { refusal: error.message.replace(path, 'FILE'), logged };
  }
  const area = engine.area('x');
  const values = Object.fromEntries(await Promise.all(KEYS.map(async (key) => [key, await area.get(key)] as const)));
  await engine.close();
  return { values, logged };
}

describe('a state file that is damaged', () => {
  let bytes: Buffer;
  /** Where each line ends, and what holds from there on. */
  let lines: { readonly end: number; readonly values: Values }[];

  before(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'state-file-'));
    const path = join(directory, 'state');
    const { engine } = engineOn(path);
    await engine.start();
    const area = engine.area('x');
    await put(area, 'a', '1');
    const durable = { durable: true };
    await Promise.all([
      area.compareAndSet('b', undefined, '2', durable),
      area.compareAndSet('a', '1', '3', durable),
      area.compareAndSet('c', undefined, '4'),
    ]);
    await put(area, 'b', undefined);
    await engine.close();
    bytes = await readFile(path);
    await rm(directory, { recursive: true });
    lines = [];
    let values: Values = { a: undefined, b: undefined, c: undefined };
    let end = 0;
    for (const text of bytes.toString().split(/(?<=\n)/)) {
      end += text.length;
      const content: unknown[] = JSON.parse(text.slice(text.indexOf('[')));
      const changes = content.filter((change): change is [string, string | null] => Array.isArray(change));
      for (const [key, value] of changes) values = { ...values, [key.slice(2)]: value ?? undefined };
      lines.push({ end, values });
    }
  });

  const lastValues = () => lines.at(-1)?.values;

  it('is refused when it has lost its end, wherever it is cut', async (t) => {
    assert.equal(lines.length, 5);
    for (let length = HEADER.length; length < bytes.length; length += 2) {
      const { refusal } = await openedWith(t, bytes.subarray(0, length));
      const lost = `settings.state: FILE ends at byte ${length}, and had ${bytes.length}: ${RESTORE}`;
      assert.equal(refusal, length < BEGIN ? damagedAt(HEADER.length) : lost, `cut at ${length}`);
    }
  });

  it('loses a write that was cut short, which nobody was told of', async (t) => {
    const next = Buffer.from(line(bytes.length, [['x/a', 'next', null]]));
    for (let length = 0; length <= next.length; length++) {
      const { values, logged } = await openedWith(t, Buffer.concat([bytes, next.subarray(0, length)]));
      const isWhole = length === next.length;
      assert.deepEqual(values, isWhole ? { ...lastValues(), a: 'next' } : lastValues(), `cut at ${length}`);
      const warnings = logged.map(([level, message, fields]) => [level, message, Reflect.get(Object(fields), 'bytes')]);
      const dropped = ['warn', 'the end of the state file, a write that was cut short, was dropped', length];
      assert.deepEqual(warnings, length === 0 || isWhole ? [] : [dropped]);
    }
  });

  it('is refused when its first line is cut, and new when it is empty', async (t) => {
    assert.deepEqual((await openedWith(t, '')).values, { a: undefined, b: undefined, c: undefined });
    for (let length = 1; length < HEADER.length; length++) {
      const { refusal } = await openedWith(t, bytes.subarray(0, length));
      assert.equal(refusal, `settings.state: FILE ends within its first line: ${RESTORE}`);
    }
  });

  /** Tries a file in which bytes from a place on were replaced. */
  async function change(t: TestContext, place: number, replacement: Uint8Array): Promise<void> {
    const content = Buffer.from(bytes);
    content.set(replacement, place);
    if (content.equals(bytes)) return;
    const { refusal } = await openedWith(t, content);
    const start = Math.max(0, ...lines.map(({ end }) => (end <= place ? end : 0)));
    const where = `${replacement.length} bytes at ${place}`;
    const foreign = 'is no state file of this service, or its first line is damaged';
    if (place < HEADER.length)
      assert.equal(refusal, `settings.state: FILE ${foreign}: change path, or restore it from a backup`, where);
    else assert.equal(refusal, damagedAt(start), where);
  }

  it('is refused when a byte was flipped', async (t) => {
    for (const [place, byte] of bytes.entries()) await change(t, place, Uint8Array.of(byte ^ 1));
  });

  it('is refused when a byte became a line feed', async (t) => {
    for (let place = 0; place < bytes.length; place += 3) await change(t, place, Uint8Array.of(10));
  });

  it('is refused when zeros are in it', async (t) => {
    for (let place = 1; place < bytes.length; place += 7) {
      await change(t, place, new Uint8Array(Math.min(16, bytes.length - place)));
    }
  });

  it('is refused when lines are missing', async (t) => {
    const [, , first = 0, second = 0] = lines.map(({ end }) => end);
    const content = Buffer.concat([bytes.subarray(0, first), bytes.subarray(second)]);
    assert.equal((await openedWith(t, content)).refusal, damagedAt(first));
  });

  it('is cut where what was not on disk is damaged, whatever got there behind it', async (t) => {
    const kept = line(BEGIN, [['x/a', '1', null]]);
    const content = `${begin()}${kept}${'\0'.repeat(40)}\n${line(BEGIN, [['x/b', '2', null]])}`;
    const { values, logged } = await openedWith(t, content);
    assert.deepEqual(values, { a: '1', b: undefined, c: undefined });
    assert.equal(Reflect.get(Object(logged[0]?.[2]), 'bytes'), content.length - BEGIN - kept.length);
  });

  const changes = [['x/a', '1', null]];
  const old = OLD + line(OLD.length, changes);
  for (const [what, content] of [
    ['the one before it has not closed it', begin() + line(BEGIN, changes) + 'x'.repeat(1000)],
    ['it is from before marks', old + line(old.length, []).repeat(2)],
  ] as const) {
    it(`is written anew at the start when ${what}`, async (t) => {
      const path = join(await folder(t), 'state');
      await writeFile(path, content);
      await writeFile(`${path}.new`, 'left by the same');
      const { engine } = await started(t, path);
      const text = line(0, changes);
      assert.equal(await readFile(path, 'utf8'), begin(BEGIN + text.length) + text);
      await engine.close();
    });
  }

  it('is marked soon after the last change, in case the process does not end well', async (t) => {
    const path = join(await folder(t), 'state');
    const { engine } = await started(t, path);
    await engine.area('x').compareAndSet('a', undefined, '1');
    const text = line(BEGIN, changes);
    while ((await readFile(path, 'utf8')) !== begin(BEGIN + text.length) + text) await setTimeout(10);
  });

  it('leaves no half of a new one beside it, and what others have there', async (t) => {
    const path = join(await folder(t), 'state');
    const next = `${path}.new`;
    await writeFile(next, 'half');
    await writeFile(path, 'x');
    await assert.rejects(engineOn(path).engine.start(), /is no state file/);
    assert.equal(await readFile(next, 'utf8'), 'half');
    await writeFile(path, bytes);
    await started(t, path);
    assert.ok(!existsSync(next));
  });

  for (const [what, changes] of [
    ['no list', {}],
    ['no change', ['x/a']],
    ['a change without an end', [['x/a', '1']]],
    ['a value that is no text', [['x/a', 1, null]]],
    ['an end that is no number', [['x/a', '1', '2']]],
  ] as const) {
    it(`is not read where a line holds ${what}`, async (t) => {
      const wrong = line(BEGIN, changes);
      assert.equal((await openedWith(t, begin(BEGIN + wrong.length) + wrong)).refusal, damagedAt(BEGIN));
    });
  }

  it('is refused for what it is', async (t) => {
    const foreign = `is no state file of this service, or its first line is damaged: change path, or restore it from a backup`;
    const cases = [
      ['\0'.repeat(4096), `holds nothing but zeros: ${RESTORE}`],
      ['{"some": "json"}\n', foreign],
      ['x'.repeat(10_000), foreign],
      [line(0, ['another format', 1]), foreign],
      [line(0, ['signed-data-proxy state', 3]), 'is of version 3, which this release cannot read: install a newer one'],
    ] as const;
    for (const [content, refusal] of cases) {
      assert.equal((await openedWith(t, content)).refusal, `settings.state: FILE ${refusal}`);
    }
  });

  it('leaves nobody locked out once it is mended', async (t) => {
    const path = join(await folder(t), 'state');
    await writeFile(path, 'x');
    await assert.rejects(engineOn(path).engine.start(), /is no state file/);
    await writeFile(path, bytes);
    await started(t, path);
  });

  it('is on from where it was sealed, however often it is opened', async (t) => {
    const path = join(await folder(t), 'state');
    await writeFile(path, bytes);
    for (let round = 0; round < 3; round++) {
      const { engine } = engineOn(path);
      await engine.start();
      await engine.close();
    }
    assert.deepEqual(await readFile(path), bytes);
    await appendFile(path, 'x');
    const { engine } = await started(t, path);
    assert.equal(await engine.area('x').get('a'), lastValues()?.a);
  });
});
