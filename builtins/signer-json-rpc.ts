import { createJsonRpc, type JsonRpc, JsonRpcFailure, type JsonRpcLimits } from '../lib/http/json-rpc.ts';
import type { HttpTarget } from '../lib/http/target.ts';
import { LONGEST_TIMER } from '../plugins-sdk/config.ts';
import { type Hex, type HttpClient, toHex } from '../plugins-sdk/index.ts';
import { type Address, normalizedSignature, type OpenSigner, type Statement } from '../plugins-sdk/signing.ts';
import { httpSigners } from './shared/http-signer.ts';

type Question = readonly [method: string, params: readonly unknown[]];

/** Makes the call for wallets and nodes (EIP-1193): `personal_sign`, or `eth_signTypedData_v4` as MetaMask defined it. */
function askWallet(address: Address, statement: Statement): Question {
  if (statement.kind === 'personal') return ['personal_sign', [toHex(statement.digest), address]];
  return ['eth_signTypedData_v4', [address, JSON.stringify(statement.data())]];
}

/** Makes the call for geth's clef (its external API, version 6). */
function askClef(address: Address, statement: Statement): Question {
  if (statement.kind === 'personal') return ['account_signData', ['text/plain', address, toHex(statement.digest)]];
  return ['account_signTypedData', [address, statement.data()]];
}

/** JSON-RPC 2.0, section 5.1: the method does not exist. */
const NO_SUCH_METHOD = -32601;
/** Most bytes of an answer. */
const LARGEST_ANSWER = 16_384;

async function signed(rpc: JsonRpc, [method, params]: Question, limits: JsonRpcLimits): Promise<Hex> {
  const result = await rpc(method, params, limits);
  try {
    return normalizedSignature(result);
  } catch (error) {
    throw new Error(`${method}: ${error instanceof Error ? error.message : error}`);
  }
}

const isUnknown = (error: unknown) => error instanceof JsonRpcFailure && error.code === NO_SUCH_METHOD;

function connect(client: HttpClient, target: HttpTarget, address: Address): OpenSigner['sign'] {
  const rpc = createJsonRpc(client, target, LARGEST_ANSWER);
  let dialects = [askWallet, askClef];
  return async (statement, signal) => {
    // The signal bounds the time.
    const limits = { timeout: LONGEST_TIMER, signal };
    const unknown: string[] = [];
    for (const ask of dialects) {
      const question = ask(address, statement);
      try {
        const signature = await signed(rpc, question, limits);
        if (unknown.length > 0) dialects = [ask, ...dialects.filter((other) => other !== ask)];
        return signature;
      } catch (error) {
        if (!isUnknown(error)) throw error;
        unknown.push(question[0]);
      }
    }
    throw new Error(`${unknown.join(' and ')}: error ${NO_SUCH_METHOD}, there are no such methods`);
  };
}

/** Signs through a wallet or node over JSON-RPC: anvil, a web3 wallet, geth's clef. */
export const signerJsonRpc = httpSigners('signer-json-rpc', 'json-rpc', connect);
