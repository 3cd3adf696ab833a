/** Upstreams are found by name, and a dead address costs no answer. */

import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { knowNames } from '../support/names.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

const NAMES = {
  'healthy.test': ['127.0.0.1'],
  // Nothing listens at the first address of either family.
  'several.test': ['127.0.0.2', '::2', '127.0.0.1'],
  'dead.test': 'silence',
} as const;

/** Hosts by the names of their APIs. */
const HOSTS = {
  healthy: 'healthy.test',
  several: 'several.test',
  local: 'localhost',
  below: 'some.localhost',
  dead: 'dead.test',
  unknown: 'unknown.test',
};

describe('upstreams that have names', async () => {
  const names = knowNames({ after }, NAMES);
  // Every call needs a connection of its own, and with it the address of its host.
  const upstream = await upstreamFor(suite, {
    '*': (req, res, recorded) => faults.json({ value: 1 })(req, res.setHeader('Connection', 'close'), recorded),
  });
  const apis = Object.entries(HOSTS).flatMap(([name, host]) => {
    const api = { name, timeout: name === 'dead' ? 500 : 20_000 };
    return oneApi(upstream.url.replace('127.0.0.1', host), { e: {} }, { api }).apis;
  });
  const service = await serviceFor(suite, { apis });
  beforeEach(() => {
    names.asked.length = 0;
  });

  const asked = (name: string) => names.asked.filter((asked) => asked === name);
  const answers = async (api: string) => verifyRaw(await service.post(`${api}/e`), service.signer.address);

  it('a dead name costs nobody else: it is asked for once, whoever waits', async () => {
    const dead = Array.from({ length: 20 }, () => service.post('dead/e'));
    await eventually(() => asked('dead.test')[0], 'a question');
    for (let turn = 0; turn < 5; turn++) await answers('healthy');
    for (const response of dead) await assertRefused(await response, 502, 'API call failed');
    const reasons = service.logs.flatMap(({ fields }) => (fields.detail === undefined ? [] : [String(fields.detail)]));
    assert.match(reasons.at(-1) ?? '', /^timeout: GET http:.*dead\.test.* failed: no connection within \d+ ms$/);
    assert.equal(asked('dead.test').length, 1);
    await answers('healthy');
  });

  it('are looked up once while their addresses are kept', async () => {
    for (let turn = 0; turn < 5; turn++) await answers('healthy');
    assert.deepEqual(asked('healthy.test'), []);
  });

  it('may have several addresses, some of them dead', async () => {
    await answers('several');
  });

  it('may be of this machine', async () => {
    for (const api of ['local', 'below']) await answers(api);
  });

  it('that do not exist are a 502, and reached as soon as they do', async () => {
    await assertRefused(await service.post('unknown/e'), 502, 'API call failed');
    const { fields } = service.logs.findLast(({ level }) => level === 'warn') ?? {};
    const url = upstream.url.replace('127.0.0.1', 'unknown.test');
    assert.equal(fields?.detail, `network: GET ${url} failed: the host name is unknown (ENOTFOUND)`);
    names.set('unknown.test', ['127.0.0.1']);
    let status = 502;
    for (let turn = 0; status === 502 && turn < 5000; turn++) status = (await service.post('unknown/e')).status;
    assert.equal(status, 200);
  });
});
