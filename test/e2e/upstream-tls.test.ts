/** `apis[].tls`: an upstream, and its token endpoint, that want a certificate of the client and have one of a private authority. */
import assert from 'node:assert/strict';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import { describe, it, type TestContext } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { certificatesOf, chainFor, withoutOpenssl } from '../support/certificates.ts';
import { warningsOf } from '../support/config.ts';
import { assertRefused } from '../support/http.ts';
import { hostOf, textsOf } from '../support/https.ts';
import { oneApi, serviceFor, startTestService } from '../support/service.ts';

/** PEM texts of an authority, and of a certificate of it with its key. */
const made = async (t: TestContext, days = 1, name = 'IP:127.0.0.1') => textsOf(await certificatesOf(t, days, [name]));

/** Answers only clients with a certificate of that authority. */
async function startServer(t: TestContext, own: { cert: string; key: string }, clientsOf: string) {
  const paths: string[] = [];
  const server = createServer({ ...own, ca: clientsOf, requestCert: true, rejectUnauthorized: true }, (req, res) => {
    assert.ok((req.socket as TLSSocket).authorized);
    paths.push(`${req.url} ${req.headers.authorization ?? ''}`.trim());
    res.setHeader('Content-Type', 'application/json');
    res.end(req.url === '/token' ? '{"access_token":"t1","token_type":"bearer"}' : '7');
  });
  return { url: `https://${await hostOf(t, server)}`, paths };
}

/** What the log says of a call that fails, and of the certificate of the client. */
async function refusal(t: TestContext, url: string, tls: object | undefined) {
  const service = await serviceFor(t, oneApi(url, { e: {} }, { api: { tls, timeout: 2000 } }));
  await assertRefused(await service.post('api/e'), 502, 'API call failed');
  const line = service.logs.findLast(({ message }) => message === 'API call failed') ?? assert.fail();
  const warned = service.logs.find(({ message }) => message.includes('tls.cert'))?.message;
  return {
    reason: String(line.fields.detail).replace(/https:\S+/, 'it'),
    warned: warned?.replace(/ \(line \d+\)/, ''),
  };
}

