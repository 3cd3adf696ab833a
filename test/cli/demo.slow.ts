/** The demo shows two verified answers, a curl line and a page that work. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

it('npm run demo: two verified answers, a curl line and a page that work, and an end with Ctrl-C', async () => {
  const demo = spawn('npm', ['run', '--silent', 'demo'], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(demo, 'exit');
  let text = '';
  for await (const chunk of demo.stdout) {
    text += chunk;
    const match = /curl -s -X POST (http:\S+) -H 'Content-Type: application\/json' -d '\{\}'\n/.exec(text);
    const page = /in a browser: (http:\S+\/)\n/.exec(text);
    if (match?.[1] === undefined || page?.[1] === undefined) continue;
    assert.match(await (await fetch(page[1])).text(), /The price of one asset, with 18 decimals/);
    const response = await fetch(match[1], {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{}',
    });
    assert.equal(response.status, 200);
    const { data } = (await response.json()) as { data: string };
    assert.equal(BigInt(data), 2064012345678901234567n);
    break;
  }
  assert.equal(text.split('✓').length - 1, 2);
  assert.match(text, /^1\. An encoded answer: [^\n]+\n\{\n.+^2\. A raw answer: [^\n]+\n\{\n/ms);
  assert.equal(text.split('\n  digest     keccak256(endpointId ‖ timestamp ‖ data) = 0x').length - 1, 2);
  assert.match(text, /value {6}2064012345678901234567 = 2064\.012345678901234567 /);
  assert.match(
    text,
    /digits {5}fewer than the upstream sent: a raw answer carries numbers as doubles, an encoding signs every/,
  );
  demo.kill('SIGINT');
  assert.deepEqual(await exited, [0, null]);
});
