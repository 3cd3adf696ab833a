/** The demo of a quorum names a lie, and a contract reads what honest operators say. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { launch, PACKAGE_ROOT } from './run.ts';

it('npm run demo:quorum: a lie is named, and a contract reads what two honest operators say', async (t) => {
  const { ended } = launch(t, 'npm', ['run', '--silent', 'demo:quorum'], { cwd: PACKAGE_ROOT });
  const { code, stdout, stderr } = await ended;
  assert.deepEqual([code, stderr], [0, '']);
  const [, ...signers] = stdout.split('signs as ').map((text) => text.slice(0, 42));
  const lines = stdout.split('\n').filter((line) => /^ {2}(?:value|failed|reads|refuses) /.test(line));
  const price = 2_064_250_000_000_000_000_000n;
  const [, url] = /(http:\S+) signs as \S+, and lies/.exec(stdout) ?? [];
  assert.deepEqual(lines.slice(0, 4), [
    `  value    ${price}, the median of 2`,
    `  failed   ${url}: deviation: ${price * 10n} is further than 0.01 of it from the median, ${price}`,
    `  reads    ${price} from the two that agree`,
    `  reads    ${price} from all three, the lie included`,
  ]);
  const [changed = '', alone] = lines.slice(4);
  assert.ok(changed.startsWith(`  refuses  changed data: WrongSigner(${signers[0]},`), changed);
  assert.equal(alone, '  refuses  one answer: TooFewAnswers(1,2)');
});
