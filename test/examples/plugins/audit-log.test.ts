/** audit-log writes a line for each answer. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { example } from '../../support/examples.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

const KEYS = [{ name: 'ada', key: '0123456789abcdef' }];

async function start(t: TestContext, config: object = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'audit-'));
  t.after(() => rm(folder, { recursive: true }));
  const upstream = await upstreamFor(t, { '*': faults.json({ price: 7 }), '/broken': faults.serverError() });
  const file = join(folder, 'audit.jsonl');
  const endpoints = { e: {}, broken: {}, named: { auth: { type: 'apiKey', keys: KEYS } } };
  const plugins = [example('audit-log', { file, ...config })];
  const service = await serviceFor(t, oneApi(upstream.url, endpoints, { settings: { plugins } }));
  /** Everything that is written once the service has stopped. */
  const lines = async () => {
    await service.stop();
    const text = await readFile(file, 'utf8');
    assert.ok(text.endsWith('\n'));
    return text.slice(0, -1).split('\n');
  };
  return { service, lines, stop: service.stop };
}

describe('audit-log', () => {
  it('writes a line for each signed answer, and none for what was refused', async (t) => {
    const { service, lines } = await start(t);
    const plain = await service.post('api/e');
    const named = await service.post('api/named', {}, { 'X-Api-Key': '0123456789abcdef' });
    assert.deepEqual([(await service.post('api/broken')).status, (await service.post('api/named')).status], [502, 401]);
    const expected = [];
    for (const [response, who] of [
      [plain, { endpoint: 'api/e' }],
      [named, { endpoint: 'api/named', client: 'ada' }],
    ] as const) {
      const { timestamp, signature } = JSON.parse(await response.text());
      expected.push(JSON.stringify({ requestId: response.headers.get('x-request-id'), ...who, timestamp, signature }));
    }
    assert.deepEqual(await lines(), expected);
  });

  it('keeps the order of many, and a stop loses none', async (t) => {
    const { service, lines } = await start(t);
    const ids: (string | null)[] = [];
    const one = async () => {
      for (let i = 0; i < 20; i++) ids.push((await service.post('api/e')).headers.get('x-request-id'));
    };
    await Promise.all([one(), one(), one(), one()]);
    const written = (await lines()).map((line) => JSON.parse(line).requestId);
    assert.deepEqual(written.toSorted(), ids.toSorted());
    assert.equal(new Set(written).size, 80);
    const { signature, timestamp } = JSON.parse((await lines())[0] ?? '');
    assert.match(signature, /^0x[0-9a-f]{130}$/);
    assert.equal(typeof timestamp, 'number');
  });

  it('a file that cannot be written costs no answer, and the log counts lines', async (t) => {
    const { service, stop } = await start(t, { file: '/nowhere/at/all' });
    assert.equal((await service.post('api/e')).status, 200);
    await stop();
    const said = service.logs.filter(({ level }) => level === 'error');
    assert.equal(said.length, 1);
    assert.match(said[0]?.message ?? '', /audit lines are lost$/);
    assert.equal(said[0]?.fields.lines, 1);
    assert.match(String(said[0]?.fields.error), /^Error: ENOENT/);
  });

  it('does not start with a path that depends on the folder', async (t) => {
    await assert.rejects(start(t, { file: 'audit.jsonl' }), /config\.file/);
  });
});