describe('tls', { skip: withoutOpenssl }, () => {
  it('shows a certificate and believes in a private authority, at the token endpoint, too', async (t) => {
    const server = await made(t);
    const client = await made(t);
    const { url, paths } = await startServer(t, server, client.ca);
    // As variables of Docker and of Windows have them: lines end in the characters \\n, or \\r\\n.
    const [cert, key] = [client.cert.replaceAll('\n', '\\n'), client.key.replaceAll('\n', '\\r\\n')];
    const tls = { cert, key, ca: server.ca };
    const oauth2 = { tokenUrl: `${url}/token`, clientId: 'me', clientSecret: 's' };
    const service = await serviceFor(t, oneApi(url, { e: {} }, { api: { tls, oauth2 } }));
    assert.equal((await service.post('api/e')).status, 200);
    assert.equal(paths.at(-1), '/e Bearer t1');
    assert.ok(!JSON.stringify(service.logs).includes('PRIVATE KEY'));
  });

  it('`servername` names the upstream to itself and in its certificate, but not the token endpoint', async (t) => {
    const { ca, cert, key } = await made(t, 1, 'DNS:prices.internal');
    const names: unknown[] = [];
    const server = createServer({ cert, key }, (req, res) => {
      names.push((req.socket as TLSSocket & { servername?: unknown }).servername);
      res.end('7');
    });
    const url = `https://${await hostOf(t, server)}`;
    const status = async (api: object) => {
      const service = await startTestService(oneApi(url, { e: {} }, { api: { timeout: 2000, ...api } }));
      const answer = await service.post('api/e');
      await service.stop();
      return answer.status;
    };
    assert.equal(await status({ tls: { ca, servername: 'prices.internal' } }), 200);
    assert.deepEqual(names, ['prices.internal']);
    assert.equal(await status({ tls: { ca } }), 502);
    assert.equal(await status({ tls: { ca, servername: 'other.internal' } }), 502);
    const oauth2 = { tokenUrl: `${url}/token`, clientId: 'me', clientSecret: 's' };
    assert.equal(await status({ tls: { ca, servername: 'prices.internal' }, oauth2 }), 502);
    assert.equal(names.length, 1);
  });

  it('is 502 with the reason where the certificate has expired, is missing or of another authority', async (t) => {
    const server = await made(t);
    const client = await made(t, -1);
    const { url, paths } = await startServer(t, server, client.ca);
    const expired = await refusal(t, url, { cert: client.cert, key: client.key, ca: server.ca });
    assert.equal(expired.warned, 'apis[0].tls.cert: has expired');
    assert.match(expired.reason, /^network: GET it failed: /);
    assert.match((await refusal(t, url, { ca: server.ca })).reason, /^network: GET it failed: /);
    const untrusted = 'network: GET it failed: its certificate is of no authority that this process trusts';
    assert.ok((await refusal(t, url, { ca: client.ca })).reason.startsWith(untrusted));
    assert.ok((await refusal(t, url, undefined)).reason.startsWith(untrusted));
    assert.deepEqual(paths, []);
  });

  it('an upstream that speaks HTTP/2 only is named so', async (t) => {
    const { ca, cert, key } = await made(t);
    const host = await hostOf(t, createSecureServer({ cert, key, allowHTTP1: false }));
    const what = 'it speaks HTTP/2 only, which this service does not (ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL)';
    assert.equal((await refusal(t, `https://${host}`, { ca })).reason, `network: GET it failed: ${what}`);
  });

  it('an upstream that speaks TLS 1.1 only is named so', async (t) => {
    const { ca, cert, key } = await made(t);
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    const host = await hostOf(t, createServer({ cert, key, ...old }));
    const what = /^network: GET it failed: it speaks no TLS of version 1\.2 or later \(ERR_SSL_/;
    assert.match((await refusal(t, `https://${host}`, { ca })).reason, what);
  });

  it('an upstream whose root is not beside the intermediate in ca is named so', async (t) => {
    const { root, intermediate, cert, key } = await chainFor(t, 'IP:127.0.0.1');
    const server = createServer({ cert: cert + intermediate, key }, (_, res) => {
      res.setHeader('Content-Type', 'application/json').end('7');
    });
    const url = `https://${await hostOf(t, server)}`;
    const what =
      'its certificate leads to one that is not in ca: write the root there, beside the intermediate (UNABLE_TO_GET_ISSUER_CERT)';
    assert.equal((await refusal(t, url, { ca: intermediate })).reason, `network: GET it failed: ${what}`);
    // As a variable of Docker has it: each line ends in the characters \ and n.
    const ca = root.replaceAll('\n', '\\n');
    const service = await serviceFor(t, oneApi(url, { e: {} }, { api: { tls: { ca } } }));
    assert.equal((await service.post('api/e')).status, 200);
  });

  it('is refused where it cannot be used, by the name of the field and without the key', async (t) => {
    const [one, other] = [await made(t), await made(t)];
    const problem = (tls: object, url = 'https://127.0.0.1:1') =>
      startTestService(oneApi(url, { e: {} }, { api: { tls } })).then(
        () => assert.fail('it started'),
        (error: Error) => error.message.replace(/ \(line \d+\)/, '').trim(),
      );
    const unusable =
      'apis[0].tls: cannot be used: cert, key and ca must be PEM texts, and cert be the certificate of key';
    const file = 'apis[0].tls.key: must be the text in PEM, not the name of a file: have it come from a variable';
    const noPem = '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----';
    for (const [tls, line, url] of [
      [{ cert: one.cert, key: other.key }, unusable],
      [{ ca: noPem }, unusable],
      [{ cert: one.cert }, 'apis[0].tls.key: is missing: cert and key go together'],
      [{ key: one.key }, 'apis[0].tls.cert: is missing: cert and key go together'],
      [{ ca: one.ca }, 'apis[0].tls: needs an https URL', 'http://127.0.0.1:1'],
      [{ cert: one.cert, key: './key.pem' }, file],
    ] as const)
      assert.ok((await problem(tls, url)).includes(line), line);
  });

  it('is warned of where ca has no root, of an upstream and of the state', async (t) => {
    const { root, intermediate } = await chainFor(t, 'IP:127.0.0.1');
    const found = async (ca: string) => {
      const state = { type: 'redis', url: 'rediss://127.0.0.1', tls: { ca } };
      const config = oneApi('https://127.0.0.1:1', { e: {} }, { settings: { state }, api: { tls: { ca } } });
      return (await warningsOf(config)).filter((line) => line.includes('tls.ca'));
    };
    const message = 'holds no root certificate, so that no server is trusted: add the one that signed it';
    assert.deepEqual(await found(intermediate), [`settings.state.tls.ca: ${message}`, `apis[0].tls.ca: ${message}`]);
    assert.deepEqual(await found(intermediate + root), []);
    assert.deepEqual(await found((intermediate + root).replaceAll('\n', '\\n')), []);
  });
});
