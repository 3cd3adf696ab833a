/** The audit record and the log tell what became of an answer, and which lines are lost. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { startAudited, withoutLimits } from '../cli/audited.ts';
import { folderWith, runCli } from '../cli/run.ts';
import { assertFires, withoutPromtool } from '../support/alerts.ts';
import { untilAudited } from '../support/audit.ts';
import { foundInLog, queryOf } from '../support/incidents.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';
import { eventually, retried } from '../support/wait.ts';

type Audited = Awaited<ReturnType<Awaited<ReturnType<typeof startAudited>>['start']>>;

/** Each trouble is in the log once; of 15 answers the record misses those that are lost, behind a line that was cut short. */
async function assertRecovered(running: Audited, file: string, lost: number): Promise<void> {
  await running.small();
  await running.stop();
  const [failed, ...more] = running.logged('the audit record cannot be written');
  assert.deepEqual([failed.level, failed.path, failed.error, more], ['error', file, 'EFBIG', []]);
  assert.equal(running.logged('no more of them can wait').length, 1);
  assert.deepEqual(running.logged('the audit record is written again'), [{ level: 'warn', path: file, lost }]);
  const texts = (await readFile(file, 'utf8')).trim().split('\n');
  assert.deepEqual([texts.length, texts.filter((text) => text.endsWith('}')).length], [16 - lost, 15 - lost]);
}

it('a disk that is full: the record waits for room and loses what cannot wait, and the log says which, why and how many', {
  skip: withoutLimits || withoutPromtool,
}, async (t) => {
  const { file, start } = await startAudited(t, '{ path: audit.jsonl, values: true }');
  const running = await start();
  await running.small();
  const counts = async () => (await running.scrape()).table('audit_lines_total');
  // A line is counted after it was written.
  await retried(async () => assert.deepEqual(await counts(), { written: 1, lost: 0 }));
  const before = await running.scrape();
  assert.equal(before.value('audit_failing'), 0);
  // In the middle of the next line.
  running.limit((await stat(file)).size + 100);
  await running.small();
  await eventually(() => running.logged('the audit record cannot be written').length > 0);
  assert.deepEqual(await foundInLog('`AuditRecordFails` or `AuditLinesLost` fires', running.log()), [
    { path: file, error: 'EFBIG', waiting: 1 },
  ]);

  for (let i = 0; i < 12; i++) await running.large(900_000);
  await eventually(() => running.logged('no more of them can wait').length > 0);
  const during = await running.scrape();
  const { written, lost = 0 } = during.table('audit_lines_total');
  assert.ok(written === 1 && lost > 0 && lost < 6, `${written} written, ${lost} lost`);
  assert.equal(during.value('audit_failing'), 1);
  const seen = [
    { scrape: before, minutes: 5 },
    { scrape: during, minutes: 3 },
  ];
  await assertFires(t, seen, ['AuditLinesLost', 'AuditRecordFails']);

  running.limit('unlimited');
  await eventually(() => running.logged('the audit record is written again').length > 0);
  const missing = await foundInLog('Lines are missing in the audit record: how many, and until when?', running.log());
  assert.deepEqual(
    missing.map((line) =>
      Object.entries(line as object).map(([name, value]) => [name, name === 'lost' ? value : typeof value]),
    ),
    [
      [
        ['time', 'string'],
        ['lost', lost],
      ],
    ],
  );
  await assertRecovered(running, file, lost);
});

it('an answer that somebody shows: the record has its request', async (t) => {
  const cwd = await folderWith(t);
  const settings = { audit: { path: join(cwd, 'audit/signed.jsonl') } };
  await mkdir(join(cwd, 'audit'));
  const { service } = await served(t, { plain: {} }, { answers: { '*': faults.json({ price: 7 }) }, settings });
  const response = await service.post('api/plain');
  await writeFile(join(cwd, 'answer.json'), await response.text());
  await untilAudited(settings.audit.path, 1);
  const verified = await runCli(t, ['verify', 'answer.json'], { cwd });
  const [, digest = ''] = /^Digest: (0x\w+)$/m.exec(verified.stdout) ?? [];
  const query = await queryOf('Did we sign a given answer, and for whom?');
  const found = spawnSync('sh', ['-c', query.replace('DIGEST', digest)], { cwd, encoding: 'utf8' });
  assert.deepEqual([found.status, found.stderr], [0, '']);
  assert.equal(JSON.parse(found.stdout).requestId, response.headers.get('x-request-id'));
});
