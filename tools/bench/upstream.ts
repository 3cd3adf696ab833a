import { createServer } from 'node:http';
import { PAYER, RECIPIENT } from './payments.ts';

/** The upstream of every measured server: a small quote for encoding, a 1.3 KB document for raw answers. */
const small = JSON.stringify({ symbol: 'ETHUSD', price: 2064.01, updated: 1_795_252_338 });
const large = JSON.stringify({
  quotes: Array.from({ length: 16 }, (_, i) => ({ symbol: `ASSET${i}`, price: 100.25 + i, volume: 12_345_678 + i })),
});

/** A chain on which everything was paid just now, by the account and to the recipient of `payments.ts`. */
function rpc(text: string): string {
  const { id, method, params }: { id: number; method: string; params: string[] } = JSON.parse(text);
  const [hash] = params;
  const block = { blockHash: `0x${'b1'.repeat(32)}`, blockNumber: '0x1' };
  const results: Readonly<Record<string, unknown>> = {
    eth_chainId: '0x7a69',
    eth_getTransactionByHash: { hash, from: PAYER, to: RECIPIENT, value: '0x1', ...block },
    eth_getTransactionReceipt: { transactionHash: hash, status: '0x1', logs: [], ...block },
    eth_getBlockByNumber: { hash: block.blockHash, timestamp: `0x${Math.floor(Date.now() / 1000 + 1).toString(16)}` },
  };
  return JSON.stringify({ jsonrpc: '2.0', id, result: results[method] });
}

/** Quotes of so many bytes in all, beginning with the small one. */
function sized(bytes: number): string {
  const quote = (i: number) => JSON.stringify({ symbol: `ASSET${1000 + i}`, price: 100.25 + i, volume: 12_345_678 });
  const quotes: string[] = [];
  for (let rest = bytes - small.length - 12; rest > 0; rest -= (quotes.at(-1)?.length ?? 0) + 1) {
    quotes.push(quote(quotes.length));
  }
  return `${small.slice(0, -1)},"quotes":[${quotes.slice(0, -1).join(',')}]}`;
}

const sizes = new Map<string, string>();

function bodyOf(url: string): string {
  const [, bytes] = /^\/bytes\/(\d+)/.exec(url) ?? [];
  if (bytes === undefined) return url.startsWith('/large') ? large : small;
  const text = sizes.get(bytes) ?? sized(Number(bytes));
  sizes.set(bytes, text);
  return text;
}

const server = createServer(async (request, response) => {
  // Requests that are to stay under way.
  if (request.url?.startsWith('/never')) return;
  let body = bodyOf(request.url ?? '');
  if (request.url === '/rpc') {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    body = rpc(text);
  }
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object')
    process.stdout.write(`listening on http://127.0.0.1:${address.port}\n`);
});
