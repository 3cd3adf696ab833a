/**
 * A client of a paid endpoint. It asks what to pay, checks that against its own limits, pays on chain, and proves the payment. Then
 * it verifies the signed answer. It needs nothing of the service's code, only ethers.
 *
 * ```sh
 * PAYER_PRIVATE_KEY=0x… PAYER_RPC_URL=https://… node --import tsx examples/pay/pay.ts https://service.example 0x<endpoint id> \
 *   --node 0x<signer> --network 8453 --token 0x<token> --max 1500000 --parameters '{"symbol":"ETH"}'
 * ```
 *
 * The answer is printed as JSON once it is verified; everything else goes to standard error. A payment whose answer was
 * lost is not lost: `--paid 0x<transaction hash>` proves it again instead of paying once more.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import {
  Contract,
  getAddress,
  getBytes,
  JsonRpcProvider,
  Network,
  type Signer,
  solidityPackedKeccak256,
  Wallet,
  ZeroAddress,
} from 'ethers';
import { type SignedAnswer, verifyAnswer } from './signed-answer.ts';

/** What is asked, and of whom. */
export interface Request {
  /** Of the service, without `/endpoints`. */
  readonly url: string;
  readonly endpointId: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** What the client agreed to beforehand. A challenge comes unsigned over the wire: nothing in it is believed. */
export interface Limits {
  /** The signer, as the operator published it. */
  readonly node: string;
  /** Chain id. */
  readonly network: number;
  /** ERC-20 address; the zero address is the native asset. */
  readonly token: string;
  /** Most that one answer may cost, in the smallest unit of the token. */
  readonly maxAmount: bigint;
  /** Unless any recipient will do. */
  readonly recipient?: string | undefined;
}

/** The body of a 402. */
export interface Challenge {
  readonly node: string;
  readonly endpointId: string;
  readonly amount: bigint;
  readonly token: string;
  readonly network: number;
  readonly recipient: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** Seconds that a proof is good for; the service accepts 600 at most. */
const PROOF_VALIDITY = 300;
/** Answers after which the same payment may be proved again: the node of the service lags behind, or it is busy. */
const TRY_AGAIN = /^(Payment not found|Payment verification unavailable|Too many x402 verification attempts)/;
const ATTEMPTS = 10;
/** Milliseconds. */
const PAUSE_MS = 2000;
const ANSWER_TIMEOUT_MS = 60_000;

function nowInSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

function send({ url, endpointId, parameters = {} }: Request, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(new URL(`/endpoints/${endpointId}`, url), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ parameters }),
    // A proof is for this service and nobody else.
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
}

/** @throws Error unless the service asks for a payment. */
export async function fetchChallenge(request: Request): Promise<Challenge> {
  const response = await send(request);
  const body: Record<string, unknown> = JSON.parse(await response.text());
  if (response.status !== 402)
    throw new Error(`expected a challenge, got ${response.status} ${body.error ?? ''}`.trim());
  return {
    node: getAddress(String(body.node)),
    endpointId: String(body.endpointId),
    amount: BigInt(String(body.amount)),
    token: getAddress(String(body.token)),
    network: Number(body.network),
    recipient: getAddress(String(body.recipient)),
    expiresAt: Number(body.expiresAt),
  };
}

/** @throws Error unless the node answers and is of that chain. */
export async function connect(rpcUrl: string, network: number): Promise<JsonRpcProvider> {
  const expected = Network.from(network);
  // Left to find out by itself, it would wait for ever for a node that is down.
  const provider = new JsonRpcProvider(rpcUrl, expected, { staticNetwork: expected });
  try {
    const actual = BigInt(await provider.send('eth_chainId', []));
    if (actual !== expected.chainId) throw new Error(`the node is of chain ${actual}, not ${network}`);
    return provider;
  } catch (error) {
    provider.destroy();
    throw error;
  }
}

/** @throws Error naming the first member of the challenge that the client did not agree to. */
export function checkChallenge(challenge: Challenge, { endpointId }: Request, limits: Limits): void {
  const { node, network, token, maxAmount, recipient = challenge.recipient } = limits;
  const expected = { node: getAddress(node), network, token: getAddress(token), recipient: getAddress(recipient) };
  for (const [name, value] of Object.entries({ ...expected, endpointId: endpointId.toLowerCase() })) {
    const asked = challenge[name as keyof Challenge];
    if (asked !== value) throw new Error(`the challenge asks for ${name} ${asked}, not ${value}`);
  }
  if (challenge.amount > maxAmount)
    throw new Error(`the challenge asks for ${challenge.amount}, more than ${maxAmount}`);
  if (!(challenge.expiresAt > nowInSeconds())) throw new Error('the challenge has expired');
}

/**
 * Pays, and waits until the payment is part of the chain.
 *
 * @param onSent gets the hash as soon as there is one: keep it, it is worth the amount.
 * @returns the hash of the transaction.
 */
export async function pay(payer: Signer, challenge: Challenge, onSent?: (txHash: string) => void): Promise<string> {
  const { token, recipient, amount, network } = challenge;
  const connected = await payer.provider?.getNetwork();
  if (connected?.chainId !== BigInt(network)) throw new Error(`the payer is not on chain ${network}`);
  const erc20 = new Contract(token, ['function transfer(address to, uint256 amount) returns (bool)'], payer);
  const sent =
    token === ZeroAddress
      ? await payer.sendTransaction({ to: recipient, value: amount })
      : await erc20.getFunction('transfer').send(recipient, amount);
  onSent?.(sent.hash);
  await sent.wait();
  return sent.hash;
}

/** The value of `X-Payment-Proof`: the account that paid signs for which service, endpoint and time the payment is. */
export async function proofOfPayment(payer: Signer, challenge: Challenge, txHash: string): Promise<string> {
  const { node, endpointId } = challenge;
  const expiresAt = nowInSeconds() + PROOF_VALIDITY;
  const digest = solidityPackedKeccak256(['address', 'bytes32', 'uint64'], [node, endpointId, expiresAt]);
  return JSON.stringify({ txHash, expiresAt, signature: await payer.signMessage(getBytes(digest)) });
}

/** Sends the request with the proof; where trying again is safe and may help, it does. @throws Error with the service's text. */
export async function redeem(
  request: Request,
  payer: Signer,
  challenge: Challenge,
  txHash: string,
): Promise<SignedAnswer> {
  for (let attempt = 1; ; attempt++) {
    const response = await send(request, { 'X-Payment-Proof': await proofOfPayment(payer, challenge, txHash) });
    if (response.ok) return answerOf(response, request);
    const { error } = JSON.parse(await response.text());
    if (attempt === ATTEMPTS || !TRY_AGAIN.test(error)) throw new Error(`${response.status} ${error}`);
    await delay(PAUSE_MS);
  }
}

/** The answer of any of the three modes. */
async function answerOf(response: Response, { url }: Request): Promise<SignedAnswer> {
  const text = await response.text();
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    return JSON.parse(text.replace(/^data: /, ''));
  }
  const body = JSON.parse(text);
  if (response.status !== 202) return body;
  for (const end = Date.now() + ANSWER_TIMEOUT_MS; Date.now() < end; await delay(PAUSE_MS / 10)) {
    const poll = await fetch(new URL(body.pollUrl, url), {
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    const record = JSON.parse(await poll.text());
    if (record.status === 'complete') return record;
    if (record.error !== undefined) throw new Error(record.error);
  }
  throw new Error('the answer took too long');
}

export interface BuyOptions {
  /** A transaction that has paid already. */
  readonly paid?: string | undefined;
  readonly onSent?: (txHash: string) => void;
}

/** All of it. @throws Error */
export async function buy(
  request: Request,
  payer: Signer,
  limits: Limits,
  { paid, onSent }: BuyOptions = {},
): Promise<SignedAnswer> {
  const challenge = await fetchChallenge(request);
  checkChallenge(challenge, request, limits);
  const txHash = paid ?? (await pay(payer, challenge, onSent));
  const answer = await redeem(request, payer, challenge, txHash);
  verifyAnswer(answer, limits.node, request.endpointId);
  return answer;
}

const OPTIONS = {
  node: { type: 'string' },
  network: { type: 'string' },
  token: { type: 'string' },
  max: { type: 'string' },
  recipient: { type: 'string' },
  parameters: { type: 'string' },
  paid: { type: 'string' },
} as const;

function required(name: string, value: string | undefined): string {
  if (value === undefined || value === '') throw new Error(`${name} is missing`);
  return value;
}

async function main(args: string[], env: NodeJS.ProcessEnv): Promise<void> {
  const { positionals, values } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [url, endpointId] = positionals;
  const request = {
    url: required('URL', url),
    endpointId: required('ENDPOINT_ID', endpointId),
    parameters: JSON.parse(values.parameters ?? '{}'),
  };
  const limits = {
    node: required('--node', values.node),
    network: Number(required('--network', values.network)),
    token: required('--token', values.token),
    maxAmount: BigInt(required('--max', values.max)),
    recipient: values.recipient,
  };
  const provider = await connect(required('PAYER_RPC_URL', env.PAYER_RPC_URL), limits.network);
  try {
    const payer = new Wallet(required('PAYER_PRIVATE_KEY', env.PAYER_PRIVATE_KEY), provider);
    const onSent = (txHash: string) => console.error(`paid with ${txHash}`);
    console.log(JSON.stringify(await buy(request, payer, limits, { paid: values.paid, onSent })));
  } finally {
    provider.destroy();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  main(process.argv.slice(2), process.env).catch((error) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
