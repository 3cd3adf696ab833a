/** Floods a service, each request from an address and for a cache key of its own; prints the live heap. See flood.slow.ts. */
import { Pool } from 'undici';
import { oneApi, startTestService } from './service.ts';
import { startUpstream } from './upstream.ts';

const upstream = await startUpstream();
upstream.on('*', (_req, res) => {
  // The upstream of the tests remembers its requests.
  upstream.requests.length = 0;
  res.setHeader('content-type', 'application/json').end('{"price":1}');
});
const config = oneApi(
  upstream.url,
  { cached: { parameters: [{ name: 'q' }] } },
  {
    api: { cache: { maxAge: 600_000 } },
    server: { rateLimit: { max: 1000, window: 60_000, trustForwardedFor: true } },
  },
);
const service = await startTestService(config);
const pool = new Pool(service.url, { connections: 16 });
const id = String(service.ids['api/cached']);

const address = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

async function flood(from: number, to: number): Promise<void> {
  let next = from;
  const client = async () => {
    while (next < to) {
      const i = next++;
      const response = await pool.request({
        path: `/endpoints/${id}`,
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': address(i) },
        body: JSON.stringify({ parameters: { q: `key ${i}` } }),
      });
      const text = await response.body.text();
      if (response.statusCode !== 200) throw new Error(text);
    }
  };
  await Promise.all(Array.from({ length: 16 }, client));
  service.logs.length = 0;
}

async function liveHeap(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return process.memoryUsage().heapUsed;
}

// The cache holds 10,000 answers; whatever else fills up has done so by then, too.
await flood(0, 10_500);
const before = await liveHeap();
await flood(10_500, 20_500);
process.stdout.write(JSON.stringify([before, await liveHeap()]));
await pool.close();
await service.stop();
await upstream.close();
