/** The log has the level and the form that are set. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createLog, type LogSettings, logSettings } from '../../service/log.ts';
import { anyCharacter } from '../support/any-character.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/;
const textAt = (level: LogSettings['level']): LogSettings => ({ level, format: 'text', colour: false });

function collect(settings: LogSettings) {
  const lines: string[] = [];
  return { lines, log: createLog(settings, { write: (line) => lines.push(line) }) };
}

const withoutTimes = (lines: readonly string[]) => lines.map((line) => line.replace(TIME, ''));
const anything = fc.string({ unit: anyCharacter, maxLength: 200 });

/** The line behind its time. */
function logLine(message: string, fields?: Readonly<Record<string, unknown>>): string {
  const { lines, log } = collect(textAt('info'));
  log.info(message, fields);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', TIME);
  return (lines[0] ?? '').replace(TIME, '');
}

it('a message that is no text is a line all the same', () => assert.equal(logLine(Object.create(null)), ' INFO {}\n'));

describe('log settings', () => {
  it('default to readable text from level info', () => {
    assert.deepEqual(logSettings({}), { level: 'info', format: 'text', colour: false });
    assert.deepEqual(logSettings({ LOG_LEVEL: '', LOG_FORMAT: '' }), { level: 'info', format: 'text', colour: false });
  });

  it('are read from LOG_LEVEL and LOG_FORMAT', () => {
    for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      assert.equal(logSettings({ LOG_LEVEL: level }).level, level);
    assert.equal(logSettings({ LOG_FORMAT: 'json' }).format, 'json');
    assert.equal(logSettings({ LOG_FORMAT: 'text' }).format, 'text');
  });

  it('refuse anything else, naming the variable and its choices', () => {
    assert.throws(() => logSettings({ LOG_LEVEL: 'verbose' }), {
      message: 'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "verbose"',
    });
    assert.throws(() => logSettings({ LOG_FORMAT: 'JSON' }), {
      message: 'LOG_FORMAT must be one of text, json, not "JSON"',
    });
    assert.throws(() => logSettings({ LOG_LEVEL: 'toString' }), /^Error: LOG_LEVEL must be one of/);
  });
});

describe('levels', () => {
  const all = ['debug', 'info', 'warn', 'error'] as const;
  const shown = {
    trace: all,
    debug: all,
    info: all.slice(1),
    warn: all.slice(2),
    error: all.slice(3),
    fatal: [],
    silent: [],
  };
  for (const [level, expected] of Object.entries(shown) as [keyof typeof shown, readonly string[]][]) {
    it(`${level} shows ${expected.join(', ') || 'nothing'}`, () => {
      const { lines, log } = collect(textAt(level));
      for (const at of all) log[at](at);
      const texts = expected.map((at) => ` ${at.toUpperCase()} ${at}\n`);
      assert.deepEqual(withoutTimes(lines), texts);
    });
  }
});

describe('text', () => {
  const id = `0x${'5'.repeat(64)}`;
  const cases: [string, string, Record<string, unknown> | undefined, string][] = [
    ['is nothing but the message without fields', `prices/eth ${id}`, undefined, `prices/eth ${id}`],
    [
      'has words bare',
      'm',
      { url: 'http://127.0.0.1:3000', ms: 1.5, ok: true, none: null },
      'm url=http://127.0.0.1:3000 ms=1.5 ok=true none=null',
    ],
    ['leaves out what is undefined', 'm', { a: undefined, b: 1 }, 'm b=1'],
    [
      'quotes spaces, quotes, equals signs and nothing',
      'm',
      { a: 'x y', b: 'q"', c: 'k=v', d: '' },
      'm a="x y" b="q\\"" c="k=v" d=""',
    ],
    ['writes structures as JSON', 'm', { a: { b: [1, 'x'] } }, 'm a={"b":[1,"x"]}'],
    ['keeps a message on its line', 'one\ntwo\r\n\ttail', undefined, 'one\\ntwo\\r\\n\\ttail'],
    ['keeps a value on its line', 'm', { a: 'one\ntwo' }, 'm a="one\\ntwo"'],
    ['keeps a name on its line', 'm', { 'a\nb c': 1 }, 'm "a\\nb c"=1'],
    [
      'shows no escape sequences',
      '\u001b[31mred\u0007\u009b1m\u007f',
      { a: '\u001b[0m' },
      '\\u001b[31mred\\u0007\\u009b1m\\u007f a="\\u001b[0m"',
    ],
    [
      'shows no separators and overrides',
      'a\u2028b\u2029c\u202ed\u2066e',
      undefined,
      'a\\u2028b\\u2029c\\u202ed\\u2066e',
    ],
    ['shows lone surrogates', 'a\ud800b', { c: '\udfff' }, 'a\\ud800b c="\\udfff"'],
    ['leaves other scripts alone', 'Zürich 東京 🙂', { a: '東京' }, 'Zürich 東京 🙂 a=東京'],
    [
      'writes an error as one line without its stack',
      'm',
      { err: new Error('no\nway'), e: new TypeError('x') },
      'm err="Error: no\\nway" e="TypeError: x"',
    ],
    [
      'has no field that passes for the time, level or message',
      'm',
      { level: 'x', time: 1, msg: 'y' },
      'm level_=x time_=1 msg_=y',
    ],
    ['does not treat % as a placeholder', '100%s %d %j', { a: '%s' }, '100%s %d %j a=%s'],
    ['survives bigints', 'm', { a: 12n }, 'm a=12'],
  ];
  for (const [what, message, fields, expected] of cases) {
    it(what, () => assert.equal(logLine(message, fields), ` INFO ${expected}\n`));
  }

  it('survives a circle', () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    assert.equal(logLine('m', { circle }), ' INFO m circle={"self":"[Circular]"}\n');
  });

  it('survives what cannot be told, and names that mean something to JavaScript', () => {
    const broken = { toJSON: () => assert.fail() };
    const own = Object.defineProperty({ toJSON: () => 'x' }, '__proto__', { value: { level: 'x' }, enumerable: true });
    assert.equal(logLine('m', { broken, a: 1 }), ' INFO m broken="[no JSON]" a=1\n');
    assert.equal(logLine('m', own), ' INFO m __proto___={"level":"x"}\n');
    const { lines, log } = collect({ level: 'info', format: 'json', colour: false });
    log.info('m', { broken, a: 1n, ...own, toJSON: () => 'y' });
    const { time, ...rest } = JSON.parse(lines[0] ?? '');
    assert.match(time, TIME);
    assert.deepEqual(rest, { level: 'info', broken: '[no JSON]', a: 1, __proto___: { level: 'x' }, msg: 'm' });
  });

  it('is one line, whatever is logged', () => {
    fc.assert(
      fc.property(
        anything,
        fc.dictionary(anything, fc.oneof(anything, fc.jsonValue()), { maxKeys: 4 }),
        (message, fields) => {
          const line = logLine(message, fields);
          assert.equal(line.indexOf('\n'), line.length - 1);
          assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u);
        },
      ),
    );
  });

  it('colours the level and nothing else', () => {
    const { lines, log } = collect({ ...textAt('debug'), colour: true });
    for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level]('m', { a: 1 });
    assert.deepEqual(withoutTimes(lines), [
      ' \u001b[90mDEBUG\u001b[39m m a=1\n',
      ' \u001b[32mINFO\u001b[39m m a=1\n',
      ' \u001b[33mWARN\u001b[39m m a=1\n',
      ' \u001b[31mERROR\u001b[39m m a=1\n',
    ]);
  });
});

