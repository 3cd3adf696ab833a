import type { ServerResponse } from 'node:http';
import {
  AbiCoder,
  concat,
  getBytes,
  hexlify,
  Interface,
  id,
  keccak256,
  toBeHex,
  toUtf8Bytes,
  Wallet,
  zeroPadValue,
} from 'ethers';
import { FheTypes, ProvenCompactCiphertextList } from 'node-tfhe';
import { types } from '../support/input-verification.ts';
import { faults, type Handler, startUpstream, type Upstream } from '../support/upstream.ts';
import type { Keys } from './keys.ts';

/** The addresses of the Sepolia deployment that the SDK is made for. */
export const SEPOLIA = {
  chainId: 11_155_111n,
  gatewayChainId: 10_901n,
  acl: '0xf0Ffdc93b7E186bC2f8CB3dAA75D86d1930A433D',
  inputVerifier: '0xBBC1fFCdc7C316aAAd72E807D9b0272BE8F84DA0',
  inputVerification: '0x483b9dE06E4E4C7D35CCf5837A1668487406D955',
  decryption: '0x5D8BD78e2ea6bbE41f26dFe9fdaEAa349e077478',
};

/** What a client submits. */
export interface Submission {
  readonly contractAddress: string;
  readonly userAddress: string;
  readonly ciphertextWithInputVerification: string;
  readonly contractChainId: string;
  readonly extraData: string;
}

export interface Verdict {
  readonly handles: readonly string[];
  readonly signatures: readonly string[];
}

export const paths = {
  rpc: '/rpc',
  keyUrl: '/v2/keyurl',
  publicKey: '/blob/public',
  crs: '/blob/crs',
  submit: '/v2/input-proof',
  /** Of every job: which it is does not matter, they run one at a time. */
  result: '/v2/input-proof/job',
} as const;

export interface RelayerOptions {
  readonly keys: Keys;
  readonly signers?: number;
  readonly threshold?: number;
}

/** A relayer (version 2 of its routes), its coprocessors, and a node of the host chain, on one loopback server. */
export class Relayer {
  readonly upstream: Upstream;
  readonly rpcUrl: string;
  readonly relayerUrl: string;
  /** The coprocessors, of whose signatures `threshold` are needed. */
  readonly signers: readonly Wallet[];
  /** In the order of arrival. */
  readonly submissions: Submission[] = [];
  readonly #threshold: number;
  readonly #keys: Keys;
  #verdict = (submission: Submission): Promise<Verdict> => this.judge(submission);
  #gate: Promise<void> = Promise.resolve();

  constructor(upstream: Upstream, { keys, signers = 1, threshold = signers }: RelayerOptions) {
    this.upstream = upstream;
    this.rpcUrl = upstream.url + paths.rpc;
    this.relayerUrl = `${upstream.url}/v2`;
    this.signers = Array.from({ length: signers }, (_, i) => new Wallet(id(`coprocessor ${i}`)));
    this.#threshold = threshold;
    this.#keys = keys;
    this.behave();
  }

  /** What an honest relayer answers. */
  async judge(submission: Submission, by = this.signers): Promise<Verdict> {
    const handle = handleOf(submission);
    return { handles: [handle], signatures: await Promise.all(by.map((signer) => sign(signer, submission, handle))) };
  }

  /** What the relayer answers from now on, in place of the honest verdict. */
  lie(verdict: (submission: Submission) => Promise<Verdict>): void {
    this.#verdict = verdict;
  }

  /** The node is one of another chain from now on. */
  moveTo(chainId: bigint): void {
    this.upstream.on(paths.rpc, chain(this.signers, this.#threshold, chainId));
  }

  /** Keeps what is submitted from now on waiting for an answer, until the returned function is called. */
  hold(): () => void {
    let open = () => {};
    this.#gate = new Promise((resolve) => {
      open = resolve;
    });
    return open;
  }

