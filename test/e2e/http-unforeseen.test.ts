/** What nobody foresaw is 500, and the reason stays in the log. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, assertRouteHeaders, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

/** Fails in the stage, and in the way, that the headers of the request name. */
const broken = `
const hostile = new Proxy({}, { get() { throw new Error('trap'); }, has() { throw new Error('trap'); } });
const cyclic = {};
cyclic.self = cyclic;
const thrown = {
  error: new Error('secret detail /home/operator/plugin.mjs'),
  text: 'secret detail',
  nothing: undefined,
  null: null,
  number: 0,
  hostile,
  refusal: { status: 418, message: 'secret detail', body: { error: 'secret detail' } },
  'no message': Object.assign(new Error(), { message: hostile, stack: hostile }),
};
const replies = {
  nothing: undefined,
  null: null,
  'status 0': { status: 0, body: '{}' },
  'status 101': { status: 101, body: '{}' },
  'status 999': { status: 999, body: '{}' },
  'status text': { status: '200', body: '{}' },
  'status NaN': { status: NaN, body: '{}' },
  'no body': { status: 200 },
  'body object': { status: 200, body: {} },
  'header value': { status: 200, body: '{}', headers: { 'X-Name': 'a\\r\\nX-Injected: 1' } },
  'header name': { status: 200, body: '{}', headers: { 'X Name': 'a' } },
  'header unicode': { status: 200, body: '{}', headers: { 'X-Name': '\\u20ac' } },
  'header undefined': { status: 200, body: '{}', headers: { 'X-Name': undefined } },
};
const failAt = (stage, { headers }) => {
  if (headers['x-stage'] === stage) throw thrown[headers['x-how'] ?? 'error'];
};
const replyFor = ({ headers }) => {
  failAt('route', { headers });
  return replies[headers['x-reply']];
};
export default {
  name: 'broken',
  modes: ['broken'],
  setup: () => ({
    hooks: {
      ...Object.fromEntries(['resolve', 'validate', 'answer', 'encrypt', 'attest', 'concluded'].map((stage) => [
        stage, (_, exchange) => failAt(stage, exchange),
      ])),
      admit: (exchange) => failAt('admit', exchange),
      respond: (_, exchange) => {
        failAt('respond', exchange);
        if (exchange.headers['x-stage'] === 'respond value') return { 'X-Name': 'a\\r\\nX-Injected: 1' };
        if (exchange.headers['x-stage'] === 'respond shape') return 'X-Name: a';
      },
      present: { broken: (_, exchange) => replyFor(exchange) },
    },
    routes: [{ method: 'GET', path: '/broken', admit: true, handle: replyFor }],
  }),
};
`;

const INTERNAL = 'Internal server error';

describe('what nobody foresaw is 500 Internal server error', async () => {
  const endpoints = {
    e: { path: '/price', encoding: { type: 'uint256', path: '$.price' } },
    b: { path: '/price', mode: 'broken' },
    leak: {},
    html: {},
  };
  const { service, refused, ...api } = await served(suite, endpoints, {
    answers: {
      '/price': faults.json({ price: 7 }),
      '/leak': faults.text('{"error":"upstream secret"}', { status: 500 }),
      '/html': faults.text('<html>upstream secret</html>', { type: 'text/html' }),
    },
    sources: { broken },
  });

  const post = (endpoint: string, headers: Record<string, string> = {}) => api.post(endpoint, {}, headers);
  /** The log has what the client does not get. */
  const explained = (response: Response) => {
    const requestId = response.headers.get('x-request-id');
    return eventually(
      () => service.logs.find(({ fields }) => fields.requestId === requestId && (fields.detail ?? fields.error)),
      'the reason in the log',
    );
  };

  for (const stage of ['admit', 'validate', 'answer', 'encrypt']) {
    it(`a plugin that throws in ${stage}`, () => refused(500, INTERNAL, 'e', {}, { 'X-Stage': stage }));
  }

  it('a plugin that throws in resolve', async () => {
    const response = await postText(`${service.url}/endpoints/0x00`, '{}', { ...JSON_HEADERS, 'X-Stage': 'resolve' });
    await assertRefused(response, 500, INTERNAL);
  });

  it('the reason is in the log, with the plugin’s name', async () => {
    const response = await post('e', { 'X-Stage': 'validate' });
    const line = await explained(response);
    assert.match(String(line.fields.detail), /plugin "broken": .*secret detail/);
  });

  for (const how of ['text', 'nothing', 'null', 'number', 'hostile', 'refusal', 'no message']) {
    it(`whatever is thrown: ${how}`, async () => {
      await assertRefused(await post('e', { 'X-Stage': 'validate', 'X-How': how }), 500, INTERNAL);
      const route = await fetch(`${service.url}/broken`, { headers: { 'X-Stage': 'route', 'X-How': how } });
      await assertRefused(route, 500, INTERNAL);
    });
  }

  for (const stage of ['attest', 'concluded', 'respond']) {
    it(`a plugin that throws in ${stage} spoils nothing: the stage fails open`, async () => {
      const response = await post('e', { 'X-Stage': stage });
      assertRouteHeaders(response);
      await verifyEncoded(response, TEST_ADDRESS);
      const line = await explained(response);
      assert.equal(line.message, `plugin "broken" failed in ${stage}`);
    });
  }

  for (const stage of ['respond value', 'respond shape']) {
    it(`headers that cannot be sent are left out: ${stage}`, async () => {
      const response = await post('e', { 'X-Stage': stage });
      assertRouteHeaders(response);
      assert.equal(response.headers.get('x-injected'), null);
      await verifyEncoded(response, TEST_ADDRESS);
      assert.equal((await explained(response)).message, 'plugin "broken" failed in respond');
    });
  }

  const replies = [
    ...['nothing', 'null', 'status 0', 'status 101', 'status 999', 'status text', 'status NaN'],
    ...['no body', 'body object', 'header value', 'header name', 'header unicode', 'header undefined'],
  ];
  for (const reply of replies) {
    it(`a reply that cannot be sent: ${reply}`, async () => {
      for (const response of [
        await fetch(`${service.url}/broken`, { headers: { 'X-Reply': reply } }),
        await post('b', { 'X-Reply': reply }),
      ]) {
        assert.equal(response.headers.get('x-injected'), null);
        await assertRefused(response, 500, INTERNAL);
      }
    });
  }

  it('the reason of what fails outside the pipeline is in the log: a route, its reply, the gate', async () => {
    for (const headers of [{ 'X-Stage': 'route' }, { 'X-Reply': 'status 999' }, { 'X-Stage': 'admit' }]) {
      const response = await fetch(`${service.url}/broken`, { headers });
      await response.arrayBuffer();
      assert.equal((await explained(response)).fields.status, 500);
    }
  });

  it('no body of the upstream reaches a client', async () => {
    for (const endpoint of ['leak', 'html']) await refused(502, 'API call failed', endpoint);
  });

  it('the service is well afterwards', async () => {
    await verifyEncoded(await post('e'), TEST_ADDRESS);
  });
});
