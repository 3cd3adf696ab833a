/**
 * A wallet pays an endpoint of type `x402-exact` with the public client library, which knows nothing of this project, and the
 * signed answer is verified. Needs `npm install @x402/fetch @x402/evm viem` and `signed-data-proxy/verify`.
 *
 * ```sh
 * PAYER_PRIVATE_KEY=0x… node --import tsx examples/pay-x402.ts https://service.example 0x<endpoint id> \
 *   --node 0x<signer> --network eip155:8453 --asset 0x<token> --max 10000 --parameters '{"symbol":"ETH"}'
 * ```
 *
 * The wallet needs the token and no gas: it signs an authorisation, which is settled only once there is an answer. The answer is
 * printed as JSON once it is verified; what was paid, and in which transaction, goes to standard error.
 */
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { verifyResponse } from 'signed-data-proxy/verify';
import { privateKeyToAccount } from 'viem/accounts';

/** What the client agreed to beforehand: an offer comes unsigned over the wire. */
export interface Limits {
  /** The signer, as the operator published it. */
  readonly node: string;
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: `eip155:${number}`;
  /** ERC-20 address. */
  readonly asset: string;
  /** Most that one answer may cost, in the smallest unit of the token. */
  readonly max: string;
}

/** A `fetch` that pays where it is asked to, within the limits. @param key of the wallet, 0x and 64 hex digits. */
export function payingFetch(key: `0x${string}`, { network, asset, max }: Limits): typeof fetch {
  const client = x402Client.fromConfig({
    schemes: [{ network, client: new ExactEvmScheme(privateKeyToAccount(key)) }],
    spendControls: { maxAmountPerPayment: false, allowedAssets: [{ network, asset, maxAmountPerPayment: max }] },
    policies: [(_, offers) => offers.filter((offer) => offer.asset.toLowerCase() === asset.toLowerCase())],
  });
  return wrapFetchWithPayment(fetch, client);
}

/**
 * Buys one answer.
 * @returns the verified answer, and the transaction that paid for it.
 * @throws Error with what the service or the library said.
 */
export async function buy(
  pay: typeof fetch,
  { url, endpointId, parameters = {} }: { url: string; endpointId: string; parameters?: unknown },
  { node }: Pick<Limits, 'node'>,
) {
  let response = await pay(`${url}/endpoints/${endpointId}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ parameters }),
  });
  let text = await response.text();
  // An async endpoint has its payment settled once the answer is there, and tells so then.
  while (response.ok && ['pending', 'processing'].includes(JSON.parse(text.replace(/^data: /, '')).status)) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    response = await fetch(url + JSON.parse(text).pollUrl);
    text = await response.text();
  }
  const answer = JSON.parse(text.replace(/^data: /, ''));
  const paid = response.headers.get('PAYMENT-RESPONSE');
  if (!response.ok || answer.status === 'failed') throw new Error(`${response.status} ${answer.error ?? text}`);
  const verified = verifyResponse(answer, { node, endpointId, maxAge: 3600 });
  if (!verified.ok) throw new Error(verified.message);
  return { answer, verified, transaction: paid === null ? undefined : decodePaymentResponseHeader(paid).transaction };
}

function required(name: string, value: string | undefined): string {
  if (value === undefined || value === '') throw new Error(`${name} is missing`);
  return value;
}

async function main(args: string[], env: NodeJS.ProcessEnv): Promise<void> {
  const text = { type: 'string' } as const;
  const options = { node: text, network: text, asset: text, max: text, parameters: text };
  const { positionals, values } = parseArgs({ args, options, allowPositionals: true });
  const limits: Limits = {
    node: required('--node', values.node),
    network: required('--network', values.network) as Limits['network'],
    asset: required('--asset', values.asset),
    max: required('--max', values.max),
  };
  const request = {
    url: required('URL', positionals[0]),
    endpointId: required('ENDPOINT_ID', positionals[1]),
    parameters: JSON.parse(values.parameters ?? '{}'),
  };
  const pay = payingFetch(required('PAYER_PRIVATE_KEY', env.PAYER_PRIVATE_KEY) as `0x${string}`, limits);
  const { answer, transaction } = await buy(pay, request, limits);
  console.error(transaction === undefined ? 'nothing was paid' : `paid with ${transaction}`);
  console.log(JSON.stringify(answer));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  main(process.argv.slice(2), process.env).catch((error) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
