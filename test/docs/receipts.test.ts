/** The example of docs/receipts.md can be computed again. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { keccak256, TypedDataEncoder, toUtf8Bytes, Wallet } from 'ethers';
import { blockNamed, filesOf, readPage } from '../support/docs.ts';
import { answerBy, RECEIPT_DOMAIN, RECEIPT_TYPES } from '../support/receipts.ts';
import { walk } from './walk.ts';

const PAGE = 'docs/receipts.md';
const page = await readPage(PAGE);
const answer = JSON.parse(filesOf(page).get('answer.json') ?? '');

const named = (name: string) => blockNamed(page, name).trim();

it(PAGE, async (t) => {
  await walk(t, PAGE, {
    skip: { 'function deliver(': 'part of a contract; test/e2e/receipts-contract.test.ts delivers to it' },
  });
});

it('the text of docs/receipts.md is what the request hash is of', () => {
  const hash = keccak256(toUtf8Bytes(named('canonical')));
  assert.equal(answer.receipt.requestHash, hash);
  assert.ok(page.includes(`here\n\`${hash}\`:`));
});

it('the answer of docs/receipts.md is what its key signs', async () => {
  const { endpointId, timestamp, data } = answer;
  const { parameters } = JSON.parse(named('canonical'));
  const wallet = new Wallet(`0x${'11'.repeat(32)}`);
  assert.deepEqual(await answerBy(wallet, { endpointId, timestamp, content: { data }, parameters }), answer);
});

it('the typed data of docs/receipts.md is hashed as the page says', () => {
  const { endpointId, timestamp, receipt } = answer;
  const { requestHash, dataHash } = receipt;
  const { name, version } = RECEIPT_DOMAIN;
  const type = TypedDataEncoder.from(RECEIPT_TYPES).encodeType('Receipt');
  assert.equal(named('typed'), `domain  {name: '${name}', version: '${version}'}\ntype    ${type}`);
  const hash = TypedDataEncoder.hash(RECEIPT_DOMAIN, RECEIPT_TYPES, { endpointId, requestHash, dataHash, timestamp });
  assert.ok(page.includes(`\`${TypedDataEncoder.hashDomain(RECEIPT_DOMAIN)}\``));
  assert.ok(page.includes(`\`${hash}\``));
});
