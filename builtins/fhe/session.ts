import { setTimeout } from 'node:timers/promises';
import {
  createInstance,
  FhevmHandle,
  type FhevmInstance,
  MainnetConfig,
  SepoliaConfig,
  ZKProof,
} from '@zama-fhe/relayer-sdk/node';
import { attested } from './attestation.ts';
import type { Ciphertext, Connection, Task } from './protocol.ts';
import { connectRpc } from './rpc.ts';

/** The relayer's keys and the host chain's signers, as they were when the session began. */
export interface Session {
  /**
   * Blocks its process for 12 to 15 seconds, then asks the relayer.
   *
   * @param timeout milliseconds for the relayer.
   * @param signal keeps the relayer from being asked, or ends that.
   */
  encrypt(task: Task, timeout: number, signal: AbortSignal): Promise<Ciphertext>;
}

/** Milliseconds of waiting, in which dead sockets and a cancellation that came during the proof are noticed. */
const BREATH_MS = 10;

/** Fetches keys and signers. It has no timeout of its own, and can hang: whoever calls must bound it. */
export async function openSession(connection: Connection): Promise<Session> {
  const { network, rpcUrl, relayerUrl, apiKey, verifier } = connection;
  const rpc = connectRpc(rpcUrl);
  const opening = createInstance({
    ...(network === 'mainnet' ? MainnetConfig : SepoliaConfig),
    ...(relayerUrl === undefined ? {} : { relayerUrl }),
    ...(apiKey === undefined ? {} : { auth: { __type: 'ApiKeyHeader', value: apiKey } }),
    network: rpc,
  });
  const instance = await Promise.race([opening, rpc.failed]);
  await rpc.close();
  return { encrypt: (task, timeout, signal) => encrypt(instance, verifier, task, timeout, signal) };
}

async function encrypt(
  instance: FhevmInstance,
  verifier: Connection['verifier'],
  { value, bits, contract }: Task,
  timeout: number,
  signal: AbortSignal,
): Promise<Ciphertext> {
  const input = instance.createEncryptedInput(contract, verifier);
  input[`add${bits}` as const](value);
  const proof = ZKProof.fromComponents(input.generateZKProof());
  await setTimeout(BREATH_MS);
  signal.throwIfAborted();
  const { handles, inputProof } = await instance.requestZKProofVerification(proof, { timeout, signal });
  const [handle] = FhevmHandle.fromZKProof(proof);
  if (handle === undefined) throw new Error('the ciphertext has no handle');
  const { config } = instance;
  return attested(
    handles,
    inputProof,
    { handle: handle.toBytes32Hex(), userAddress: verifier, contractAddress: contract, chainId: config.chainId },
    {
      signers: config.coprocessorSigners,
      threshold: config.coprocessorSignerThreshold,
      gatewayChainId: config.gatewayChainId,
      verifyingContract: config.verifyingContractAddressInputVerification,
    },
  );
}
