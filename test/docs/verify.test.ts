/** The examples of docs/verify.md can be computed again. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { getBytes, hashMessage, keccak256, TypedDataEncoder, toUtf8Bytes, Wallet } from 'ethers';
import { blockNamed, filesOf, readPage } from '../support/docs.ts';
import { answerBy, RECEIPT_DOMAIN, RECEIPT_TYPES } from '../support/receipts.ts';
import { TEST_KEY } from '../support/service.ts';
import { walk } from './walk.ts';

const PAGE = 'docs/verify.md';
const page = await readPage(PAGE);
const files = filesOf(page);

const named = (name: string) => blockNamed(page, name).trim();
const parsed = (file: string) => JSON.parse(files.get(file) ?? '');

it(PAGE, async (t) => {
  await walk(t, PAGE, {
    env: { SERVICE_PRIVATE_KEY: TEST_KEY },
    skip: { 'npm run -s cli -- identity --check': 'asks the DNS; test/cli/identity.slow.ts does so on loopback' },
  });
});

it('the bytes of docs/verify.md, one after the other', () => {
  const { endpointId, timestamp, data } = parsed('answer.json');
  const words = named('packed')
    .split('\n')
    .map((line) => line.trim().split(' ', 1)[0]);
  assert.deepEqual(words, [endpointId.slice(2), timestamp.toString(16).padStart(64, '0'), data.slice(2)]);
  const digest = keccak256(`0x${words.join('')}`);
  assert.ok(page.includes(`The *digest* is their keccak-256:\n   \`${digest}\``));
  assert.ok(page.includes(`‖ digest)\`:\n   \`${hashMessage(getBytes(digest))}\``));
});

it('the canonical text of docs/verify.md', () => {
  const text = named('canonical');
  assert.deepEqual(JSON.parse(text), parsed('raw.json').rawData);
  assert.ok(page.includes(`and its hash \`${keccak256(toUtf8Bytes(text))}\``));
});

it('the text of docs/verify.md that the request hash is of', () => {
  const hash = keccak256(toUtf8Bytes(named('request')));
  assert.equal(parsed('receipt.json').receipt.requestHash, hash);
  assert.ok(page.includes(`here\n\`${hash}\`:`));
});

it('the answer with a receipt of docs/verify.md is what its key signs', async () => {
  const { endpointId, timestamp, data } = parsed('receipt.json');
  const { parameters } = JSON.parse(named('request'));
  const wallet = new Wallet(`0x${'11'.repeat(32)}`);
  assert.deepEqual(
    await answerBy(wallet, { endpointId, timestamp, content: { data }, parameters }),
    parsed('receipt.json'),
  );
});

it('the typed data of docs/verify.md is hashed as the page says', () => {
  const { endpointId, timestamp, receipt } = parsed('receipt.json');
  const { requestHash, dataHash } = receipt;
  const { name, version } = RECEIPT_DOMAIN;
  const type = TypedDataEncoder.from(RECEIPT_TYPES).encodeType('Receipt');
  assert.equal(named('typed'), `domain  {name: '${name}', version: '${version}'}\ntype    ${type}`);
  const hash = TypedDataEncoder.hash(RECEIPT_DOMAIN, RECEIPT_TYPES, { endpointId, requestHash, dataHash, timestamp });
  assert.ok(page.includes(`\`${TypedDataEncoder.hashDomain(RECEIPT_DOMAIN)}\``));
  assert.ok(page.includes(`\`${hash}\``));
});
