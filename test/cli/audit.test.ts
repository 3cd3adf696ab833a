/** The audit record survives its process. */

import assert from 'node:assert/strict';
import { appendFile, readFile, stat } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { assertFires, withoutPromtool } from '../support/alerts.ts';
import { auditLines, untilAudited } from '../support/audit.ts';
import { eventually, retried } from '../support/wait.ts';
import { startAudited, withoutLimits } from './audited.ts';

describe('the audit record of a process', () => {
  it('is whole after a stop, and goes on after a kill', async (t) => {
    const { file, start } = await startAudited(t, '{ path: audit.jsonl }');
    const first = await start();
    await Promise.all(Array.from({ length: 50 }, first.small));
    assert.equal((await first.stop()).code, 0);
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
    await third.stop();
    const texts = (await readFile(file, 'utf8')).trim().split('\n');
    const whole = texts.filter((text) => text.endsWith('}'));
    assert.deepEqual([texts.length, whole.length], [53, 52]);
    assert.equal(new Set(whole.map((text) => JSON.parse(text).requestId)).size, 52);
  });

  const skip = withoutLimits || withoutPromtool;

  it('waits for room on a full disk, loses what cannot wait, and says both', { skip }, async (t) => {
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
    for (let i = 0; i < 12; i++) await running.large(900_000);
    await eventually(() => running.logged('the audit record cannot be written').length > 0);
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
    await running.small();
    await running.stop();
    const [failed, ...more] = running.logged('the audit record cannot be written');
    assert.deepEqual([failed.level, failed.path, failed.error, more], ['error', file, 'EFBIG', []]);
    assert.equal(running.logged('no more of them can wait').length, 1);
    assert.deepEqual(running.logged('the audit record is written again'), [{ level: 'warn', path: file, lost }]);
    const texts = (await readFile(file, 'utf8')).trim().split('\n');
    assert.deepEqual([texts.length, texts.filter((text) => text.endsWith('}')).length], [15 - lost, 14 - lost]);
  });
});
