/** The log says what an upstream did that no answer could be made of. */
import assert from 'node:assert/strict';
import { createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { certificatesFor, chainFor, withoutOpenssl } from '../support/certificates.ts';
import { assertRefused } from '../support/http.ts';
import { hostOf, textsOf } from '../support/https.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

/** A server that writes these bytes to whoever has sent something. */
async function speaking(t: TestContext, bytes: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.end(bytes));
  });
  return `http://${await hostOf(t, server)}`;
}

/** The reason of the refusal, in the words of the log. */
async function detailOf(t: TestContext, url: string, api: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const service = await serviceFor(t, oneApi(url, { e: {} }, { api }));
  await assertRefused(await service.post('api/e'), 502, 'API call failed');
  const line = service.logs.findLast(({ message }) => message === 'API call failed') ?? assert.fail();
  return String(line.fields.detail).replace(/https?:\S+/, 'it');
}

describe('an upstream over TLS', { skip: withoutOpenssl }, () => {
  it('that speaks HTTP/2 only is named so', async (t) => {
    const { ca, cert, key } = await textsOf(await certificatesFor(t, 'IP:127.0.0.1'));
    const host = await hostOf(t, createSecureServer({ cert, key, allowHTTP1: false }));
    const what = 'it speaks HTTP/2 only, which this service does not (ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL)';
    assert.equal(await detailOf(t, `https://${host}`, { tls: { ca } }), `network: GET it failed: ${what}`);
  });

  it('that speaks TLS 1.1 only is named so', async (t) => {
    const { ca, cert, key } = await textsOf(await certificatesFor(t, 'IP:127.0.0.1'));
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    const host = await hostOf(t, createHttpsServer({ cert, key, ...old }));
    const what = /^network: GET it failed: it speaks no TLS of version 1\.2 or later \(ERR_SSL_/;
    assert.match(await detailOf(t, `https://${host}`, { tls: { ca } }), what);
  });

  it('whose root is not beside the intermediate in ca is named so', async (t) => {
    const { root, intermediate, cert, key } = await chainFor(t, 'IP:127.0.0.1');
    const server = createHttpsServer({ cert: cert + intermediate, key }, (_, res) => {
      res.setHeader('Content-Type', 'application/json').end('7');
    });
    const url = `https://${await hostOf(t, server)}`;
    const what =
      'its certificate leads to one that is not in ca: write the root there, beside the intermediate (UNABLE_TO_GET_ISSUER_CERT)';
    assert.equal(await detailOf(t, url, { tls: { ca: intermediate } }), `network: GET it failed: ${what}`);
    // As a variable of Docker has it: each line ends in the characters \ and n.
    const ca = root.replaceAll('\n', '\\n');
    const service = await serviceFor(t, oneApi(url, { e: {} }, { api: { tls: { ca } } }));
    assert.equal((await service.post('api/e')).status, 200);
  });
});

describe('an upstream that answers no HTTP/1.1', () => {
  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7';
  for (const [what, bytes, detail] of [
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n', 'the answer is not valid HTTP'],
    ['a status line that is none', 'HTTP/1.1 2000 OK\r\n\r\n', 'the answer is not valid HTTP'],
    ['100 Continue unasked', CONTINUE, 'it sent 100 Continue unasked'],
  ] as const) {
    it(`but ${what} is named by that`, async (t) => {
      assert.equal(await detailOf(t, await speaking(t, bytes)), `network: GET it failed: ${detail}`);
    });
  }
});

describe('an upstream that codes its content', () => {
  const codings = {
    zstd: 'the answer has the unknown content encoding zstd',
    'gzip, br': 'the answer has several content encodings (gzip, br)',
  };
  for (const [header, detail] of Object.entries(codings)) {
    it(`as ${header} is named by that`, async (t) => {
      const coded = faults.codedBytes(header, Buffer.from('x'));
      const upstream = await upstreamFor(t, { '/e': coded });
      assert.equal(await detailOf(t, upstream.url), `encoding: GET it failed: ${detail}`);
    });
  }

  it('or redirects, says so in the log without the place: a client may have chosen parts of it', async (t) => {
    const upstream = await upstreamFor(t, { '/e': faults.redirect('https://other.example/secret?key=1', 307) });
    assert.equal(await detailOf(t, upstream.url), 'upstream status 307');
  });
});
