/** A flood of addresses resets no limit: those that find no place share one bucket. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { oneApi, serviceFor } from '../support/service.ts';

/** Requests that a connection has under way. */
const AT_ONCE = 16;
const PATH = '/requests/0x';

/** Sends one request from each of these addresses, over one connection; resolves with how many were not limited. */
function sendAll(url: string, addresses: readonly string[]): Promise<number> {
  const { hostname, port, host } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let unread = '';
    let sent = 0;
    let answered = 0;
    let admitted = 0;
    const send = () => {
      const next = addresses.slice(sent, sent + AT_ONCE);
      sent += next.length;
      socket.write(
        next.map((from) => `GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: ${from}\r\n\r\n`).join(''),
      );
    };
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed after ${answered} of ${sent} answers`)));
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      const statuses = [...(unread + chunk).matchAll(/HTTP\/1\.1 (\d{3}) /g)];
      const last = statuses.at(-1);
      unread = (unread + chunk).slice(last === undefined ? 0 : last.index + last[0].length);
      answered += statuses.length;
      admitted += statuses.filter(([, status]) => status === '404').length;
      if (answered === addresses.length) {
        resolve(admitted);
        socket.destroy();
      } else if (answered === sent) send();
    });
    send();
  });
}

describe('105,000 addresses at a service with one request an hour for each', () => {
  it('share one bucket where they find no place, and reset none', async (t) => {
    const rateLimit = { max: 1, window: 3_600_000, trustForwardedFor: true };
    const service = await serviceFor(t, {
      ...oneApi('http://127.0.0.1:9', { e: {} }),
      server: { rateLimit },
    });
    const strangers = Array.from({ length: 105_000 }, (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
    const early = ['192.0.2.1', '192.0.2.2'];
    assert.equal(await sendAll(service.url, early), 2);
    const parts = Array.from({ length: 8 }, (_, part) => strangers.filter((__, i) => i % 8 === part));
    const admitted = await Promise.all(parts.map((part) => sendAll(service.url, part)));
    // All places but two, and the shared bucket.
    assert.equal(
      admitted.reduce((sum, count) => sum + count, 0),
      100_000 - 2 + 1,
    );
    for (const known of [early, strangers.slice(0, 500), ['198.51.100.1']])
      assert.equal(await sendAll(service.url, known), 0);
  });
});
