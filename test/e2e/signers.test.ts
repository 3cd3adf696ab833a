/** `settings.signer` chooses who signs, and a wrong one stops the start. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { getBytes, solidityPackedKeccak256, verifyMessage } from 'ethers';
import { signEip191 } from '../../builtins/sign-eip191/index.ts';
import { leavingFetch } from '../support/leaving-client.ts';
import { suite } from '../support/lifetime.ts';
import { encoding, oneApi, type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { SECOND, signerPlugin, THIRD } from '../support/signer-plugin.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import type { SignedBody } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

const NEXT_KEY = '0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6';
const NEXT = '0x90F79bf6EB2c4f870365E785982E1f101E93b906';

interface Answer extends SignedBody {
  readonly signatures?: readonly { readonly node: string; readonly signature: string }[];
}

function signerOf({ endpointId, timestamp, data }: SignedBody, signature: string): string {
  const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]);
  return verifyMessage(getBytes(digest), signature);
}

/** Each node of the list, with the address whose signature is beside it. */
function listed(answer: Answer) {
  return answer.signatures?.map(({ node, signature }) => [node, signerOf(answer, signature)]);
}
describe('settings.signer', { concurrency: 4 }, async () => {
  let names = 0;

  const upstream = await upstreamFor(suite, { '/price': faults.json({ price: 7 }) });

  /** A service with this signer, and what the signer of the plugin has done. */
  async function start(
    t: TestContext,
    signer: object | undefined,
    { endpoint = {}, env = { SERVICE_PRIVATE_KEY: '' } }: { endpoint?: object; env?: Record<string, string> } = {},
  ): Promise<{ service: RunningService; notes: () => readonly string[] }> {
    names += 1;
    const name = `notes of signers ${names}`;
    const settings = { plugins: [{ source: './signer.mjs' }], ...(signer && { signer }) };
    const config = oneApi(upstream.url, { eth: { path: '/price', encoding, ...endpoint } }, { settings });
    const service = await serviceFor(t, config, { files: { 'signer.mjs': signerPlugin(name) }, env });
    return { service, notes: () => Reflect.get(globalThis, name) ?? [] };
  }

  const kept = (wallet = SECOND, more: object = {}) => ({ type: 'kept', key: wallet.privateKey, ...more });

  async function answerOf(service: RunningService): Promise<Answer> {
    return JSON.parse(await (await service.post('api/eth')).text());
  }

  async function refusal(service: RunningService) {
    const response = await service.post('api/eth');
    return [response.status, await response.json()];
  }

  it('signs answers, without a key in the environment; the service is that signer', async (t) => {
    const { service, notes } = await start(t, kept());
    const answer = await answerOf(service);
    assert.equal(answer.node, SECOND.address);
    assert.equal(signerOf(answer, answer.signature), SECOND.address);
    assert.deepEqual(Object.keys(answer), ['node', 'endpointId', 'timestamp', 'data', 'signature']);
    assert.deepEqual(await (await fetch(`${service.url}/health`)).json(), { status: 'ok', node: SECOND.address });
    assert.deepEqual(notes(), ['open current', 'prove current personal', 'sign current personal']);
    const line = service.logs.find(({ message }) => message === `signer ${SECOND.address}`);
    assert.deepEqual(line?.fields, { type: 'kept' });
  });

  const by =
    /^signer "kept": the signature is by 0x[0-9a-fA-F]{40}, not by 0x70997970C51812dc3A010C7d01b50e0d17dc79C8$/;
  for (const [fault, reason] of [
    ['garbage', 'signer "kept": signature must be 65 bytes of 0x hex'],
    ['throws', 'signer "kept": the vault says no'],
    ['other', by],
  ] as const) {
    it(`shows no answer when the signer is at fault: ${fault}`, async (t) => {
      const { service } = await start(t, kept(SECOND, { fault }));
      assert.deepEqual(await refusal(service), [502, { error: 'Signing failed' }]);
      const line = service.logs.find(({ message }) => message === 'Signing failed');
      assert.equal(line?.level, 'warn');
      const said = String(line?.fields.detail);
      if (typeof reason === 'string') assert.equal(said, reason);
      else assert.match(said, reason);
    });
  }

  it('waits for a signature no longer than its timeout, and aborts what it waited for', async (t) => {
    const { service, notes } = await start(t, kept(SECOND, { fault: 'slow', timeout: 50 }));
    assert.deepEqual(await refusal(service), [502, { error: 'Signing failed' }]);
    assert.ok(notes().includes('aborted'));
    const line = service.logs.find(({ message }) => message === 'Signing failed');
    assert.equal(line?.fields.detail, 'signer "kept": no signature within 50 ms');
  });

  it('is not examined again for a client that left', async (t) => {
    const { service, notes } = await start(t, kept(SECOND, { fault: 'slow', timeout: 60_000 }));
    const leave = leavingFetch(`${service.url}/endpoints/${service.ids['api/eth']}`);
    await eventually(() => notes().includes('sign current personal'), 'the signature');
    await leave();
    await eventually(() => notes().includes('aborted'), 'its end');
    // A signature that fails has it examined after 200 ms.
    await setTimeout(500);
    assert.equal(notes().filter((note) => note === 'prove current personal').length, 1);
  });

  it('has a budget beyond the longer timeout of the two', () => {
    const { budget } = signEip191();
    assert.ok(typeof budget === 'function');
    const next = { type: 'kept', timeout: 9000 };
    assert.equal(budget({ settings: { signer: { type: 'kept', timeout: 2000, next } } }, []), 10_000);
  });

  it('is asked for a bounded number of signatures at once; who gets no turn is told that the server is busy', async (t) => {
    const { service, notes } = await start(t, kept(SECOND, { fault: 'stuck', timeout: 100, concurrency: 1 }));
    const both = await Promise.all([refusal(service), refusal(service)]);
    assert.deepEqual(both.map(([status]) => status).sort(), [502, 503], JSON.stringify(both));
    assert.deepEqual(both.find(([status]) => status === 503)?.[1], { error: 'Server busy' });
    assert.equal(notes().filter((note) => note === 'sign current personal').length, 1);
  });

  const dead = (which: string) => `plugin "sign-eip191" cannot start: ${which} (kept) does not sign: the vault says no`;
  const environment = { type: 'environment' };
  const next = (more: object) => kept(SECOND, { next: more });
  for (const [signer, message] of [
    [kept(SECOND, { fault: 'closed' }), 'settings.signer: the vault is closed'],
    [kept(SECOND, { fault: 'dead' }), dead('settings.signer')],
    [next(kept(THIRD, { fault: 'closed' })), 'settings.signer.next: the vault is closed'],
    [next(kept(THIRD, { fault: 'dead' })), dead('settings.signer.next')],
    [next(kept(SECOND)), `settings.signer.next is the signer that signs already: ${SECOND.address}`],
    [environment, 'SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC must be set'],
    [undefined, 'SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC must be set'],
    [next(environment), 'SERVICE_NEXT_PRIVATE_KEY or SERVICE_NEXT_MNEMONIC must be set'],
    [kept(SECOND, { timeout: 0 }), 'settings.signer.timeout: must be at least 1 ms'],
  ] as const) {
    it(`stops the start: ${message}`, async (t) => {
      await assert.rejects(start(t, signer), { message });
    });
  }

  it('has both sign where an endpoint asks for it: the signer, and the next one', async (t) => {
    const { service } = await start(t, kept(SECOND, { next: kept(THIRD) }), { endpoint: { signatures: true } });
    const answer = await answerOf(service);
    assert.deepEqual(Object.keys(answer), ['node', 'endpointId', 'timestamp', 'data', 'signature', 'signatures']);
    const both = [SECOND, THIRD].map(({ address }) => [address, address]);
    assert.deepEqual(listed(answer), both);
    assert.equal(answer.node, SECOND.address);
    assert.equal(answer.signature, answer.signatures?.[0]?.signature);
    assert.ok(service.logs.some(({ message }) => message === `next signer ${THIRD.address}`));
  });

  it('without a next one, the list has the signer alone', async (t) => {
    const { service } = await start(t, undefined, { endpoint: { signatures: true }, env: {} });
    const answer = await answerOf(service);
    assert.deepEqual(answer.signatures, [{ node: TEST_ADDRESS, signature: answer.signature }]);
  });

  it('takes the next one from the environment, too', async (t) => {
    const signer = { type: 'environment', next: { type: 'environment' } };
    const env = { SERVICE_NEXT_PRIVATE_KEY: NEXT_KEY };
    const { service } = await start(t, signer, { endpoint: { signatures: true }, env });
    const answer = await answerOf(service);
    const both = [TEST_ADDRESS, NEXT].map((address) => [address, address]);
    assert.deepEqual(listed(answer), both);
  });

  it('fails with the next one, where both have to sign', async (t) => {
    const signer = kept(SECOND, { next: kept(THIRD, { fault: 'other' }) });
    const { service } = await start(t, signer, { endpoint: { signatures: true } });
    assert.deepEqual(await refusal(service), [502, { error: 'Signing failed' }]);
  });

  it('is closed when the service stops', async (t) => {
    const { service, notes } = await start(t, kept(SECOND, { next: kept(THIRD) }));
    await service.stop();
    const closed = notes().filter((note) => note.startsWith('close'));
    assert.deepEqual(closed, ['close current', 'close next']);
  });
});
