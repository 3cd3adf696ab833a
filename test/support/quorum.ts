import assert from 'node:assert/strict';
import { AbiCoder, type BaseContract, ContractFactory, type Interface, isError, type Signer, Wallet } from 'ethers';
import { type Asked, signaturesBy } from './receipts.ts';
import { type Compiled, compile } from './solidity.ts';

/** A contract and answers for it that no code of the service has signed. */

export const ENDPOINT = `0x${'e1'.repeat(32)}`;
export const NO_HASH = `0x${'00'.repeat(32)}`;
export const NOBODY = `0x${'00'.repeat(20)}`;

/** Keys of signers, and by their number their wallets. */
export const signers = Array.from({ length: 8 }, (_, i) => new Wallet(`0x${(i + 1).toString(16).padStart(64, '0')}`));

/** The n-th of them. */
export function signer(n: number): Wallet {
  const wallet = signers[n];
  assert.ok(wallet, `there is a signer ${n}`);
  return wallet;
}

/** What `SignedDataQuorum` wants of answers. */
export interface Settings {
  readonly owner: string;
  readonly endpointId: string;
  readonly requestHash: string;
  readonly threshold: number;
  readonly maxAge: number;
  readonly maxAhead: number;
  readonly signers: readonly string[];
}

/** 3 of the first 5 signers, three minutes old at most or one ahead, owned by nobody. */
export function settingsOf(changes: Partial<Settings> = {}): Settings {
  return {
    owner: NOBODY,
    endpointId: ENDPOINT,
    requestHash: NO_HASH,
    threshold: 3,
    maxAge: 180,
    maxAhead: 60,
    signers: signers.slice(0, 5).map(({ address }) => address),
    ...changes,
  };
}

export interface Answer {
  readonly node: string;
  readonly endpointId: string;
  readonly timestamp: number;
  readonly data: string;
  readonly signature: string;
  readonly receiptSignature: string;
}

/** One word. */
export function dataOf(value: bigint): string {
  return AbiCoder.defaultAbiCoder().encode(['int256'], [value]);
}

/** What the n-th signer says; with a receipt where parameters are given. */
export async function answerOf(
  n: number,
  timestamp: number,
  said: bigint | string,
  { endpointId = ENDPOINT, parameters }: { endpointId?: string; parameters?: Asked } = {},
): Promise<Answer> {
  const data = typeof said === 'string' ? said : dataOf(said);
  const unsigned = { endpointId, timestamp, content: { data }, parameters: parameters ?? {} };
  const { node, signature, receiptSignature } = await signaturesBy(signer(n), unsigned);
  return { node, endpointId, timestamp, data, signature, receiptSignature: parameters ? receiptSignature : '0x' };
}

export const { SignedDataQuorum } = await compile('verify/contracts/SignedDataQuorum.sol');

export async function deploy(
  compiled: Compiled | undefined,
  deployer: Signer,
  ...args: readonly unknown[]
): Promise<BaseContract> {
  assert.ok(compiled, 'the contract is compiled');
  const factory = new ContractFactory(compiled.abi, compiled.bytecode, deployer);
  return (await factory.deploy(...args)).waitForDeployment();
}

/** The error of the contract that a call reverts with, such as `TooFewAnswers(2,3)`; other failures are thrown. */
export async function errorOf(call: Promise<unknown>, contract: Interface): Promise<string> {
  const error = await call.then(
    (value) => assert.fail(`the call was accepted: ${value}`),
    (reason: unknown) => reason,
  );
  if (!isError(error, 'CALL_EXCEPTION')) throw error;
  const parsed = contract.parseError(error.data ?? '0x');
  return parsed === null ? (error.data ?? '0x') : `${parsed.name}(${parsed.args.join()})`;
}
