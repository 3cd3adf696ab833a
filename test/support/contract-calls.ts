import assert from 'node:assert/strict';
import { type BaseContract, ContractFactory, Interface, isError, type JsonRpcSigner } from 'ethers';
import { type Compiled, compile } from './solidity.ts';

/** Of the curve of Ethereum's signatures. */
export const CURVE_ORDER = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n;

/** The contracts of these files: how one is deployed, and what its errors and events look like. */
export async function contractsOf(...files: readonly string[]) {
  const contracts: Record<string, Compiled> = Object.assign(
    {},
    ...(await Promise.all(files.map((file) => compile(file)))),
  );
  const compiled = (name: string) => contracts[name] ?? assert.fail(`there is no contract ${name}`);
  const interfaceOf = (name: string) => new Interface(compiled(name).abi);
  return {
    interfaces: Object.keys(contracts).map(interfaceOf),
    interfaceOf,
    errorOf: (name: string, error: string, args: readonly unknown[]) =>
      interfaceOf(name).encodeErrorResult(error, args),
    async deploy(name: string, deployer: JsonRpcSigner, ...args: readonly unknown[]): Promise<BaseContract> {
      const { abi, bytecode } = compiled(name);
      return (await new ContractFactory(abi, bytecode, deployer).deploy(...args)).waitForDeployment();
    },
  };
}

/** What `revert("…")` and `require(…, "…")` revert with. */
export function errorText(text: string): string {
  return new Interface(['error Error(string)']).encodeErrorResult('Error', [text]);
}

/** The bytes that a call reverts with; `0x` where there is no reason. */
export async function revertOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => assert.fail('the call was accepted'),
    (reason: unknown) => reason,
  );
  if (!isError(error, 'CALL_EXCEPTION')) throw error;
  return error.data ?? '0x';
}
