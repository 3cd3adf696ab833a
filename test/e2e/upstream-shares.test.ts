/** APIs share upstream slots; one may have a limit of its own. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { eventually } from '../support/http.ts';
import { acts, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';

interface Api {
  readonly name: string;
  readonly [key: string]: unknown;
}

const list = (url: string, apis: readonly Api[]) =>
  apis.flatMap((api) => {
    const endpoint = { path: `/${api.name}`, parameters: [{ name: 'n' }] };
    return oneApi(url, { e: endpoint }, { api: { timeout: 60_000, ...api } }).apis;
  });

/** APIs of one upstream that answers only when it is told to, but for `/quick`. */
async function start(t: TestContext, slots: number, apis: readonly Api[]) {
  const held: ServerResponse[] = [];
  const upstream = await upstreamFor(t, { '*': (_, res) => void held.push(res), '/quick': faults.json({ value: 1 }) });
  const { files, plugins } = pluginFiles({ arrivals: puppetFile('arrivals', ['onBeforeApiCall']) });
  const config = { settings: { maxConcurrentApiCalls: slots, plugins }, apis: list(upstream.url, apis) };
  const service = await serviceFor(t, config, { files });
  let arrived = 0;
  acts.set('arrivals onBeforeApiCall', () => {
    arrived += 1;
  });
  const called = (api: string) => upstream.requests.filter(({ path }) => path.startsWith(`/${api}`)).length;
  return {
    service,
    called,
    /** So many requests for an API, of which `calls` are made; the others have come as far as to wait. */
    ask: async (api: string, count: number, calls: number) => {
      const before = arrived;
      const answers = Array.from({ length: count }, (_, n) => service.post(`${api}/e`, { n }));
      await eventually(() => (arrived === before + count && called(api) >= calls) || undefined, `${calls} calls`);
      assert.equal(called(api), calls);
      return answers;
    },
    quick: async () => verifyRaw(await service.post('quick/e'), service.signer.address),
    release: async (answers: readonly Promise<Response>[]) => {
      const timer = setInterval(() => {
        for (const res of held.splice(0)) res.end('{"value":1}');
      }, 5);
      for (const answer of answers) await verifyRaw(await answer, service.signer.address);
      clearInterval(timer);
    },
  };
}

describe('upstream slots that several APIs share', () => {
  it('one API takes them all, another waits', async (t) => {
    const { ask, quick, release } = await start(t, 4, [{ name: 'hanging' }, { name: 'quick' }]);
    const answers = await ask('hanging', 8, 4);
    const waiting = quick();
    await release(answers);
    await waiting;
  });

  it('`maxConcurrentCalls` says how many an API may take: fewer, or all', async (t) => {
    const apis = [{ name: 'one', maxConcurrentCalls: 1 }, { name: 'all', maxConcurrentCalls: 4 }, { name: 'quick' }];
    const { ask, quick, release } = await start(t, 4, apis);
    const one = await ask('one', 3, 1);
    await quick();
    await release(one);
    await release(await ask('all', 6, 4));
  });
});
