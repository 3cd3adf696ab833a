import { setTimeout } from 'node:timers/promises';
import { createInstance, FhevmHandle, MainnetConfig, SepoliaConfig, ZKProof } from '@zama-fhe/relayer-sdk/node';
import { attested } from './attestation.ts';
import type { Ciphertext, Connection, Task } from './protocol.ts';
import { connectRpc } from './rpc.ts';

/** Milliseconds of a pause, in which the event loop notices dead sockets and a cancellation that came during the proof. */
const BREATH_MS = 10;

/**
 * Fetches the present keys of the relayer and signers of the host chain. It has no timeout and can hang, so the caller must
 * bound its time.
 */
export async function openSession({ network, rpcUrl, relayerUrl, apiKey, verifier }: Connection) {
  const rpc = connectRpc(rpcUrl);
  const opening = createInstance({
    ...(network === 'mainnet' ? MainnetConfig : SepoliaConfig),
    ...(relayerUrl === undefined ? {} : { relayerUrl }),
    ...(apiKey === undefined ? {} : { auth: { __type: 'ApiKeyHeader', value: apiKey } }),
    network: rpc,
  });
  const instance = await Promise.race([opening, rpc.failed]);
  await rpc.close();
  const { config } = instance;
  const coprocessors = {
    signers: config.coprocessorSigners,
    threshold: config.coprocessorSignerThreshold,
    gatewayChainId: config.gatewayChainId,
    verifyingContract: config.verifyingContractAddressInputVerification,
  };
  return {
    /**
     * Encrypts a value: blocks the process for 12 to 15 seconds, then asks the relayer.
     *
     * @param timeout milliseconds for the relayer.
     * @param signal prevents or ends the request to the relayer.
     */
    async encrypt({ value, bits, contract }: Task, timeout: number, signal: AbortSignal): Promise<Ciphertext> {
      const input = instance.createEncryptedInput(contract, verifier);
      input[`add${bits}` as const](value);
      const proof = ZKProof.fromComponents(input.generateZKProof());
      await setTimeout(BREATH_MS);
      signal.throwIfAborted();
      const { handles, inputProof } = await instance.requestZKProofVerification(proof, { timeout, signal });
      const [handle] = FhevmHandle.fromZKProof(proof);
      if (handle === undefined) throw new Error('the ciphertext has no handle');
      const binding = { handle: handle.toBytes32Hex(), userAddress: verifier, contractAddress: contract };
      return attested(handles, inputProof, { ...binding, chainId: config.chainId }, coprocessors);
    },
  };
}
