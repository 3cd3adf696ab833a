/** A relayer that refuses or lies once there is a proof gets nothing signed. */
import assert from 'node:assert/strict';
import { id, Wallet } from 'ethers';
import { faults } from '../support/upstream.ts';
import { assertFailures, type Failure } from './failures.ts';
import { paths, sign } from './relayer.ts';
import { API_KEY } from './service.ts';

const refusal = (label: string, message: string) => ({ status: 'failed', error: { label, message } });
const stranger = new Wallet(id('a stranger'));

const cases: readonly Failure[] = [
  {
    name: 'a relayer that finds the request malformed',
    sabotage: ({ upstream }) => upstream.json(paths.submit, refusal('request_error', 'no such contract'), 400),
    reason: /^encrypting: no such contract status: 400 .+$/,
  },
  {
    name: 'a relayer that knows the API key no more',
    sabotage: ({ upstream }) => upstream.json(paths.submit, refusal('unauthorized', API_KEY), 401),
    reason: /^encrypting: Unauthorized, missing or invalid Zama Fhevm API Key\. status: 401 .+$/,
  },
  {
    name: 'a relayer that breaks down',
    sabotage: ({ upstream }) => upstream.on(paths.submit, faults.serverError()),
    reason: /^encrypting: .+ status: 500 .+$/,
  },
  {
    name: 'a relayer that rejects the proof',
    sabotage: ({ upstream }) =>
      upstream.json(paths.result, {
        status: 'succeeded',
        requestId: 'request',
        result: { accepted: false, extraData: '0x00' },
      }),
    reason: /^encrypting: InputProof rejected status: 200 .+$/,
  },
  {
    name: 'one coprocessor that signs twice where two must sign',
    sabotage: (relayer) => relayer.lie((submission) => relayer.judge(submission, twice(relayer.signers[0]))),
    reason: /^encrypting: 1 different coprocessors signed, 2 must$/,
  },
  {
    name: 'too few signatures',
    sabotage: (relayer) => relayer.lie((submission) => relayer.judge(submission, relayer.signers.slice(0, 1))),
    reason: /^encrypting: Coprocessor signers threshold is not reached$/,
  },
  {
    name: 'a signer that the chain does not know',
    sabotage: (relayer) => relayer.lie((submission) => relayer.judge(submission, [...relayer.signers, stranger])),
    reason: new RegExp(
      `^encrypting: Invalid address found: ${stranger.address} is not in the list of coprocessor signers$`,
    ),
  },
  {
    name: 'the handle of another ciphertext',
    sabotage: (relayer) =>
      relayer.lie(async (submission) => {
        const handle = `0x${'11'.repeat(21)}000000000000aa36a70200`;
        const signatures = await Promise.all(relayer.signers.map((signer) => sign(signer, submission, handle)));
        return { handles: [handle], signatures };
      }),
    reason: /^encrypting: Incorrect Handle 0: .+$/,
  },
  {
    name: 'two handles for one value',
    sabotage: (relayer) =>
      relayer.lie(async (submission) => {
        const { handles, signatures } = await relayer.judge(submission);
        return { handles: [...handles, ...handles], signatures };
      }),
    reason: /^encrypting: Incorrect Handles list sizes: .+$/,
  },
  {
    name: 'signatures for another consumer',
    sabotage: (relayer) =>
      relayer.lie((submission) => relayer.judge({ ...submission, contractAddress: stranger.address })),
    reason: /^encrypting: Invalid address found: .+ is not in the list of coprocessor signers$/,
  },
];

function twice(signer: Wallet | undefined): Wallet[] {
  assert.ok(signer);
  return [signer, signer];
}

assertFailures('what goes wrong once there is a proof', cases);
