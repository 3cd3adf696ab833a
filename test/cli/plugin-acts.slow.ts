/** Whatever a plugin does in the process of the service, the log says so and nobody waits for ever. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { actor, EXHAUSTED, pluginActs } from '../support/plugin-acts.ts';
import { upstreamFor } from '../support/upstream.ts';
import { configText } from './service-config.ts';
import { postTo, startIn, urlOf } from './started.ts';

/** A service with the plugin in its own process, and a small heap. @param patience seconds with an event loop that does not turn. */
async function startWithActor(t: TestContext, patience = 10) {
  const upstream = await upstreamFor(t);
  upstream.json('/eth', { price: 7 });
  const files = {
    'c.yaml': configText(upstream.url, 'settings: { plugins: [{ source: ./p.mjs }] }'),
    'p.mjs': `globalThis.testNote = undefined;\n${actor}`,
  };
  const env = { SERVICE_WATCHDOG: String(patience), NODE_OPTIONS: '--max-old-space-size=160' };
  const running = await startIn(t, files, env);
  const [, id = ''] = await running.output(/prices\/eth (0x\w+)/);
  const url = await urlOf(running);
  const ask = async (act: string) => {
    const response = await postTo(url, id, { 'x-act': act });
    if (response.status === 200) return '200';
    return `${response.status} ${((await response.json()) as { error: string }).error}`;
  };
  return { ...running, ask };
}

describe('what a plugin in the process of the service can do to it', { concurrency: 3 }, () => {
  it('is bounded by its budget as long as it gives way, and it can read the key', async (t) => {
    const { ask } = await startWithActor(t);
    for (const [act, { here }] of Object.entries(pluginActs)) {
      if (typeof here === 'string' || !('answer' in here)) continue;
      let answer = await ask(act);
      for (let i = 0; i < 5 && answer === EXHAUSTED && here.answer !== EXHAUSTED; i++) answer = await ask(act);
      assert.equal(answer, here.answer, act);
    }
  });

  // Of others `endings.slow.ts` and the tests of the watchdog show more.
  for (const [act, { here }] of Object.entries(pluginActs)) {
    if (typeof here === 'string' || 'answer' in here) continue;
    it(`${act}: the service ends`, async (t) => {
      // To fill the heap takes longer than a hang may.
      const { ask, ended } = await startWithActor(t, here.signal === 'SIGABRT' ? 60 : undefined);
      await assert.rejects(ask(act));
      const { code, signal } = await ended;
      assert.deepEqual([code, signal], [here.code, here.signal ?? null]);
    });
  }
});
