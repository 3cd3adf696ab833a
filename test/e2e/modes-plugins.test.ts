/** A mode of a plugin decides when the rest of the pipeline runs. */

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, it } from 'node:test';
import { Refusal, type Run, type SignedResponse } from '../../plugins-sdk/index.ts';
import { suite } from '../support/lifetime.ts';
import { acts, notes, pluginTools } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { tidy } from '../support/tidy.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const SDK = new URL('../../plugins-sdk/index.ts', import.meta.url).href;

/** A plugin with one mode of its name, which does what the test has put into `acts`. */
const modeFile = (name: string, budget: number | 'none') => `import { definePlugin } from '${SDK}';
${pluginTools}
export default definePlugin({
  name: '${name}',
  budget: ${JSON.stringify(budget)},
  modes: ['${name}'],
  setup: () => ({
    hooks: {
      present: { '${name}': (run) => testAct('present ${name}', { run, block }) },
      onAfterApiCall: async () => { await sleep(1); note('${name} onAfterApiCall'); },
    },
  }),
});
`;

/** Notes how requests end, and whether anything was about to be signed. */
const watcher = `${pluginTools}
export default {
  name: 'watch',
  budget: 'none',
  setup: () => ({
    observe: { response: (_, status) => note('response', status) },
    hooks: {
      onBeforeSign: () => note('signing'),
      concluded: ({ kind }) => note('concluded', kind),
      onResponseSent: () => note('onResponseSent'),
      onError: ({ status, stage, error }) => note('onError', { status, stage, message: error.message }),
    },
  }),
};
`;

const HASTY = 150;
const EXHAUSTED = 'Plugin "hasty" budget exhausted';

const held: ServerResponse[] = [];

/** What the mode of the name does with the rest of the pipeline. */
function present(name: string, act: (run: Run, block: (milliseconds: number) => void) => unknown): void {
  // The plugin file hands over just these two.
  acts.set(`present ${name}`, ({ run, block }) => act(run as Run, block as (milliseconds: number) => void));
}

const replied = ({ json }: SignedResponse) => ({ status: 200, body: json });
const accepted = { status: 202, body: '{}' };
const rejected = (error: unknown) => notes.add('rejected', error instanceof Error ? error.message : error);
/** What is due after a response is, by the time that another request has come and gone. */
const settled = () => fetch(`${service.url}/health`).then((response) => response.text());
const arrived = () => eventually(() => held.pop(), 'an upstream call');

const encoding = { type: 'uint256', path: '$.price' };
const endpoints = ['hasty', 'patient', 'unbounded'].flatMap((mode) =>
  ['price', 'down', 'held'].map((path) => [`${mode}-${path}`, { path: `/${path}?${mode}`, mode, encoding }]),
);
const { upstream, service, post, refused } = await served(suite, Object.fromEntries(endpoints), {
  answers: {
    '/held': (_, response) => void held.push(response),
    '/price': faults.json({ price: 7 }),
    '/down': faults.json({}, 500),
  },
  sources: {
    hasty: modeFile('hasty', HASTY),
    patient: modeFile('patient', 20_000),
    unbounded: modeFile('unbounded', 'none'),
    watch: watcher,
  },
});

beforeEach(() => tidy(service, upstream));

describe('the rest of the pipeline does not run for a request that has ended', () => {
  async function assertNothingRan(): Promise<void> {
    await notes.until('onError');
    await settled();
    assert.deepEqual(notes.of('concluded'), ['refused']);
    assert.deepEqual(notes.of('signing'), []);
    assert.deepEqual(upstream.requests, []);
    assert.equal(notes.of('onError').length, 1);
  }

  const late: Readonly<Record<string, Parameters<typeof present>[1]>> = {
    'when the budget of its mode ended while that waited': async (run) => {
      await notes.until('response');
      return replied(await run().catch((error) => Promise.reject(rejected(error))));
    },
    'when the budget ended while the mode blocked': async (run, block) => {
      block(HASTY + 50);
      return run().then(replied, rejected);
    },
    'nor detached': async (run) => {
      await notes.until('response');
      await run({ detached: true }).catch(rejected);
    },
  };
  for (const [when, act] of Object.entries(late))
    it(when, async () => {
      present('hasty', act);
      await refused(403, EXHAUSTED, 'hasty-price');
      assert.deepEqual(await notes.until('rejected'), ['the budget has ended']);
      await assertNothingRan();
    });

  for (const mode of ['patient', 'unbounded']) {
    it(`when its mode failed before, and had time left: ${mode}`, async () => {
      const later = async (run: Run) => {
        await notes.until('response');
        await run({ detached: true });
      };
      present(mode, (run) => {
        later(run).catch(rejected);
        throw new Refusal(418, 'Teapot');
      });
      await refused(418, 'Teapot', `${mode}-price`);
      assert.deepEqual(await notes.until('rejected'), ['the request has ended']);
      await assertNothingRan();
    });
  }
});

