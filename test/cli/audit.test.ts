/** The audit record survives its process. */

import assert from 'node:assert/strict';
import { appendFile, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { untilAudited } from '../support/audit.ts';
import { startAudited } from './audited.ts';

describe('the audit record of a process', () => {
  it('goes on after a kill, and is whole after a stop', async (t) => {
    const { file, start } = await startAudited(t, '{ path: audit.jsonl }');
    const first = await start();
    await first.small();
    await untilAudited(file, 1);
    first.child.kill('SIGKILL');
    await first.ended;
    // As a write leaves it that was cut short.
    await appendFile(file, '{"time":"2026-01-31T00:00:00.000Z","requestId":"0x');
    const second = await start();
    await Promise.all(Array.from({ length: 50 }, second.small));
    assert.equal((await second.stop()).code, 0);
    const texts = (await readFile(file, 'utf8')).trim().split('\n');
    const whole = texts.filter((text) => text.endsWith('}'));
    assert.deepEqual([texts.length, whole.length], [52, 51]);
    assert.equal(new Set(whole.map((text) => JSON.parse(text).requestId)).size, 51);
  });
});
