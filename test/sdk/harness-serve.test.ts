/** The harness serves a plugin in a whole service. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { testPlugin } from 'signed-data-proxy/plugins-sdk/testing';
import { definePlugin, Type } from '../../plugins-sdk/index.ts';
import type { ServeOptions, ServiceConfig } from '../../plugins-sdk/testing/service.ts';
import * as harness from '../../service/testing/alone.ts';
import { verifyResponse } from '../../verify/index.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const CONFIG = {
  apis: [
    {
      name: 'prices',
      url: 'http://127.0.0.1:1',
      auth: { type: 'free' },
      endpoints: [
        { name: 'eth', path: '/eth', encoding: { type: 'int256', path: '$.price', times: '100' } },
        { name: 'all', path: '/all', mode: 'async' },
        { name: 'text', path: '/text', mode: 'stream', parameters: [{ name: 'q', required: true }] },
      ],
    },
  ],
};

/** A service whose upstream has a price. */
async function serve(
  t: TestContext,
  plugin: Parameters<typeof testPlugin>[0],
  { budget, config, ...rest }: { budget?: number; config?: unknown } & ServeOptions = {},
  change: (config: typeof CONFIG) => ServiceConfig = (same) => same,
) {
  const upstream = await upstreamFor(t, { '*': faults.json({ price: 20.64 }) });
  const [api] = CONFIG.apis;
  const prices = { ...api, url: upstream.url } as (typeof CONFIG.apis)[number];
  const tested = await testPlugin(plugin, { t, budget, config });
  return { upstream, service: await tested.serve(change({ apis: [prices] }), rest) };
}

const idle = { name: 'p', hooks: {} };

