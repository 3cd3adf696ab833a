/** The example of docs/signing.md can be computed again. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { getBytes, hashMessage, keccak256, toUtf8Bytes } from 'ethers';
import { blockNamed, filesOf, readPage } from '../support/docs.ts';
import { walk } from './walk.ts';

const PAGE = 'docs/signing.md';
const page = await readPage(PAGE);

const named = (name: string) => blockNamed(page, name).trim();

it(PAGE, async (t) => {
  await walk(t, PAGE, {
    skip: { 'npm run -s cli -- identity --check': 'asks the DNS; test/cli/identity.slow.ts does so on loopback' },
  });
});

it('the bytes of docs/signing.md, one after the other', () => {
  const { endpointId, timestamp, data } = JSON.parse(filesOf(page).get('answer.json') ?? '');
  const words = named('packed')
    .split('\n')
    .map((line) => line.trim().split(' ', 1)[0]);
  assert.deepEqual(words, [endpointId.slice(2), timestamp.toString(16).padStart(64, '0'), data.slice(2)]);
  const digest = keccak256(`0x${words.join('')}`);
  assert.ok(page.includes(`The *digest* is their keccak-256:\n   \`${digest}\``));
  assert.ok(page.includes(`‖ digest)\`:\n   \`${hashMessage(getBytes(digest))}\``));
});

it('the canonical text of docs/signing.md', () => {
  const { rawData } = JSON.parse(filesOf(page).get('raw.json') ?? '');
  const text = named('canonical');
  assert.deepEqual(JSON.parse(text), rawData);
  assert.ok(page.includes(`and its hash \`${keccak256(toUtf8Bytes(text))}\``));
});
