/** Each request is a line in the log, with its endpoint, status and time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { endpointUrl, eventually, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { serviceFor, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

describe('the request log', async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('/p', 1);
  upstream.on('/hang', faults.hang());
  const locked = [
    { type: 'apiKey', keys: ['secret-client-key'] },
    {
      type: 'x402',
      network: 1,
      rpc: 'http://127.0.0.1:9/secret-rpc',
      token: '0x0000000000000000000000000000000000000000',
      amount: '1',
      recipient: TEST_ADDRESS,
    },
  ];
  const parameters = [{ name: 'q' }, { name: 'fixed', fixed: 'secret-fixed', secret: true }];
  const service = await serviceFor(suite, {
    apis: [
      {
        name: 'a',
        url: upstream.url,
        headers: { Authorization: 'Bearer secret-upstream-key' },
        auth: { type: 'free' },
        endpoints: [
          { name: 'sync', path: '/p?sync', parameters },
          { name: 'async', path: '/p', parameters, mode: 'async', auth: locked },
          { name: 'down', path: '/nothing', parameters },
          { name: 'locked', path: '/p?locked', auth: locked },
          { name: 'hang', path: '/hang' },
        ],
      },
    ],
  });

  /** The line of a response, found by its request id. */
  const lineOf = async (response: Response) => {
    await response.arrayBuffer();
    const requestId = response.headers.get('x-request-id');
    return eventually(
      () => service.logs.find(({ level, fields }) => level === 'info' && fields.requestId === requestId)?.message,
      'the line of the request',
    );
  };
  const logged = async (response: Response, what: string) => {
    const line = await lineOf(response);
    const [milliseconds] = line.split(' ').slice(-1);
    assert.match(milliseconds ?? '', /^\d+(\.\d)?ms$/);
    assert.equal(line, `${what} ${response.status} ${milliseconds}`);
  };
  const url = (name: string) => endpointUrl(service, `a/${name}`);

  it('endpoint ID, status and milliseconds, of answers and of refusals', async () => {
    await logged(await postText(url('sync'), '{}'), 'a/sync');
    await logged(await postText(url('sync'), '{'), 'a/sync');
    await logged(await postText(url('sync'), '{}', { 'Content-Type': 'text/plain' }), 'a/sync');
    await logged(await postText(url('locked'), '{}'), 'a/locked');
    await logged(await postText(url('down'), '{}'), 'a/down');
    await logged(await postText(url('async'), '{}', { ...JSON_HEADERS, 'X-Api-Key': 'secret-client-key' }), 'a/async');
  });

  it('without an endpoint: method and route, never the path as sent', async () => {
    await logged(await fetch(`${service.url}/health?token=secret-query`), 'GET /health');
    await logged(
      await postText(`${service.url}/endpoints/secret-path?x=secret-query`, '{}'),
      'POST /endpoints/:endpointId',
    );
    await logged(await fetch(`${service.url}/requests/secret-path`), 'GET /requests/:requestId');
    await logged(await fetch(`${service.url}/secret-path`), 'GET (no route)');
    await logged(await fetch(`${url('sync')}?secret-query`), 'GET /endpoints/:endpointId');
    await logged(await fetch(`${service.url}/secret-path`, { method: 'OPTIONS' }), 'OPTIONS *');
  });

  it('one line per request', async () => {
    const response = await postText(url('sync'), '{}');
    await lineOf(response);
    const last = await postText(url('sync'), '{}');
    await lineOf(last);
    const requestId = response.headers.get('x-request-id');
    const lines = service.logs.filter(({ level, fields }) => level === 'info' && fields.requestId === requestId);
    assert.equal(lines.length, 1);
  });

  it('a client that left before its answer is logged with 499', async () => {
    const connection = openRaw(service.url);
    const headers = { ...JSON_HEADERS, 'Content-Length': '0' };
    connection.write(`${requestHead(`POST ${new URL(url('hang')).pathname}`, headers)}\r\n`);
    await upstream.untilRequested('/hang');
    connection.destroy();
    await upstream.untilAborted('/hang');
    await eventually(
      () => service.logs.find(({ message }) => message.startsWith('a/hang 499 ')),
      'the line of the request',
    );
  });

  it('nothing secret on any level: keys, proofs, values, poll ids', async () => {
    const secrets = ['secret', TEST_KEY.slice(2)];
    const headers = { ...JSON_HEADERS, 'X-Api-Key': 'secret-client-key', Cookie: 'secret-cookie' };
    const body = '{"parameters":{"q":"secret-value","undeclared":"secret-undeclared"}}';
    for (const name of ['sync', 'down', 'locked', 'async']) {
      await lineOf(await postText(url(name), body, { ...headers, 'X-Payment-Proof': 'secret-proof' }));
      await lineOf(
        await postText(url(name), body, { ...headers, 'X-Api-Key': 'secret-wrong', 'X-Payment-Proof': '"secret"' }),
      );
    }
    const accepted = await postText(url('async'), body, headers);
    const { pollUrl, requestId } = (await accepted.json()) as { pollUrl: string; requestId: string };
    await lineOf(await fetch(service.url + pollUrl));
    secrets.push(requestId, requestId.slice(2, 34));
    const text = JSON.stringify(service.logs);
    for (const secret of secrets) assert.ok(!text.includes(secret), `${secret} is in the log`);
  });
});