it('a mode runs the rest of the pipeline once', async () => {
  present('patient', async (run) => {
    const answer = await run();
    await run().catch(rejected);
    return replied(answer);
  });
  assert.equal((await post('patient-price')).status, 200);
  assert.deepEqual(await notes.until('rejected'), ['the rest of the pipeline runs once']);
  assert.equal(notes.of('signing').length, 1);
});

it('what a mode has given up while it ran is not signed', async () => {
  present('patient', async (run) => {
    run({ detached: true }).catch(rejected);
    const call = await arrived();
    notes
      .until('response')
      .then(() => call.writeHead(200, { 'Content-Type': 'application/json' }).end('{"price": 7}'))
      .catch(rejected);
    throw new Refusal(418, 'Teapot');
  });
  await refused(418, 'Teapot', 'patient-held');
  assert.equal((await notes.until('rejected')).length, 1);
  assert.deepEqual(notes.of('signing'), []);
  assert.deepEqual(notes.of('concluded'), ['refused']);
});

describe('a mode that answers at once', () => {
  /** Asks, and has the upstream answer once the response is closed. */
  const answering = async (status: number) => {
    present('patient', (run) => {
      run().then(() => notes.add('resolved', true), rejected);
      return accepted;
    });
    assert.equal((await post('patient-held')).status, 202);
    assert.deepEqual(await notes.until('response'), [202]);
    const response = await arrived();
    assert.deepEqual([notes.of('onResponseSent'), notes.of('onError')], [[], []]);
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"price": 5}');
  };

  it('is told of the end, although the response is closed by then', async () => {
    await answering(200);
    await notes.until('onResponseSent');
    assert.deepEqual(await notes.until('resolved'), [true]);
    await settled();
    assert.deepEqual([notes.of('onResponseSent').length, notes.of('onError')], [1, []]);
    assert.deepEqual([notes.of('rejected'), notes.of('concluded')], [[], ['signed']]);
  });

  it('is told of the failure, although the response is closed by then', async () => {
    await answering(500);
    assert.deepEqual(await notes.until('onError'), [{ status: 502, stage: 'callApi', message: 'API call failed' }]);
    await settled();
    assert.deepEqual([notes.of('onError').length, notes.of('onResponseSent')], [1, []]);
    assert.deepEqual([notes.of('rejected'), notes.of('concluded')], [['API call failed'], ['refused']]);
  });
});

describe('a mode that answers a refusal in words of its own', () => {
  /** What the mode throws in place of what it caught. */
  const instead = (error: unknown) =>
    present('patient', async (run) => {
      try {
        return replied(await run());
      } catch (caught) {
        rejected(caught);
        throw error;
      }
    });

  it('is heard by the client, and by observers, once', async () => {
    instead(new Refusal(503, 'Come again'));
    await refused(503, 'Come again', 'patient-down');
    assert.deepEqual(await notes.until('onError'), [{ status: 503, stage: 'present', message: 'Come again' }]);
    await settled();
    assert.equal(notes.of('onError').length, 1);
    assert.deepEqual([notes.of('rejected'), notes.of('concluded')], [['API call failed'], ['refused']]);
  });

  it('is in the log with both, so that a fault of its own can be found', async () => {
    instead(new TypeError('a slip'));
    await refused(500, 'Internal server error', 'patient-down');
    const told = { status: 500, stage: 'present', message: 'Internal server error' };
    assert.deepEqual(await notes.until('onError'), [told]);
    const warned = service.logs.flatMap(({ level, message, fields: { status, detail } }) => {
      return level === 'warn' && status !== undefined ? [[message, status, String(detail).split('\n')[0]]] : [];
    });
    assert.deepEqual(warned, [
      ['API call failed', 502, 'upstream status 500'],
      ['Internal server error', 500, 'plugin "patient": TypeError: a slip'],
    ]);
  });
});

const deliveries = {
  answers: '() => ({ status: 200, headers: { "Content-Type": "text/plain" }, body: "mine" })',
  streams:
    '() => ({ status: 200, headers: { "Content-Type": "text/plain" }, body: (async function* () { yield "mine"; })() })',
};

for (const [how, present] of Object.entries(deliveries)) {
  it(`a mode that ${how} without a run settles as refused, once`, async (t) => {
    const idle = `export default { name: 'idle', modes: ['idle'], setup: () => ({ hooks: {
      present: { idle: ${present} }, concluded: ({ kind }) => globalThis.testNote('${how}', kind) } }) };`;
    const { post } = await served(t, { e: { mode: 'idle' } }, { sources: { idle } });
    for (const kinds of [['refused'], ['refused', 'refused']]) {
      const response = await post('e');
      assert.deepEqual([response.status, await response.text()], [200, 'mine']);
      assert.deepEqual(await notes.until(how, kinds.length), kinds);
    }
  });
}