describe('JSON', () => {
  const jsonOf = (message: string, fields?: Readonly<Record<string, unknown>>) => {
    const { lines, log } = collect({ level: 'info', format: 'json', colour: true });
    log.warn(message, fields);
    assert.equal(lines.length, 1);
    return lines[0] ?? '';
  };

  it('has the level by name, the time in ISO form, the message and the fields', () => {
    const { time, ...rest } = JSON.parse(jsonOf('hello', { a: 1, b: { c: 'd' } }));
    assert.match(time, TIME);
    assert.deepEqual(rest, { level: 'warn', msg: 'hello', a: 1, b: { c: 'd' } });
  });

  it('is a line whatever a plugin gives for fields, and shows a hundred members of an object at most', () => {
    const odd: unknown[] = ['abc', 12345, 1n, [1], new Date(0), new URL('http://a/'), Symbol('s'), () => 1];
    for (const fields of odd) assert.match(jsonOf('m', Object(fields)), /,"msg":"m"\}\n$/);
    for (const fields of odd)
      assert.doesNotThrow(() => JSON.parse(jsonOf('m', fields as object as Record<string, unknown>)));
    const hostile = Object.create({ toJSON: () => ({ level: 'x', time: 0 }) });
    assert.deepEqual(Object.keys(JSON.parse(jsonOf('m', hostile))), ['level', 'time', 'msg']);
    const unread = Object.defineProperty({}, 'x', { get: () => assert.fail(), enumerable: true });
    assert.match(jsonOf('m', { unread }), /,"unread":"\[no JSON\]","msg":"m"\}\n$/);
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`m${i}`, i]));
    const { many: shown } = JSON.parse(jsonOf('m', { many }));
    assert.equal(shown['...'], '50 items not stringified');
  });

  it('keeps the names of its own members to itself', () => {
    const { time, ...rest } = JSON.parse(jsonOf('m', { level: 'x', time: 1, msg: 'y', err: new Error('e') }));
    assert.match(time, TIME);
    assert.deepEqual(rest, { level: 'warn', msg: 'm', level_: 'x', time_: 1, msg_: 'y', err: 'Error: e' });
  });

  it('is what JSON.stringify makes of each member, behind the level and the time', () => {
    const name = fc.oneof(fc.string(), fc.nat().map(String));
    const value = fc.oneof(fc.string(), fc.double(), fc.constantFrom(undefined, null, true, -0));
    const fields = fc.dictionary(
      name.filter((text) => !/^(level|time|msg|toJSON|__proto__)$/.test(text)),
      value,
    );
    fc.assert(
      fc.property(fc.string(), fields, (message, given) => {
        const line = jsonOf(message, given);
        const { time } = JSON.parse(line);
        const members = Object.entries(given).filter(([, value]) => value !== undefined);
        const texts = members.map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`);
        const head = `{"level":"warn","time":"${time}"`;
        assert.equal(line, `${head}${texts.join('')},"msg":${JSON.stringify(message)}}\n`);
      }),
    );
  });

  it('is one line of plain characters that says the same, whatever is logged', () => {
    fc.assert(
      fc.property(anything, anything, (message, value) => {
        const line = jsonOf(message, { value });
        assert.equal(line.indexOf('\n'), line.length - 1);
        assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u);
        const { msg, value: read } = JSON.parse(line);
        assert.deepEqual([msg, read], [message, value]);
      }),
    );
  });
});
