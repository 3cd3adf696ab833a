/** What `import` makes of documents as vendors write them: what clients give is asked for, and the answer can be read. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { folderWith, runCli } from '../cli/run.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const json = (schema: object = {}) => ({ content: { 'application/json': { schema } } });
const ok = { responses: { 200: { description: 'ok', ...json() } } };
const api = (paths: object, more: object = {}) => ({
  ...{ openapi: '3.0.0', info: { title: 'T', version: '1' }, servers: [{ url: 'https://t.example' }], paths },
  ...more,
});
const get = (...parameters: object[]) => api({ '/a': { get: { operationId: 'a', parameters, ...ok } } });
const query = (name: string, schema: object = { type: 'string' }, more: object = {}) => ({
  ...{ name, in: 'query', schema },
  ...more,
});

/** The endpoints of a document, and the lines of what was left out or chosen. */
async function outcome(t: TestContext, document: object | string, ...args: string[]) {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const cwd = await folderWith(t, { 'a.yaml': text });
  const { stdout, stderr } = await runCli(t, ['import', 'a.yaml', ...args], { cwd });
  const apis = stdout === '' ? [] : parse(stdout).apis;
  const lines = stderr.split('\n').filter((line) => line.startsWith('left out: '));
  return {
    apis,
    endpoints: apis.flatMap((each: { endpoints: object[] }) => each.endpoints),
    parameters: apis[0]?.endpoints[0].parameters,
    said: lines.map((line) => line.slice('left out: '.length)),
    last: stderr.trim().split('\n').at(-1),
  };
}

/** Serves what was imported, and gives what the upstream gets of a client's parameters. */
async function asked(t: TestContext, document: object, parameters: object) {
  const upstream = await upstreamFor(t);
  upstream.on('*', (_req, res) => void res.end('{}'));
  const { apis } = await outcome(t, document, '--url', upstream.url);
  const service = await serviceFor(t, { apis }, { env: { CLIENT_KEY: 'key' } });
  const response = await service.post('t/a', parameters, { 'X-Api-Key': 'key' });
  assert.equal(response.status, 200);
  const [{ path, headers, body } = { path: '', headers: {}, body: '' }] = upstream.requests;
  return { path, accept: headers.accept, type: headers['content-type'], body };
}

describe('of texts', () => {
  it('a description ends with its first sentence, not with an abbreviation', async (t) => {
    const texts: [string, string][] = [
      ['Symbols to ask for, ie. BTC or ETH. Others are ignored.', 'Symbols to ask for, ie. BTC or ETH'],
      ['The trading pair, e.g. BTC-USD. Default all.', 'The trading pair, e.g. BTC-USD'],
      ['The pair (i.e. Bitcoin, eg. BTC). More.', 'The pair (i.e. Bitcoin, eg. BTC)'],
      ['Price in U.S. Dollars vs. Euro, approx. 5 s late. More.', 'Price in U.S. Dollars vs. Euro, approx. 5 s late'],
      ['Coins, tokens, etc. The answer is sorted.', 'Coins, tokens, etc'],
      ['Say whether, yes or no. Then go on.', 'Say whether, yes or no'],
      ['At most, max. 100 items. More.', 'At most, max. 100 items'],
      ['Preis in Euro, z.B. 12. Der Rest.', 'Preis in Euro, z.B. 12'],
    ];
    const { parameters } = await outcome(
      t,
      get(...texts.map(([description], i) => query(`p${i}`, undefined, { description }))),
    );
    assert.deepEqual(
      parameters.map(({ description }: { description: string }) => description),
      texts.map(([, short]) => short),
    );
  });
});
