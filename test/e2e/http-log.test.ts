/** Each request is a line in the log, with its endpoint, status and time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { TEST_KEY } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { NATIVE, RECIPIENT } from '../support/x402.ts';

describe('the request log', async () => {
  const locked = [
    { type: 'apiKey', keys: ['secret-client-key'] },
    {
      type: 'x402',
      network: 1,
      rpc: 'http://127.0.0.1:9/secret-rpc',
      token: NATIVE,
      amount: '1',
      recipient: RECIPIENT,
    },
  ];
  const parameters = [{ name: 'q' }, { name: 'fixed', fixed: 'secret-fixed', secret: true }];
  const endpoints = {
    sync: { path: '/p?sync', parameters },
    async: { path: '/p', parameters, mode: 'async', auth: locked },
    down: { path: '/nothing', parameters },
    locked: { path: '/p?locked', auth: locked },
    hang: {},
  };
  const { upstream, service, at } = await served(suite, endpoints, {
    answers: { '/p': faults.json(1), '/hang': faults.hang() },
    api: { headers: { Authorization: 'Bearer secret-upstream-key' } },
  });

  /** The line of a response, found by its request id. */
  const lineOf = async (response: Response) => {
    await response.arrayBuffer();
    const requestId = response.headers.get('x-request-id');
    return eventually(
      () => service.logs.find(({ level, fields }) => level === 'info' && fields.requestId === requestId),
      'the line of the request',
    );
  };
  const logged = async (response: Response, what: string) => {
    const { message, fields } = await lineOf(response);
    const [milliseconds] = message.split(' ').slice(-1);
    assert.match(milliseconds ?? '', /^\d+(\.\d)?ms$/);
    assert.equal(message, `${what} ${response.status} ${milliseconds}`);
    const id = service.ids[what];
    if (id !== undefined) assert.deepEqual(Object.entries(fields).at(-1), ['endpointId', id]);
  };

  it('endpoint ID, status and milliseconds, of answers and of refusals', async () => {
    for (const name of ['sync', 'locked', 'down']) await logged(await postText(at(name), '{}'), `api/${name}`);
    await logged(await postText(at('sync'), '{'), 'api/sync');
    await logged(await postText(at('sync'), '{}', { 'Content-Type': 'text/plain' }), 'api/sync');
    const headers = { ...JSON_HEADERS, 'X-Api-Key': 'secret-client-key' };
    await logged(await postText(at('async'), '{}', headers), 'api/async');
  });

  it('without an endpoint: method and route, never the path as sent', async () => {
    await logged(await fetch(`${service.url}/health?token=secret-query`), 'GET /health');
    const unknown = await postText(`${service.url}/endpoints/secret-path?x=secret-query`, '{}');
    await logged(unknown, 'POST /endpoints/:endpointId');
    await logged(await fetch(`${service.url}/requests/secret-path`), 'GET /requests/:requestId');
    await logged(await fetch(`${service.url}/secret-path`), 'GET (no route)');
    await logged(await fetch(`${at('sync')}?secret-query`), 'GET /endpoints/:endpointId');
    await logged(await fetch(`${service.url}/secret-path`, { method: 'OPTIONS' }), 'OPTIONS *');
  });

  it('one line per request', async () => {
    const response = await postText(at('sync'), '{}');
    await lineOf(response);
    const last = await postText(at('sync'), '{}');
    await lineOf(last);
    const requestId = response.headers.get('x-request-id');
    const lines = service.logs.filter(({ level, fields }) => level === 'info' && fields.requestId === requestId);
    assert.equal(lines.length, 1);
  });

  it('a client that left before its answer is logged with 499', async () => {
    const connection = openRaw(service.url);
    const headers = { ...JSON_HEADERS, 'Content-Length': '0' };
    connection.write(`${requestHead(`POST ${new URL(at('hang')).pathname}`, headers)}\r\n`);
    await upstream.untilRequested('/hang');
    connection.destroy();
    await upstream.untilAborted('/hang');
    const line = () => service.logs.find(({ message }) => message.startsWith('api/hang 499 '));
    await eventually(line, 'the line of the request');
  });

  it('nothing secret on any level: keys, proofs, values, poll ids', async () => {
    const secrets = ['secret', TEST_KEY.slice(2)];
    const headers = { ...JSON_HEADERS, 'X-Api-Key': 'secret-client-key', Cookie: 'secret-cookie' };
    const body = '{"parameters":{"q":"secret-value","undeclared":"secret-undeclared"}}';
    for (const name of ['sync', 'down', 'locked', 'async']) {
      await lineOf(await postText(at(name), body, { ...headers, 'X-Payment-Proof': 'secret-proof' }));
      const wrong = { ...headers, 'X-Api-Key': 'secret-wrong', 'X-Payment-Proof': '"secret"' };
      await lineOf(await postText(at(name), body, wrong));
    }
    const accepted = await postText(at('async'), body, headers);
    const { pollUrl, requestId } = (await accepted.json()) as { pollUrl: string; requestId: string };
    await lineOf(await fetch(service.url + pollUrl));
    secrets.push(requestId, requestId.slice(2, 34));
    const text = JSON.stringify(service.logs);
    for (const secret of secrets) assert.ok(!text.includes(secret), `${secret} is in the log`);
  });
});
