/** A session with the relayer encrypts, and leaves it out once nobody waits. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Connection, Task } from '../../builtins/fhe/protocol.ts';
import { openSession } from '../../builtins/fhe/session.ts';
import { decrypt } from '../fhe/decrypt.ts';
import { generateToyKeys } from '../fhe/keys.ts';
import { handleOf, paths, startRelayer } from '../fhe/relayer.ts';
import { CONSUMER, VERIFIER } from '../fhe/service.ts';
import { endsWith, suite } from '../support/lifetime.ts';
import { faults } from '../support/upstream.ts';

describe('a session with the relayer', async () => {
  const task: Task = { value: 171n, bits: 8, contract: CONSUMER };
  const keys = generateToyKeys();
  const relayer = await endsWith(suite, startRelayer({ keys }));
  const { rpcUrl, relayerUrl } = relayer;
  const connection: Connection = { network: 'sepolia', rpcUrl, relayerUrl, verifier: VERIFIER };

  it('encrypts, and leaves the relayer out of it once nobody waits', async () => {
    const session = await openSession(connection);
    const { handle } = await session.encrypt(task, 60_000, new AbortController().signal);
    const [submission] = relayer.submissions;
    assert.ok(submission);
    assert.equal(handle, handleOf(submission));
    assert.equal(decrypt(Buffer.from(submission.ciphertextWithInputVerification, 'hex'), keys, 8), 171n);
    await assert.rejects(session.encrypt(task, 60_000, AbortSignal.abort()), { name: 'AbortError' });
    assert.equal(relayer.submissions.length, 1);
  });

  it('does not begin with a node that fails, however often it would be asked again', async () => {
    relayer.upstream.on(paths.rpc, faults.serverError());
    await assert.rejects(openSession(connection), new Error('settings.fhe.rpcUrl, eth_chainId: HTTP status 500'));
  });
});
