/** The consumers' package where it runs: in a page and in a Worker of a real browser, before real services. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { Wallet } from 'ethers';
import { browserFor, skip } from '../explorer/browser.ts';
import { dataOf } from '../support/quorum.ts';
import { answerBy } from '../support/receipts.ts';
import { serviceFor } from '../support/service.ts';
import { faults, type Handler, type Upstream, upstreamFor } from '../support/upstream.ts';

const VERIFY = fileURLToPath(new URL('../../verify/', import.meta.url));
const PRICE = 2_064_250_000_000_000_000_000n;
const wallets = [1, 2, 3].map((n) => new Wallet(`0x${String(n).repeat(64)}`));

/** Asks, and then asks the last two alone, of which none is good. */
const PROGRAM = `
import { askMany } from './index.ts';
export const told = (asked) => askMany({ ...asked, settle: 'all' }).then(async ({ value, answers, failures }) => {
  const operators = asked.operators.slice(2);
  const rejected = await askMany({ ...asked, operators }).catch(({ name, message }) => name + ': ' + message.split(';')[0]);
  return { value: String(value), good: answers.length, failures: failures.map(({ reason }) => reason), rejected };
}, String);
globalThis.told = told;
globalThis.onmessage = ({ data }) => told(data).then(postMessage);
`;

/** As the service answers other origins. */
const open =
  (answer: Handler): Handler =>
  (req, res, recorded) => {
    res
      .setHeader('Access-Control-Allow-Origin', '*')
      .setHeader('Access-Control-Allow-Headers', 'Content-Type, X-Api-Key');
    return req.method === 'OPTIONS' ? void res.writeHead(204).end() : answer(req, res, recorded);
  };

/** A service of the specification that all share. */
async function serviceOf(t: TestContext, upstream: Upstream, wallet: Wallet) {
  const endpoints = [{ name: 'spot', path: '/price', encoding: { type: 'int256', path: '$.price', times: '1e18' } }];
  const api = { name: 'prices', url: upstream.url, auth: { type: 'apiKey', keys: ['k-1'] }, endpoints };
  const service = await serviceFor(t, { apis: [api] }, { env: { SERVICE_PRIVATE_KEY: wallet.privateKey } });
  return { url: service.url, endpointId: service.ids['prices/spot'] ?? '', signer: wallet.address, key: 'k-1' };
}

it('asks several operators from a page and from a Worker', { skip }, async (t) => {
  const upstream = await upstreamFor(t, { '/price': faults.text('{"price":2064.25}') });
  const [one, two, three] = wallets;
  assert.ok(one && two && three);
  const services = [await serviceOf(t, upstream, one), await serviceOf(t, upstream, two)];
  const [{ url, endpointId } = { url: '', endpointId: '' }] = services;
  const lie: Handler = async (_req, res) => {
    const timestamp = Math.floor(Date.now() / 1000);
    const unsigned = { endpointId, timestamp, content: { data: dataOf(PRICE * 2n) }, parameters: {} };
    res.end(JSON.stringify(await answerBy(three, unsigned)));
  };
  const redirect: Handler = (_req, res) =>
    void res.writeHead(307, { Location: `${url}/endpoints/${endpointId}` }).end();
  upstream.on(`/liar/endpoints/${endpointId}`, open(lie));
  upstream.on(`/moved/endpoints/${endpointId}`, open(redirect));
  const operators = [
    ...services,
    { url: `${upstream.url}/liar`, signer: three.address },
    { url: `${upstream.url}/moved`, signer: one.address },
  ].map(({ endpointId: _, ...operator }: { endpointId?: string; url: string; signer: string }) => operator);
  const asked = { operators, endpointId, k: 2, maxDeviation: 0.01 };

  const { outputFiles } = await build({
    stdin: { contents: PROGRAM, resolveDir: VERIFY, loader: 'ts' },
    ...{ bundle: true, write: false, platform: 'browser', format: 'iife' },
  });
  upstream.text('/', '<!doctype html><script src="/ask.js"></script>', { type: 'text/html' });
  upstream.text('/ask.js', outputFiles[0]?.text ?? '', { type: 'text/javascript' });
  const page = await (await browserFor(t)).newPage();
  await page.goto(`${upstream.url}/`);
  const expected = {
    ...{ value: String(PRICE), good: 2, failures: ['deviation', 'redirect'] },
    rejected: 'QuorumError: 1 of 2 answers that are needed are good',
  };
  assert.deepEqual(await page.evaluate(`told(${JSON.stringify(asked)})`), expected);
  const inWorker = `new Promise((resolve, reject) => {
    const worker = new Worker('/ask.js');
    Object.assign(worker, { onmessage: ({ data }) => resolve(data), onerror: reject });
    worker.postMessage(${JSON.stringify(asked)});
  })`;
  assert.deepEqual(await page.evaluate(inWorker), expected);
});
