/** A plugin that spends its budget drops the request, and costs nobody else. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { arrived, isolatedFiles, recovered } from '../support/isolated.ts';
import { suite } from '../support/lifetime.ts';
import { acts, notes, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const MUTATIONS = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign'] as const;

/** Results that each hook could return in time. */
const good = {
  onHttpRequest: { reject: false },
  onBeforeApiCall: { parameters: { q: 'late' } },
  onAfterApiCall: { data: { price: 666 } },
  onBeforeSign: { data: '0x0666' },
};

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** Blocks for so long by the processor, too: time in which a process of its own waits for one is not charged. */
function spend(ms: number): void {
  const [end, before] = [performance.now() + ms, process.cpuUsage()];
  const used = () => process.cpuUsage(before).user + process.cpuUsage(before).system;
  while (performance.now() < end || used() < 1000 * ms);
}

for (const isolate of [false, true]) {
  describe(isolate ? 'isolated' : 'in the process of the service', async () => {
    const wrap = isolate ? isolatedFiles({ good, sleep, block, spend }) : String;
    const upstream = await upstreamFor(suite);
    upstream.json('/price', { price: 7 });
    upstream.on('/slow', faults.slow(700, faults.json({ price: 7 })));
    const budgets = {
      short: { timeout: 200, isolate },
      long: { timeout: 1500, isolate },
      other: { timeout: 1500, isolate },
      standard: { isolate },
    };
    const sources = Object.fromEntries(Object.keys(budgets).map((name) => [name, wrap(puppetFile(name))]));
    const { files, plugins } = pluginFiles(sources, budgets);
    const rest = { parameters: [{ name: 'q' }], encoding: { type: 'uint256', path: '$.price' } };
    const background = { path: '/price', mode: 'async', ...rest, method: 'POST' };
    const config = oneApi(upstream.url, { price: rest, slow: rest, background }, { settings: { plugins } });
    const service = await serviceFor(suite, config, { files });
    beforeEach(() => tidy(service, upstream));
    afterEach(() => recovered(service));

    const post = async (endpoint: string, parameters?: object) => {
      await arrived();
      return service.post(endpoint, parameters);
    };
    const price = () => post('api/price', { q: 'a' });
    const verified = async (response: Response) => BigInt((await verifyEncoded(response, service.signer.address)).data);
    const exhausted = (name: string) => `Plugin "${name}" budget exhausted`;

    describe('a plugin out of budget drops the request', () => {
      for (const hook of MUTATIONS) {
        const set = (act: Parameters<typeof acts.set>[1], scope = {}) =>
          acts.set(`short ${hook}`, act, { hook, ...scope });
        it(`${hook} that never answers; its signal aborts`, async () => {
          set(({ signal }) => {
            assert.ok(signal instanceof AbortSignal);
            notes.add('at first', signal.aborted);
            signal.addEventListener('abort', () => notes.add('aborted', signal.aborted));
            return new Promise(() => undefined);
          });
          await assertRefused(await price(), 403, exhausted('short'));
          assert.deepEqual([notes.of('at first'), await notes.until('aborted')], [[false], [true]]);
        });

        it(`${hook} that blocks, although it returns something good`, async () => {
          set(() => {
            spend(250);
            return good[hook];
          });
          await assertRefused(await price(), 403, exhausted('short'));
        });

        it(`${hook} that blocks after it has waited`, async () => {
          set(async ({ signal }) => {
            await sleep(1);
            spend(250);
            notes.add('signal', (signal as AbortSignal).aborted);
            return good[hook];
          });
          await assertRefused(await price(), 403, exhausted('short'));
          // A process that blocks is ended with the budget.
          if (!isolate) await notes.until('signal');
        });

        it(`${hook} that blocks and throws`, async () => {
          set(() => {
            spend(250);
            throw new Error('late');
          });
          await assertRefused(await price(), 403, exhausted('short'));
        });

        it(`${hook}: a late result and a late error land nowhere`, async () => {
          for (const end of [() => good[hook], () => Promise.reject(new Error('late'))]) {
            notes.clear();
            const late: Parameters<typeof acts.set>[1] = async ({ signal }) => {
              await new Promise((resolve) => (signal as AbortSignal).addEventListener('abort', resolve));
              await sleep(20);
              notes.add('late');
              return end();
            };
            set(late, { end });
            const called = upstream.requests.length;
            await assertRefused(await price(), 403, exhausted('short'));
            await notes.until('late');
            await sleep(5);
            const calls = hook === 'onHttpRequest' || hook === 'onBeforeApiCall' ? 0 : 1;
            assert.equal(upstream.requests.length - called, calls);
            acts.clear();
            assert.equal(await verified(await price()), 7n);
          }
        });
      }

      it('a second spent in a hook is too much where no timeout is configured', async () => {
        acts.set('standard onBeforeSign', () => spend(1010));
        await assertRefused(await price(), 403, exhausted('standard'));
        acts.set('standard onBeforeSign', () => block(300));
        assert.equal(await verified(await price()), 7n);
      });

      it('the log names the plugin', async () => {
        acts.set('short onBeforeSign', () => new Promise(() => undefined));
        const response = await price();
        await response.text();
        const requestId = response.headers.get('x-request-id');
        const lines = service.logs.filter(({ level, fields }) => level !== 'debug' && fields.requestId === requestId);
        assert.match(JSON.stringify(lines), /plugin \\"short\\"/i);
      });
    });

    describe('the budget is one for all its hooks in a request', () => {
      it('so that two hooks can spend it together', async () => {
        acts.set('long onBeforeApiCall', () => block(1000));
        acts.set('long onAfterApiCall', () => block(1000));
        acts.set('long onBeforeSign', () => notes.add('too far'));
        acts.set('long onError', ({ requestId, stage }) => notes.add(String(requestId), stage));
        const response = await price();
        await assertRefused(response, 403, exhausted('long'));
        // The observer has time of its own, or nobody could be told of a spent budget.
        assert.deepEqual(await notes.until(String(response.headers.get('x-request-id'))), ['onAfterApiCall']);
        assert.deepEqual(notes.of('too far'), []);
      });

      it('waiting counts as much as work', async () => {
        acts.set('long onBeforeApiCall', () => sleep(900));
        acts.set('long onBeforeSign', () => sleep(900));
        await assertRefused(await price(), 403, exhausted('long'));
      });

      it('but not for all plugins', async () => {
        acts.set('long onBeforeApiCall', () => block(900));
        acts.set('other onBeforeApiCall', () => block(900));
        assert.equal(await verified(await price()), 7n);
      });

      it('nor for all requests', async () => {
        acts.set('long onBeforeApiCall', () => sleep(900));
        const answers = await Promise.all([price(), price(), price()]);
        for (const answer of answers) assert.equal(await verified(answer), 7n);
      });

      it('waiting for the rest of the pipeline is not charged', async () => {
        acts.set('short onBeforeApiCall', () => undefined);
        acts.set('short onAfterApiCall', () => undefined);
        acts.set('long onBeforeApiCall', async () => sleep(1));
        acts.set('long onAfterApiCall', async () => sleep(1));
        assert.equal(await verified(await post('api/slow')), 7n);
      });
    });

    it('in async mode the failed record has the text', async () => {
      acts.set('short onAfterApiCall', () => new Promise(() => undefined));
      const submission = await submitted(await post('api/background'));
      const failed = { ...submission, status: 'failed', error: exhausted('short') };
      assert.deepEqual(await finished(service, submission), failed);
    });
  });
}
