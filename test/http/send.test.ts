/** Of a body that nobody wants, no more than 64 KiB are read. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { send } from '../../http/send.ts';
import { openRaw } from '../support/raw-http.ts';
import { startTestServer } from './server.ts';

for (const [what, chunk] of [
  ['data', `10000\r\n${'x'.repeat(0x10000)}\r\n`],
  ['extensions of chunks', `1;${'x'.repeat(16_000)}\r\nx\r\n`.repeat(4)],
] as const) {
  it(`of a body that nobody wants, 64 KiB are read, and what one read brings: ${what}`, async (t) => {
    const server = await startTestServer(t, {}, (incoming) =>
      send(incoming, { status: 404, headers: [], body: 'none' }),
    );
    const client = openRaw(server.url);
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(200)}`);
    const text = await client.closed;
    assert.match(text, /^HTTP\/1\.1 404 Not Found\r\n[\s\S]*\r\nConnection: close\r\n/);
    const read = server.arrived[0]?.request.socket.bytesRead ?? 0;
    assert.ok(read > 64 * 1024 && read <= 256 * 1024, `${read} bytes`);
  });
}