describe('harness.serve', () => {
  it('asks an endpoint by its name, through the built-ins and the plugin, and over HTTP upstream', async (t) => {
    const { service, upstream } = await serve(t, {
      name: 'p',
      hooks: {
        onHttpRequest: ({ headers, ip }) =>
          headers['x-who'] === 'eve' ? { reject: true, status: 418, message: `not for ${ip}` } : undefined,
        onAfterApiCall: () => ({ data: { price: 3 } }),
      },
    });
    const answer = await service.ask<Record<string, string>>('prices/eth');
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-type'], 'application/json');
    const [endpoint] = service.endpoints;
    assert.equal(answer.body.data, `0x${(300).toString(16).padStart(64, '0')}`);
    const verdict = verifyResponse(answer.body, { node: service.signer, ...(endpoint && { endpointId: endpoint.id }) });
    assert.equal(verdict.ok, true);
    const asked = upstream.requests.map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(asked, ['GET /eth']);
    const refused = await service.ask('prices/eth', {}, { headers: { 'X-Who': 'eve' }, ip: '192.0.2.1' });
    assert.deepEqual([refused.status, refused.body], [418, { error: 'not for 192.0.2.1' }]);
  });

  it('has the modes, their polling route, and routes of plugins', async (t) => {
    const plugin = definePlugin({
      name: 'p',
      setup: () => ({
        routes: [
          {
            method: 'POST',
            path: '/echo/:name',
            admit: true,
            maxBody: 100,
            handle: ({ params, query, body }) => ({
              status: 201,
              headers: { 'Content-Type': 'text/plain' },
              body: `${params.name} ${query.get('a')} ${Buffer.from(body)}`,
            }),
          },
        ],
      }),
    });
    const { service } = await serve(t, plugin);
    const begun = await service.ask<Record<string, string>>('prices/all');
    assert.equal(begun.status, 202);
    const path = String(begun.headers.location ?? begun.body.pollUrl);
    const poll = async () => {
      const answer = await service.request<Record<string, string>>({ path });
      return answer.body.status !== 'pending' && answer;
    };
    const polled = await eventually(poll, 'the end of the request');
    assert.equal(polled.status, 200);
    const echoed = await service.request({ method: 'POST', path: '/echo/ada?a=1', body: 'sent' });
    assert.deepEqual([echoed.status, echoed.body], [201, 'ada 1 sent']);
    const streamed = await service.ask('prices/text', { q: 'x' });
    assert.equal(streamed.headers['content-type'], 'text/event-stream');
    assert.match(String(streamed.body), /^(?:event|data): /m);
    const missing = await service.ask('prices/text');
    assert.deepEqual([missing.status, missing.body], [400, { error: 'Missing required parameter(s): q' }]);
    assert.equal((await service.request({ path: '/nowhere' })).status, 404);
  });

  it('checks the config of the service and of the plugin as a start does', async (t) => {
    const wrong = serve(t, idle, {}, ({ apis }) => ({ apis, server: { prot: 1 } }));
    await assert.rejects(wrong, /server\.prot: unknown key, did you mean "port"\?/);
    const schema = Type.Object({ max: Type.Integer() }, { additionalProperties: false });
    const plugin = definePlugin({ name: 'p', configSchema: schema, setup: () => ({}) });
    const { service } = await serve(t, plugin, { config: { max: 1 } });
    assert.equal((await service.ask('prices/eth')).status, 200);
    const name = /there is no endpoint "prices\/etc", did you mean "prices\/eth"\?/;
    await assert.rejects(service.ask('prices/etc'), name);
  });

  it('signs with the key that it is given, and replaces variables', async (t) => {
    const variable = `\${ORIGINS}`;
    const env = { SERVICE_PRIVATE_KEY: `${'0'.repeat(63)}1`, ORIGINS: 'https://a.example' };
    const { service } = await serve(t, idle, { env }, (config) => ({
      ...config,
      server: { cors: { origins: [variable] } },
    }));
    assert.equal(service.signer, '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf');
    const { headers } = await service.ask('prices/eth', {}, { headers: { Origin: 'https://a.example' } });
    assert.equal(headers['access-control-allow-origin'], 'https://a.example');
  });

  it('has budgets, and the log of what they cost', async (t) => {
    const plugin = { name: 'p', hooks: { onBeforeApiCall: () => new Promise<never>(() => undefined) } };
    const { service } = await serve(t, plugin, { budget: 20 });
    const { status, body } = await service.ask('prices/eth');
    assert.deepEqual([status, body], [403, { error: 'Plugin "p" budget exhausted' }]);
    assert.ok(service.log.some(({ level, message }) => level === 'warn' && message.includes('budget exhausted')));
  });

  it('has in its log what failed after an answer', async (t) => {
    const onResponseSent = () => {
      throw new Error('no route');
    };
    const { service } = await serve(t, { name: 'p', hooks: { onResponseSent } });
    assert.equal((await service.ask('prices/eth')).status, 200);
    await service.stop();
    const found = service.log.filter(({ message }) => message.startsWith('plugin "p"'));
    assert.deepEqual(
      found.map(({ level, message }) => [level, message]),
      ['warn', 'error'].map((level) => [level, 'plugin "p" failed in onResponseSent']),
    );
    for (const { fields } of found) assert.match(String(fields.requestId), /^0x[0-9a-f]{64}$/);
  });

  it('tells a plugin that the client left, and a stop waits for what goes on', async (t) => {
    const seen: string[] = [];
    const client = new AbortController();
    const plugin = definePlugin({
      name: 'p',
      setup: ({ background }) => ({
        hooks: {
          onHttpRequest: ({ signal }) => {
            client.abort();
            signal.addEventListener('abort', () => {
              seen.push('left');
              background(new Promise((done) => setTimeout(done, 100)).then(() => seen.push('ended')));
            });
            return new Promise<never>(() => undefined);
          },
        },
        stop: () => void seen.push('stopped'),
      }),
    });
    const { service } = await serve(t, plugin);
    await assert.rejects(service.ask('prices/eth', {}, { signal: client.signal }), { name: 'AbortError' });
    await eventually(() => seen.length > 0);
    await service.stop();
    assert.deepEqual(seen, ['left', 'ended', 'stopped']);
  });

  it('is no part of the SDK by itself', async () => {
    const alone = await harness.testPlugin(idle);
    await assert.rejects(alone.serve(CONFIG), {
      message: 'harness.serve needs the service: import testPlugin from "signed-data-proxy/plugins-sdk/testing"',
    });
  });
});
