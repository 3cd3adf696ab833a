/** A failed encryption is logged with a reason that holds no secret. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundedFetch } from '../../builtins/fhe/bounded-fetch.ts';
import { reasonOf } from '../../builtins/fhe/reason.ts';
import { connectRpc } from '../../builtins/fhe/rpc.ts';
import { suite } from '../support/lifetime.ts';
import { assertSays } from '../support/statements.ts';
import { faults, type Handler, startUpstream, upstreamFor } from '../support/upstream.ts';

describe('the reason of a failed encryption in the log', () => {
  it('is one line with all causes', () => {
    const inner = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    const outer = new Error("Relayer didn't\n respond.", { cause: { code: 'RELAYER', error: inner } });
    assert.equal(reasonOf(outer), "Relayer didn't respond, because: connect (ECONNREFUSED)");
    assert.equal(reasonOf(new Error('same', { cause: new Error('same') })), 'same');
    assert.equal(reasonOf(new AggregateError([], '', { cause: 'why' })), 'why');
  });

  it('is something for whatever is thrown', () => {
    for (const odd of [undefined, null, 7, {}, new Error('')]) assert.equal(reasonOf(odd), 'an error without a text');
    assert.equal(reasonOf('thrown as a string'), 'thrown as a string');
    const loop = new Error('again');
    loop.cause = loop;
    assert.equal(reasonOf(loop), 'again');
  });

  it('holds no secret, no credentials and no query', () => {
    const text = 'key=abc123 at https://user:pw@host/path?token=t#f and http://other/?q';
    assert.equal(reasonOf(new Error(text), ['abc123', '']), 'key=*** at https://host/path and http://other/');
  });

  it('has an end', () => assert.equal(reasonOf(new Error('x'.repeat(100_000))), `${'x'.repeat(500)}…`));
});

describe('what a worker fetches', async () => {
  const fetch = boundedFetch(globalThis.fetch, 1000);

  const upstream = await upstreamFor(suite, { '/fits': faults.big(1000), '/large': faults.big(1001), '/gzip': bomb });
  upstream.on('/empty', faults.empty(204));
  upstream.on('/moved', faults.redirect('/fits'));

  it('is read up to its limit, decompressed', async () => {
    const response = await fetch(`${upstream.url}/fits`);
    assert.equal((await response.text()).length, 1000);
    assert.equal(response.url, `${upstream.url}/fits`);
    for (const path of ['/large', '/gzip']) {
      await assert.rejects(
        async () => (await fetch(upstream.url + path)).arrayBuffer(),
        new Error('the answer has more than 1000 bytes'),
      );
    }
  });

  it('may be empty, and is not fetched from elsewhere', async () => {
    assert.equal((await fetch(`${upstream.url}/empty`)).status, 204);
    await assert.rejects(fetch(`${upstream.url}/moved`), TypeError);
    assert.equal(upstream.requests.filter(({ path }) => path === '/fits').length, 1);
  });
});

function bomb(...args: Parameters<Handler>): ReturnType<Handler> {
  return faults.coded('gzip', Buffer.alloc(100_000))(...args);
}

describe('the node of the host chain', async () => {
  const upstream = await upstreamFor(suite);

  const ask = async (handler: Handler, url = `${upstream.url}/secret-path`) => {
    upstream.on('/secret-path', handler);
    const rpc = connectRpc(url);
    try {
      return await rpc.request({ method: 'eth_chainId' });
    } finally {
      await rpc.close();
    }
  };

  const reply =
    (answer: Readonly<Record<string, unknown>>): Handler =>
    (req, res, recorded) =>
      faults.json({ jsonrpc: '2.0', id: JSON.parse(recorded.body).id, ...answer })(req, res, recorded);

  it('is asked in JSON-RPC, with the credentials of its URL as a header', async () => {
    const url = upstream.url.replace('//', '//us%40er:pass@');
    assert.equal(await ask(reply({ result: '0x1' }), `${url}/secret-path`), '0x1');
    const last = upstream.requests.at(-1);
    assert.equal(last?.headers.authorization, `Basic ${Buffer.from('us@er:pass').toString('base64')}`);
    assert.equal(last?.path, '/secret-path');
    assert.deepEqual(JSON.parse(last?.body ?? ''), { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
  });

  it('says what went wrong without its path, and says it to whoever waits for something else', async () => {
    for (const [handler, why] of [
      [faults.html(), 'the answer is no JSON'],
      [faults.json([1]), 'the answer is not JSON-RPC 2.0'],
      [faults.json(null), 'the answer is no object'],
      [reply({ id: 2, result: '0x1' }), 'the answer belongs to another question'],
      [reply({ error: { code: -32_000, message: 'quota of key secret-path' } }), 'error -32000'],
      [reply({}), 'the answer has no result'],
      [faults.serverError(), 'HTTP status 500'],
      [faults.big(300_000), /^too-large: /],
      [faults.reset(), /^network: /],
    ] satisfies [Handler, string | RegExp][]) {
      upstream.on('/secret-path', handler);
      const rpc = connectRpc(`${upstream.url}/secret-path`);
      const failed = assert.rejects(rpc.failed, Error);
      await assert.rejects(rpc.request({ method: 'eth_chainId' }), ({ message }: Error) => {
        const [, text = ''] = /^settings\.fhe\.rpcUrl, eth_chainId: (.+)$/s.exec(message) ?? [];
        assertSays(text, why, 'secret-path');
        return true;
      });
      await failed;
      await rpc.close();
    }
  });

  it('may be down', async () => {
    const down = await startUpstream();
    await down.close();
    const message = `settings.fhe.rpcUrl, eth_chainId: network: POST ${down.url} failed: the connection was refused (ECONNREFUSED)`;
    await assert.rejects(ask(faults.hang(), `${down.url}/`), { message });
  });
});
