/** The used part of the relayer's SDK. The package needs a newer Node.js, and only operators who encrypt install it. */
declare module '@zama-fhe/relayer-sdk/node' {
  type Numeric = 'add8' | 'add16' | 'add32' | 'add64' | 'add128' | 'add256';
  type Input = Readonly<Record<Numeric, (value: bigint) => unknown>> & { generateZKProof(): unknown };

  export interface FhevmInstance {
    readonly config: {
      readonly chainId: bigint;
      readonly gatewayChainId: bigint;
      readonly coprocessorSigners: readonly `0x${string}`[];
      readonly coprocessorSignerThreshold: number;
      readonly verifyingContractAddressInputVerification: `0x${string}`;
    };
    createEncryptedInput(contract: string, user: string): Input;
    requestZKProofVerification(
      proof: ZKProof,
      options: { readonly timeout: number; readonly signal: AbortSignal },
    ): Promise<{ readonly handles: readonly Uint8Array[]; readonly inputProof: Uint8Array }>;
  }
  export class ZKProof {
    private constructor();
    static fromComponents(proof: unknown): ZKProof;
  }
  export class FhevmHandle {
    private constructor();
    static fromZKProof(proof: ZKProof): FhevmHandle[];
    toBytes32Hex(): `0x${string}`;
  }
  export const MainnetConfig: object;
  export const SepoliaConfig: object;
  export function createInstance(config: object): Promise<FhevmInstance>;
}
