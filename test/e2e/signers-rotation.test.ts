/** A reload moves from one signer to the next, and answers show both. */

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { Wallet } from 'ethers';
import { verifyResponse } from '../../verify/index.ts';
import { suite } from '../support/lifetime.ts';
import { rewrite } from '../support/reload.ts';
import { encoding, oneApi, type RunningService, serviceFor, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { SECOND, signerPlugin, THIRD } from '../support/signer-plugin.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const FIRST = new Wallet(TEST_KEY);
/** A plugin that wants to be the signer as well. */
const RIVAL = `export default { name: 'rival', signerAddress: () => '${TEST_ADDRESS}', setup: () => ({}) };`;

describe('a reload that changes the signer', { concurrency: 4 }, async () => {
  let names = 0;

  const upstream = await upstreamFor(suite, { '/price': faults.json({ price: 7 }) });

  const kept = (wallet: { readonly privateKey: string }, more: object = {}) => ({
    type: 'kept',
    key: wallet.privateKey,
    ...more,
  });

  async function start(t: TestContext, signer: object | undefined) {
    names += 1;
    const name = `notes of rotation ${names}`;
    const slow = `/slow${names}`;
    const endpoints = {
      eth: { path: '/price', encoding, cache: { maxAge: 60_000 } },
      slow: { path: slow, signatures: true },
    };
    const configOf = (chosen: object | undefined, plugins: readonly object[] = []) => {
      const settings = { plugins: [{ source: './signer.mjs' }, ...plugins], ...(chosen && { signer: chosen }) };
      return oneApi(upstream.url, endpoints, { settings });
    };
    const files = { 'signer.mjs': signerPlugin(name), 'rival.mjs': RIVAL };
    const service = await serviceFor(t, configOf(signer), { files });
    const change = async (
      next: object | undefined,
      env: Readonly<Record<string, string>> = {},
      plugins: readonly object[] = [],
    ) => {
      await rewrite(service, configOf(next, plugins));
      return service.reload(() => env);
    };
    const notes = () => (Reflect.get(globalThis, name) ?? []).filter((note: string) => /^(?:open|close) /.test(note));
    return { service, change, notes, slow };
  }

  const nodeOf = async (service: RunningService, endpoint = 'api/eth') => {
    const answer = JSON.parse(await (await service.post(endpoint)).text());
    const verified = verifyResponse(answer, { node: null });
    assert.ok(verified.ok);
    return verified.signer;
  };
  /** Whether the service has said so. */
  const says = ({ logs }: RunningService, level: string, text: string) =>
    logs.some((line) => line.level === level && line.message === text);
  it('has the next answer signed by the new one, cached ones included, and lets go of the old one', async (t) => {
    const { service, change, notes } = await start(t, kept(SECOND, { next: kept(THIRD) }));
    assert.equal(await nodeOf(service), SECOND.address);
    assert.equal(await change(kept(THIRD)), true);
    assert.equal(await nodeOf(service), THIRD.address);
    assert.deepEqual(await (await fetch(`${service.url}/health`)).json(), { status: 'ok', node: THIRD.address });
    const changed = `answers are signed by ${THIRD.address} instead of ${SECOND.address}`;
    assert.ok(says(service, 'warn', changed));
    await eventually(() => notes().length === 5, 'the old signers to be closed');
    assert.deepEqual(notes(), ['open current', 'open next', 'open current', 'close current', 'close next']);
  });

  it('lets requests under way end by the signers that they began with', async (t) => {
    const { service, change, slow } = await start(t, kept(SECOND, { next: kept(THIRD) }));
    const events = new EventEmitter();
    upstream.on(slow, async (_, response) => {
      await once(events, 'answer');
      response.setHeader('Content-Type', 'application/json').end('{}');
    });
    const pending = nodeOf(service, 'api/slow');
    await upstream.untilRequested(slow);
    assert.equal(await change(kept(THIRD)), true);
    assert.equal(await nodeOf(service), THIRD.address);
    events.emit('answer');
    assert.equal(await pending, SECOND.address);
  });

  it('keeps everything as it was when the new one does not open or does not sign', async (t) => {
    const { service, change, notes } = await start(t, kept(SECOND));
    for (const [fault, line] of [
      ['closed', 'settings.signer: the vault is closed'],
      ['dead', 'plugin "sign-eip191" cannot start: settings.signer (kept) does not sign: the vault says no'],
    ]) {
      assert.equal(await change(kept(THIRD, { fault })), false);
      assert.ok(says(service, 'error', String(line)));
      assert.equal(await nodeOf(service), SECOND.address);
    }
    await eventually(() => notes().at(-1) === 'close current', 'the failed signer to be closed');
    assert.deepEqual(notes(), ['open current', 'open current', 'open current', 'close current']);
  });

  it('lets go of both where the next one is the one that signs already', async (t) => {
    const { service, change, notes } = await start(t, kept(SECOND));
    assert.equal(await change(kept(THIRD, { next: kept(THIRD) })), false);
    assert.deepEqual(notes(), ['open current', 'open current', 'open next', 'close current', 'close next']);
    assert.equal(await nodeOf(service), SECOND.address);
  });

  it('takes another next key out of the variables after one that was no use', async (t) => {
    const { service, change, slow } = await start(t, kept(SECOND));
    const signer = kept(SECOND, { next: { type: 'environment' } });
    assert.equal(await change(signer, { SERVICE_NEXT_PRIVATE_KEY: SECOND.privateKey }), false);
    const line = `settings.signer.next is the signer that signs already: ${SECOND.address}`;
    assert.ok(says(service, 'error', line));
    assert.equal(await change(signer, { SERVICE_NEXT_PRIVATE_KEY: THIRD.privateKey }), true);
    upstream.json(slow, {});
    const { signatures } = JSON.parse(await (await service.post('api/slow')).text());
    const nodes = signatures.map(({ node }: { node: string }) => node);
    assert.deepEqual(nodes, [SECOND.address, THIRD.address]);
  });

  it('lets go of a signer whose config cannot be used for another reason', async (t) => {
    const { service, change, notes } = await start(t, kept(SECOND));
    assert.equal(await change(kept(THIRD), {}, [{ source: './rival.mjs' }]), false);
    assert.equal(await nodeOf(service), SECOND.address);
    await eventually(() => notes().at(-1) === 'close current', 'the signer to be closed');
  });

  it('opens no signer again that stays', async (t) => {
    const { service, change, notes } = await start(t, kept(SECOND));
    assert.equal(await change(kept(SECOND)), true);
    assert.equal(await nodeOf(service), SECOND.address);
    assert.deepEqual(notes(), ['open current']);
  });

  it('goes from the key of the environment to another signer, and back', async (t) => {
    const { service, change } = await start(t, undefined);
    assert.equal(await nodeOf(service), FIRST.address);
    assert.equal(await change(kept(SECOND)), true);
    assert.equal(await nodeOf(service), SECOND.address);
    assert.equal(await change({ type: 'environment' }), true);
    assert.equal(await nodeOf(service), TEST_ADDRESS);
  });
});
