/** The README's commands, pictures and promises are true. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { stageNames } from '../../kernel/stages.ts';
import { blockNamed, readPage } from '../support/docs.ts';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';
import { walk } from './walk.ts';

const PAGE = 'README.md';

/** Stages in the order in which the picture names them. */
async function picture(): Promise<string[]> {
  return blockNamed(await readPage(PAGE), 'pipeline')
    .split(/\W+/)
    .filter((word) => stageNames.some((stage) => stage === word));
}

it(PAGE, async (t) => {
  const upstream = await upstreamFor(t, { '*': faults.text('{"ethereum":{"usd":2064.012345678901234567}}') });
  await walk(t, PAGE, {
    instead: { 'https://api.coingecko.com/api/v3': upstream.url },
    skip: { 'npm ci': 'installs packages; test/cli/demo.slow.ts runs the demo, and this is npm test' },
  });
});

it('the two commands are on the first screen', async () => {
  const top = (await readPage(PAGE)).split('\n').slice(0, 12);
  for (const command of ['npm ci && npm run demo', 'npm ci && npm test']) {
    assert.ok(
      top.some((line) => line.startsWith(`${command} `)),
      command,
    );
  }
});

it('the picture has every stage, in the order of the table', async () => {
  const inner = stageNames.filter((stage) => stage !== 'route');
  assert.deepEqual(await picture(), inner);
});

const hooks = `
const pass = () => undefined;
export default {
  name: 'everywhere',
  hooks: { onHttpRequest: pass, onBeforeApiCall: pass, onAfterApiCall: pass, onBeforeSign: pass, onResponseSent: pass },
};`;

it('requests pass the stages in the order of the picture', async (t) => {
  const upstream = await upstreamFor(t, { '/price': faults.json({ price: 1 }) });
  const encoding = { type: 'int256', path: '$.price' };
  const responseMatches = [{ type: 'regex', value: 'price' }];
  const endpoints = [{ name: 'eth', path: '/price', encoding, cache: { maxAge: 60_000 }, responseMatches }];
  const proof = { type: 'reclaim', gatewayUrl: upstream.url };
  const config = {
    settings: { proof, plugins: [{ source: './everywhere.mjs' }] },
    apis: [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints }],
  };
  const service = await serviceFor(t, config, { files: { 'everywhere.mjs': hooks }, env: { LOG_LEVEL: 'debug' } });
  assert.equal((await service.post('prices/eth')).status, 200);
  const traced = () => service.logs.flatMap(({ message }) => /^stage (\w+)$/.exec(message)?.[1] ?? []);
  const passed = await eventually(() => (traced().includes('onResponseSent') ? traced() : undefined), 'the last stage');
  // They end after the stages that they hold.
  const inOrder = passed.filter((name) => name !== 'present' && name !== 'answer');
  assert.ok(inOrder.length > 14, inOrder.join(', '));
  const drawn = await picture();
  assert.deepEqual(
    inOrder,
    drawn.filter((name) => inOrder.includes(name)),
  );
});
