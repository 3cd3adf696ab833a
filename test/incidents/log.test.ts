/** The log tells the cause of an incident. */

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { describe, it, type TestContext } from 'node:test';
import { foundInLog, symptomsOf } from '../support/incidents.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const HOUR = 3_600_000;
const LATE_MS = 120;
const SLOW_MS = 100;

it('each symptom of docs/troubleshooting.md has a test here', async () => {
  const folder = new URL('.', import.meta.url);
  const names = (await readdir(folder)).filter((name) => name.endsWith('.test.ts'));
  const tests = (await Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')))).join('');
  const symptoms = await symptomsOf();
  assert.ok(symptoms.length > 20, String(symptoms.length));
  assert.deepEqual(
    symptoms.filter((symptom) => !tests.includes(`'${symptom}'`)),
    [],
  );
});

describe('an incident', async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('/quick', 1);
  upstream.on('/late', (_, response) => void setTimeout(() => response.end('1'), LATE_MS));

  /** A service with its log as operators have it, behind a proxy that says which address asks. */
  async function start(t: TestContext, settings: object = {}) {
    const keys = [{ key: 'partner-key-0001', name: 'partner', rateLimit: { max: 1, window: HOUR } }];
    const config = {
      server: { rateLimit: { max: 1000, trustForwardedFor: 1 } },
      settings,
      apis: [
        {
          name: 'prices',
          url: upstream.url,
          auth: { type: 'free' },
          endpoints: [
            { name: 'quick', path: '/quick' },
            { name: 'late', path: '/late' },
            { name: 'locked', path: '/quick?locked', auth: { type: 'apiKey', keys } },
          ],
        },
      ],
    };
    const { post, written } = await serviceFor(t, config, { env: { LOG_FORMAT: 'json' } });
    const ask = async (name: string, address: string, headers: Record<string, string> = {}) => {
      const all = { 'X-Forwarded-For': address, ...headers };
      const { headers: sent, status } = await post(`prices/${name}`, undefined, all);
      await eventually(() => written().includes(`"requestId":"${sent.get('x-request-id')}"`));
      return status;
    };
    return { ask, log: written };
  }

  it('of clients that are refused: why, and whom', async (t) => {
    const { ask, log } = await start(t);
    const key = { 'X-Api-Key': 'partner-key-0001' };
    assert.equal(await ask('locked', '192.0.2.1'), 401);
    assert.equal(await ask('locked', '192.0.2.2', key), 200);
    assert.equal(await ask('locked', '192.0.2.2', key), 429);
    assert.deepEqual(await foundInLog('A client is refused with 401 or 429', log()), [
      { status: 401, address: '192.0.2.1', client: null, detail: 'Missing X-Api-Key header' },
      {
        status: 429,
        address: '192.0.2.2',
        client: 'partner',
        detail: 'this client has sent more than the rateLimit of its key lets in',
      },
    ]);
  });

  it('of answers that are slow: where the time goes', async (t) => {
    const { ask, log } = await start(t, { log: { slow: SLOW_MS } });
    assert.equal(await ask('late', '192.0.2.1'), 200);
    const symptom = 'Answers are slow';
    const look = async () => (await foundInLog(symptom, log())) as Record<string, unknown>[];
    await eventually(async () => (await look()).length > 0, `lines that the commands for "${symptom}" find`);
    const [{ endpoint, spent } = {}] = (await look()).filter((line) => line.endpoint === 'prices/late');
    assert.equal(endpoint, 'prices/late');
    assert.ok(Number(/\bcallApi ([\d.]+)/.exec(String(spent))?.[1]) >= LATE_MS - 1, String(spent));
  });

  it('of a client that sends most of the requests', async (t) => {
    const { ask, log } = await start(t);
    for (const address of ['192.0.2.1', '192.0.2.7', '192.0.2.7']) assert.equal(await ask('quick', address), 200);
    assert.equal(await ask('locked', '192.0.2.7', { 'X-Api-Key': 'partner-key-0001' }), 200);
    assert.deepEqual(await foundInLog('One client sends most of the requests', log()), [
      '192.0.2.1',
      '192.0.2.7',
      '192.0.2.7',
      'partner',
    ]);
  });
});
