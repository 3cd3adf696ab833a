/** A full heap ends the process, and the log stays JSON. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { lastLine, onSignal, startIn } from './started.ts';

it('a heap that is full ends the process by SIGABRT: what V8 says of it goes to stderr, and the log stays JSON', async (t) => {
  const leak = onSignal('  const kept = [];\n  for (;;) kept.push({ n: kept.length });');
  const env = { LOG_FORMAT: 'json', NODE_OPTIONS: '--max-old-space-size=64', NODE_V8_COVERAGE: '' };
  const { child, output, ended } = await startIn(t, leak, env);
  await output(new RegExp(lastLine.source.replace('\\n', '"')));
  child.kill('SIGUSR2');
  const { signal, stdout, stderr } = await ended;
  assert.equal(signal, 'SIGABRT');
  const levels = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).level);
  assert.ok(levels.length > 3 && levels.every((level) => /^(info|warn)$/.test(level)), stdout);
  assert.match(stderr, /^<--- Last few GCs --->$/m);
  assert.match(stderr, /^FATAL ERROR: .* JavaScript heap out of memory$/m);
});
