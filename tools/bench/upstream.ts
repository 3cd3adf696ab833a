import { createServer } from 'node:http';
import { listen, urlOf } from '../../lib/http/listen.ts';

/** The upstream of every measured server: a small quote for encoding, a 1.3 KB document for raw answers. */
const small = JSON.stringify({ symbol: 'ETHUSD', price: 2064.01, updated: 1_795_252_338 });
const large = JSON.stringify({
  quotes: Array.from({ length: 16 }, (_, i) => ({ symbol: `ASSET${i}`, price: 100.25 + i, volume: 12_345_678 + i })),
});

const server = createServer((request, response) => {
  const body = request.url?.startsWith('/large') ? large : small;
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body);
});
server.keepAliveTimeout = 60_000;
await listen(server, { port: 0, host: '127.0.0.1' });
process.stdout.write(`listening on ${urlOf(server)}\n`);
