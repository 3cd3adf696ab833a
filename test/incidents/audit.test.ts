/** The audit record and the log tell what became of an answer, and which lines are lost. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { startAudited, withoutLimits } from '../cli/audited.ts';
import { folderWith, runCli } from '../cli/run.ts';
import { untilAudited } from '../support/audit.ts';
import { foundInLog, queryOf } from '../support/incidents.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

it('a disk that is full: the log has the file and the reason, and says how many lines are lost', {
  skip: withoutLimits,
}, async (t) => {
  const { file, start } = await startAudited(t, '{ path: audit.jsonl, values: true }');
  const running = await start();
  await running.small();
  await untilAudited(file, 1);
  running.limit((await stat(file)).size);
  await running.small();
  await eventually(() => running.logged('the audit record cannot be written').length > 0);
  assert.equal((await running.scrape()).value('audit_failing'), 1);
  assert.deepEqual(await foundInLog('`AuditRecordFails` or `AuditLinesLost` fires', running.log()), [
    { path: file, error: 'EFBIG', waiting: 1 },
  ]);

  for (let i = 0; i < 12; i++) await running.large(900_000);
  await eventually(() => running.logged('no more of them can wait').length > 0);
  const { lost } = (await running.scrape()).table('audit_lines_total');
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