  /** Honest again, on every path. */
  behave(): void {
    const { upstream } = this;
    const key = (path: string) => ({ dataId: path, urls: [upstream.url + path] });
    const response = { fheKeyInfo: [{ fhePublicKey: key(paths.publicKey) }], crs: { 2048: key(paths.crs) } };
    this.lie((submission) => this.judge(submission));
    this.moveTo(SEPOLIA.chainId);
    upstream.json(paths.keyUrl, { response });
    upstream.on(paths.publicKey, bytes(this.#keys.public));
    upstream.on(paths.crs, bytes(this.#keys.crs));
    upstream.on(paths.submit, (_req, res, { body }) => this.#submit(body, res));
    upstream.on(paths.result, async (...request) => faults.json(await this.#result())(...request));
  }

  close(): Promise<void> {
    return this.upstream.close();
  }

  async #submit(body: string, res: ServerResponse): Promise<void> {
    this.submissions.push(JSON.parse(body));
    await this.#gate;
    const queued = { status: 'queued', requestId: 'request', result: { jobId: 'job' } };
    res.writeHead(202, { 'content-type': 'application/json', 'retry-after': '1' }).end(JSON.stringify(queued));
  }

  async #result(): Promise<unknown> {
    const last = this.submissions.at(-1);
    if (last === undefined) throw new Error('nothing was submitted');
    const result = { accepted: true, extraData: last.extraData, ...(await this.#verdict(last)) };
    return { status: 'succeeded', requestId: 'request', result };
  }
}

export async function startRelayer(options: RelayerOptions): Promise<Relayer> {
  return new Relayer(await startUpstream(), options);
}

function bytes(body: Buffer): Handler {
  return (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': body.length }).end(body);
  };
}

const views = new Interface([
  'function getCoprocessorSigners() view returns (address[])',
  'function getKmsSigners() view returns (address[])',
  'function getThreshold() view returns (uint256)',
  'function eip712Domain() view returns (bytes1, string, string, uint256, address, bytes32, uint256[])',
]);

/** The views of the host chain's contracts that a client reads. */
function chain(signers: readonly Wallet[], threshold: number, chainId: bigint): Handler {
  const addresses = signers.map(({ address }) => address);
  const domain = (isInput: boolean) => [
    '0x0f',
    isInput ? 'InputVerification' : 'Decryption',
    '1',
    SEPOLIA.gatewayChainId,
    isInput ? SEPOLIA.inputVerification : SEPOLIA.decryption,
    `0x${'00'.repeat(32)}`,
    [],
  ];
  const call = ({ to, data }: { readonly to: string; readonly data: string }): string => {
    const isInput = to.toLowerCase() === SEPOLIA.inputVerifier.toLowerCase();
    const name = views.parseTransaction({ data })?.name ?? '';
    if (name === 'eip712Domain') return views.encodeFunctionResult(name, domain(isInput));
    if (name === 'getThreshold') return views.encodeFunctionResult(name, [isInput ? threshold : 1]);
    return views.encodeFunctionResult(name, [addresses]);
  };
  return (req, res, recorded) => {
    const { id: callId, method, params } = JSON.parse(recorded.body);
    const result = method === 'eth_chainId' ? toBeHex(chainId) : call(params[0]);
    return faults.json({ jsonrpc: '2.0', id: callId, result })(req, res, recorded);
  };
}

/** The byte that tells a handle's type, by the library's name for the kind of the plaintext. */
const handleTypes = new Map<FheTypes | undefined, number>([
  [FheTypes.Uint8, 2],
  [FheTypes.Uint16, 3],
  [FheTypes.Uint32, 4],
  [FheTypes.Uint64, 5],
  [FheTypes.Uint128, 6],
  [FheTypes.Uint256, 8],
]);

/**
 * The handle that coprocessors give to the first ciphertext of a list: 21 bytes of a hash over the ciphertext's hash, the
 * index, the ACL contract and the chain, then index, chain id (8 bytes), type and version.
 */
export function handleOf({ ciphertextWithInputVerification: hex, contractChainId }: Submission): string {
  const ciphertext = getBytes(`0x${hex}`);
  const kind = ProvenCompactCiphertextList.safe_deserialize(ciphertext, 1n << 30n).get_kind_of(0);
  const type = handleTypes.get(kind);
  if (type === undefined) throw new Error(`no type for ${String(kind)}`);
  const chainId = zeroPadValue(toBeHex(BigInt(contractChainId)), 32);
  const blob = keccak256(concat([toUtf8Bytes('ZK-w_rct'), ciphertext]));
  const hash = keccak256(concat([toUtf8Bytes('ZK-w_hdl'), blob, '0x00', SEPOLIA.acl, chainId]));
  return concat([hash.slice(0, 44), '0x00', `0x${chainId.slice(-16)}`, hexlify(new Uint8Array([type])), '0x00']);
}

const domain = {
  name: 'InputVerification',
  version: '1',
  chainId: SEPOLIA.gatewayChainId,
  verifyingContract: SEPOLIA.inputVerification,
};

/** A coprocessor's signature. */
export function sign(signer: Wallet, submission: Submission, handle: string): Promise<string> {
  const { userAddress, contractAddress, contractChainId, extraData } = submission;
  return signer.signTypedData(domain, types, {
    ctHandles: [handle],
    userAddress,
    contractAddress,
    contractChainId: BigInt(contractChainId),
    extraData,
  });
}

/** What an encrypted answer's `data` holds. */
export function decodeEncrypted(data: string): { readonly handle: string; readonly inputProof: string } {
  const [handle, inputProof] = AbiCoder.defaultAbiCoder().decode(['bytes32', 'bytes'], data);
  return { handle, inputProof };
}
