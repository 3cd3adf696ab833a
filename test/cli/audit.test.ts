/** The audit record is found and read by the command line, and survives its process. */
import assert from 'node:assert/strict';
import { appendFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { assertFiring, withoutPromtool } from '../support/alerts.ts';
import { auditLines, untilAudited } from '../support/audit.ts';
import { startAudited, withoutLimits } from './audited.ts';
import { folderWith, launchCli, runCli } from './run.ts';
import { configText } from './service-config.ts';
import { until } from './started.ts';

const hex = (digit: string) => `0x${digit.repeat(64)}`;

/** A line as the service writes it, of that hour of a day. */
function line(hour: string, digit: string, more: object = {}): string {
  const signer = `0x${'5'.repeat(40)}`;
  const common = { endpoint: 'prices/eth', endpointId: hex('e'), digest: hex(digit), timestamp: 1_769_860_800, signer };
  return JSON.stringify({ time: `2026-01-31T${hour}:00:00.000Z`, requestId: hex(`${digit}`), ...common, ...more });
}

const FORMER = 'audit.jsonl.20260131T025959.999Z-7';
const payment = { network: 'eip155:1', payer: `0x${'Ab'.repeat(20)}`, transaction: hex('d') };
const LINES = {
  one: line('01', '1'),
  two: line('02', '2', { payment: { ...payment, nonce: hex('9') } }),
  three: line('03', '3', { endpoint: 'prices/all', endpointId: hex('f'), client: 'ada' }),
  four: line('04', '4', { payment: { ...payment, transaction: hex('c') } }),
};

describe('audit find', () => {
  const record = (t: TestContext) =>
    folderWith(t, {
      'c.yaml': configText(undefined, 'settings: { audit: { path: audit.jsonl } }'),
      'audit.jsonl': `${LINES.three}\n{"time":"2026-01-31T03\n${LINES.four}\n`,
      [FORMER]: `${LINES.one}\n${LINES.two}\n`,
      'audit.jsonl.1': `${LINES.one}\n`,
      'other.jsonl': '',
    });
  const warned = (cwd: string) => `warning: ${join(cwd, 'audit.jsonl')}: a line that was cut short was skipped\n`;
  const { one, two, three, four } = LINES;

  for (const [words, expected] of [
    [[], [one, two, three, four]],
    [['--digest', hex('2')], [two]],
    [['--digest', `0x${hex('3').slice(2).toUpperCase()}`], [three]],
    [['--endpoint', hex('f')], [three]],
    [
      ['--endpoint', 'prices/eth'],
      [one, two, four],
    ],
    [['--payment', hex('d')], [two]],
    [['--payment', hex('9')], [two]],
    [
      ['--payment', payment.payer.toLowerCase()],
      [two, four],
    ],
    [['--request', hex('4')], [four]],
    [
      ['--since', '2026-01-31T02:00:00Z'],
      [two, three, four],
    ],
    [
      ['--since', '2026-01-31T02:00:00Z', '--until', '2026-01-31T03:00:00Z'],
      [two, three],
    ],
    [['--endpoint', 'prices/eth', '--payment', payment.payer, '--since', '2026-01-31T03:30:00Z'], [four]],
    [['--digest', hex('8')], []],
    [['--since', '1h'], []],
  ] as const) {
    it(`finds ${expected.length} lines by ${words.join(' ') || 'nothing'}`, async (t) => {
      const cwd = await record(t);
      const ended = await runCli(t, ['audit', 'find', '-c', 'c.yaml', ...words], { cwd });
      const stdout = expected.map((text) => `${text}\n`).join('');
      const [code, more] = expected.length > 0 ? [0, ''] : [1, 'audit find: nothing was found\n'];
      assert.deepEqual(ended, { code, signal: null, stdout, stderr: `${warned(cwd)}${more}` });
    });
  }

  it('reads gigabytes without holding them', async (t) => {
    const cwd = await record(t);
    const many = `${LINES.one}\n`.repeat(5000);
    for (let i = 0; i < 40; i++) await appendFile(join(cwd, 'other.jsonl'), many);
    await appendFile(join(cwd, 'other.jsonl'), `${LINES.four}\n`);
    assert.ok((await stat(join(cwd, 'other.jsonl'))).size > 70_000_000);
    const env = { NODE_OPTIONS: '--max-old-space-size=64' };
    const words = ['audit', 'find', '--path', 'other.jsonl', '--request', hex('4')];
    assert.deepEqual(await launchCli(t, words, { cwd, env }).ended, {
      code: 0,
      signal: null,
      stdout: `${LINES.four}\n`,
      stderr: '',
    });
  });

  it('says what is wrong with how it was asked', async (t) => {
    const cwd = await record(t);
    await writeFile(join(cwd, 'none.yaml'), configText());
    const said = async (...words: string[]) => {
      const { code, stdout, stderr } = await runCli(t, ['audit', 'find', ...words], { cwd });
      assert.deepEqual([code, stdout], [1, '']);
      return stderr;
    };
    const needed = 'error: one of --config <file> and --path <file> is needed: it says which record to look in\n';
    assert.equal(await said(), needed);
    assert.equal(await said('-c', 'c.yaml', '--path', 'audit.jsonl'), needed);
    assert.equal(
      await said('--path', 'audit.jsonl', '--since', 'yesterday'),
      'error: option --since <time> must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 2h\n',
    );
    for (const [option, value, meaning] of [
      ['digest', 'zzz', 'a digest: 0x and 64 hex digits'],
      ['request', '0x12', 'the X-Request-Id of a response: 0x and 64 hex digits'],
      ['payment', hex('g'), 'a transaction or a nonce (0x and 64 hex digits), or a payer (0x and 40)'],
      ['endpoint', 'prices', 'an endpoint ID (0x and 64 hex digits), or a name such as prices/latest'],
    ] as const)
      assert.equal(
        await said('--path', 'audit.jsonl', `--${option}`, value),
        `error: --${option} must be ${meaning}\n`,
      );
    assert.equal(
      await said('-c', 'none.yaml'),
      'error: none.yaml: settings.audit is not set, so that nothing is recorded\n',
    );
    assert.equal(await said('--path', 'missing'), `error: ${join(cwd, 'missing')}: file not found\n`);
    assert.equal(await said('--path', '.'), `error: ${cwd}: cannot be read (EISDIR)\n`);
  });
});

describe('the audit record of a process', () => {
  it('is whole after a stop, and goes on after a kill', async (t) => {
    const { cwd, file, start } = await startAudited(t, '{ path: audit.jsonl }');
    const first = await start();
    await Promise.all(Array.from({ length: 50 }, first.small));
    first.child.kill('SIGTERM');
    assert.equal((await first.ended).code, 0);
    assert.equal((await auditLines(file)).length, 50);
    const second = await start();
    await second.small();
    await untilAudited(file, 51);
    second.child.kill('SIGKILL');
    await second.ended;
    // As a write leaves it that was cut short.
    await appendFile(file, '{"time":"2026-01-31T00:00:00.000Z","requestId":"0x');
    const third = await start();
    await third.small();
    third.child.kill('SIGTERM');
    await third.ended;
    const { code, stdout, stderr } = await runCli(t, ['audit', 'find', '--path', file, '--since', '1h'], { cwd });
    assert.deepEqual([code, stderr], [0, `warning: ${file}: a line that was cut short was skipped\n`]);
    assert.equal(
      new Set(
        stdout
          .trim()
          .split('\n')
          .map((text) => JSON.parse(text).requestId),
      ).size,
      52,
    );
  });

  const skip = withoutLimits || withoutPromtool;

  it('waits for room on a full disk, loses what cannot wait, and says both', { skip }, async (t) => {
    const { cwd, file, start } = await startAudited(t, '{ path: audit.jsonl, values: true }');
    const running = await start();
    await running.small();
    await untilAudited(file, 1);
    const before = await running.scrape();
    assert.deepEqual(before.table('audit_lines_total'), { written: 1, lost: 0 });
    assert.equal(before.value('audit_failing'), 0);
    // In the middle of the next line.
    running.limit((await stat(file)).size + 100);
    for (let i = 0; i < 12; i++) await running.large(900_000);
    await until(() => running.logged('the audit record cannot be written').length > 0);
    await until(() => running.logged('no more of them can wait').length > 0);
    const during = await running.scrape();
    const { written, lost = 0 } = during.table('audit_lines_total');
    assert.ok(written === 1 && lost > 0 && lost < 6, `${written} written, ${lost} lost`);
    assert.equal(during.value('audit_failing'), 1);
    const alerts = ['AuditRecordFails', 'AuditLinesLost'];
    await assertFiring(t, [{ scrape: before, minutes: 5 }], alerts, []);
    await assertFiring(
      t,
      [
        { scrape: before, minutes: 5 },
        { scrape: during, minutes: 3 },
      ],
      alerts,
      alerts.toSorted(),
    );

    running.limit('unlimited');
    await until(() => running.logged('the audit record is written again').length > 0);
    await running.small();
    running.child.kill('SIGTERM');
    await running.ended;
    const [failed, ...more] = running.logged('the audit record cannot be written');
    assert.deepEqual([failed.level, failed.path, failed.error, more], ['error', file, 'EFBIG', []]);
    assert.equal(running.logged('no more of them can wait').length, 1);
    assert.deepEqual(running.logged('the audit record is written again'), [{ level: 'warn', path: file, lost }]);
    const found = await runCli(t, ['audit', 'find', '--path', file], { cwd });
    assert.equal(found.stderr, `warning: ${file}: a line that was cut short was skipped\n`);
    assert.equal(found.stdout.trim().split('\n').length, 14 - lost);
  });
});
