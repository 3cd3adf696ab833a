/** Each request is a line in the log, with its endpoint, status and time. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

describe('the request log', async () => {
  const auth = { type: 'apiKey', keys: ['secret-client-key'] };
  const endpoints = {
    sync: { path: '/p?sync' },
    async: { path: '/p', mode: 'async', auth },
    down: { path: '/nothing' },
    locked: { path: '/p?locked', auth },
  };
  const { service, at } = await served(suite, endpoints, { answers: { '/p': faults.json(1) } });

  /** The line of a response, found by its request id. */
  const lineOf = async (response: Response) => {
    await response.arrayBuffer();
    const requestId = response.headers.get('x-request-id');
    return eventually(() =>
      service.logs.find(({ level, fields }) => level === 'info' && fields.requestId === requestId),
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
});
