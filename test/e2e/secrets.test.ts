/** Nothing secret is in the log or in a response, whatever happens. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { type Service, startService } from '../../service/index.ts';
import { createLog, type LogSettings } from '../../service/log.ts';
import { finished, submitted } from '../support/async.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { notes, pluginFile } from '../support/plugin-files.ts';
import { openRaw } from '../support/raw-http.ts';
import { oneApi, TEST_KEY } from '../support/service.ts';
import { faults, startUpstream, type Upstream } from '../support/upstream.ts';
import { termsOn } from '../support/x402.ts';

/** What must never be seen outside; each is found in whatever form it might take. */
const secrets = {
  upstreamHeader: 'Bearer upstream-header-0001',
  fixedVariable: 'fixed-variable-0002',
  fixedInText: 'fixed-in-text-0003',
  apiKey: 'client-api-key-0004',
  wrongKey: 'client-wrong-key-0005',
  queryValue: 'query value/0006?',
  secretQuery: 'secret-query-0007',
  pathValue: 'path-value-0008',
  headerValue: 'header-value-0009',
  cookieValue: 'cookie-value-0010',
  bodyValue: 'body-value-0011',
  defaultSecret: 'default-secret-0012',
  paymentProof: `0x${'ab13'.repeat(32)}`,
  badProof: 'bad-proof-0014',
  authorization: 'Basic client-authorization-0015',
  upstreamText: 'upstream-text-0016',
  privateKey: TEST_KEY,
  urlQuery: 'url-query-0017',
  clientCookie: 'client-cookie-0018',
  undeclared: 'undeclared-0019',
} as const;

/** Forms in which a secret could show: as it is, percent-encoded, as base64 or hex, without 0x. */
function forms(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const form = new URLSearchParams({ a: secret }).toString().slice(2);
  const plain = [secret, secret.replace(/^0x/, ''), encodeURIComponent(secret), form];
  return [...new Set([...plain, bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex')])];
}

const PARAMETERS = [
  { name: 'query' },
  { name: 'hidden', secret: true },
  { name: 'path', in: 'path', required: true },
  { name: 'X-Client', in: 'header' },
  { name: 'session', in: 'cookie' },
  { name: 'text', in: 'body' },
  { name: 'pinned', fixed: `\${FIXED}` },
  { name: 'X-Pinned', in: 'header', fixed: `Token \${FIXED_IN_TEXT}!` },
  { name: 'X-Default', in: 'header', default: `\${DEFAULT}`, secret: true },
];

const X402 = termsOn({ chainId: 1, url: `http://127.0.0.1:1/v3/${secrets.urlQuery}` }, 1n);

for (const format of ['text', 'json'] as const) {
  describe(`nothing secret is in the log (${format}, all levels) or in a response`, () => {
    const lines: string[] = [];
    const answers: string[] = [];
    const pollIds: string[] = [];
    let upstream: Upstream;
    let service: Service;
    let folder: string;
    let ids: Readonly<Record<string, string>>;

    before(async () => {
      upstream = await startUpstream();
      folder = await mkdtemp(join(tmpdir(), 'sdp-secrets-'));
      const encoding = { type: 'uint8', path: '$.price' };
      const server = { port: 0, rateLimit: { max: 1_000_000 } };
      const plugged = { maxConcurrentApiCalls: 3, plugins: [{ source: './watch.mjs' }] };
      const api = { headers: { Authorization: `\${UPSTREAM_AUTH}` }, timeout: 1500 };
      const blocks = {
        sync: { encoding },
        raw: {},
        async: { encoding, mode: 'async' },
        stream: { encoding, mode: 'stream' },
        wild: { encoding: { type: '*', path: '*', times: '*' } },
        cached: { encoding, cache: { maxAge: 60_000 } },
        keyed: { auth: { type: 'apiKey', keys: [secrets.apiKey] } },
        paid: { auth: X402 },
      };
      const endpoints = Object.entries(blocks).map(([name, block]) => {
        return [name, { path: `/${name}/{path}`, method: 'POST', parameters: PARAMETERS, ...block }] as const;
      });
      const more = { version: '1.0', server, settings: plugged, api };
      const config = oneApi(upstream.url, Object.fromEntries(endpoints), more);
      const watch = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign', 'onResponseSent', 'onError'];
      const hooks = watch.map((hook) => `${hook}(context) { note('${hook}', JSON.stringify(context)); }`).join(', ');
      await writeFile(join(folder, 'watch.mjs'), pluginFile('watch', hooks));
      const file = join(folder, 'config.yaml');
      await writeFile(file, stringify(config));
      const settings: LogSettings = { level: 'trace', format, colour: false };
      const log = createLog(settings, { write: (line) => void lines.push(line) });
      const env = {
        LOG_LEVEL: 'trace',
        SERVICE_PRIVATE_KEY: secrets.privateKey,
        UPSTREAM_AUTH: secrets.upstreamHeader,
        FIXED: secrets.fixedVariable,
        FIXED_IN_TEXT: secrets.fixedInText,
        DEFAULT: secrets.defaultSecret,
      };
      service = await startService({ file, env, log });
      const announced = lines.join('').matchAll(/api\/(\w+) (0x[0-9a-f]{64})/g);
      ids = Object.fromEntries([...announced].map(([, name, id]) => [name, id]));
    });
    after(async () => {
      await service.stop();
      await upstream.close();
      await rm(folder, { recursive: true });
    });

    const parameters = {
      query: secrets.queryValue,
      hidden: secrets.secretQuery,
      path: secrets.pathValue,
      'X-Client': secrets.headerValue,
      session: secrets.cookieValue,
      text: secrets.bodyValue,
      undeclared: secrets.undeclared,
    };

    async function post(endpoint: string, sent: unknown = { parameters }, headers: Record<string, string> = {}) {
      const response = await fetch(`${service.url}/endpoints/${ids[endpoint]}`, {
        method: 'POST',
        headers: { ...JSON_HEADERS, Authorization: secrets.authorization, Cookie: secrets.clientCookie, ...headers },
        body: typeof sent === 'string' ? sent : JSON.stringify(sent),
      });
      const copy = response.clone();
      answers.push(`${JSON.stringify([...copy.headers])}${await copy.text()}`);
      return response;
    }

    const upstreams = {
      good: faults.json({ price: 7 }),
      'echoes in its text': faults.json({ price: secrets.upstreamText }),
      'has no value': faults.json({ [secrets.upstreamText]: 1 }),
      'fails with a text': faults.json({ error: secrets.upstreamText }, 500),
      redirects: faults.redirect(`https://example.com/${secrets.upstreamText}`),
      'answers no JSON': faults.text(`<p>${secrets.upstreamText}`),
      'is too big': faults.big(1024 * 1024 + 1),
      hangs: faults.hang(),
      resets: faults.reset(),
      'closes half-way': faults.closeHalfWay(),
      'speaks no HTTP': faults.raw(`${secrets.upstreamText}\r\n\r\n`),
      'has a bad header': faults.raw(`HTTP/1.1 200 OK\r\nBad ${secrets.upstreamText}: x\r\n\r\n`),
    };

    it('whatever the upstream does', async () => {
      for (const [what, handler] of Object.entries(upstreams)) {
        upstream.on('*', handler);
        const answered = Promise.all(['sync', 'stream', 'cached'].map(async (name) => (await post(name)).status));
        const submission = await submitted(await post('async'));
        const statuses = await answered;
        pollIds.push(submission.requestId);
        const record = await finished(service, submission);
        answers.push(JSON.stringify({ ...record, requestId: undefined, pollUrl: undefined }));
        const good = what === 'good';
        assert.deepEqual(statuses, good ? [200, 200, 200] : [502, 502, 200], what);
        assert.equal(record.status, good ? 'complete' : 'failed', what);
      }
    });

    const { path: _, ...missing } = parameters;
    const proof = {
      txHash: secrets.paymentProof,
      expiresAt: Math.floor(Date.now() / 1000) + 60,
      signature: `0x${'ab13'.repeat(32)}1b`,
    };
    const badHeader = `${secrets.headerValue}\r\nx: y`;
    const coded = { _type: 'int256', _path: '$.price', _times: '1' };
    /** An endpoint, the parameters, and where they differ headers and the status. */
    const sent: readonly [string, object, Record<string, string>?, number?][] = [
      ['sync', missing],
      ['sync', { ...parameters, path: '..' }],
      ['sync', { ...parameters, session: `${secrets.cookieValue};x` }],
      ['sync', { ...parameters, 'X-Client': badHeader }],
      ['sync', { ...parameters, query: `${secrets.queryValue}\ud800` }],
      ['sync', [secrets.queryValue]],
      ['sync', parameters, { 'Content-Type': `text/${secrets.bodyValue}` }, 415],
      ['wild', parameters],
      ['wild', { ...parameters, ...coded, _type: 'nonsense' }],
      ['wild', { ...parameters, ...coded, _path: '$[?(@.x)]' }],
      ['wild', { ...parameters, ...coded, _times: 'nonsense' }],
      ['keyed', parameters, {}, 401],
      ['keyed', parameters, { 'X-Api-Key': secrets.wrongKey }, 401],
      ['keyed', parameters, { 'X-Api-Key': secrets.apiKey }, 200],
      ['paid', parameters, {}, 402],
      ['paid', parameters, { 'X-Payment-Proof': secrets.badProof }, 402],
      ['paid', parameters, { 'X-Payment-Proof': JSON.stringify(proof) }, 402],
    ];

    it('whatever the client does', async () => {
      upstream.on('*', upstreams.good);
      const refusals: [string, unknown, Record<string, string>, number][] = [
        ['sync', `{"parameters": {"query": "${secrets.queryValue}",}}`, {}, 400],
        ['sync', `{"parameters": {"query": "${secrets.queryValue.repeat(6000)}"}}`, {}, 413],
      ];
      for (const [name, given, headers = {}, status = 400] of sent)
        refusals.push([name, { parameters: given }, headers, status]);
      for (const [name, body, headers, status] of refusals) {
        const response = await post(name, body, headers);
        assert.equal(response.status, status, `${name} ${JSON.stringify(body).slice(0, 200)} ${await response.text()}`);
      }
      await fetch(`${service.url}/${secrets.pathValue}?q=${secrets.urlQuery}`);
      await fetch(`${service.url}/endpoints/${secrets.pathValue}?q=${secrets.urlQuery}`, { method: 'POST' });
      await fetch(`${service.url}/requests/${secrets.pathValue}?q=${secrets.urlQuery}`);
      await fetch(`${service.url}/requests/${secrets.pathValue}`, { method: 'DELETE' });
      const raw = openRaw(service.url);
      raw.write(`GET /${secrets.pathValue} HTTP/1.1\r\nX-Api-Key: ${secrets.apiKey}\r\nBad Header\r\n\r\n`);
      answers.push(await raw.closed);
    });

    it('when slots run out and when clients leave', async () => {
      upstream.on('*', faults.hang());
      const statuses = await Promise.all(Array.from({ length: 7 }, async () => (await post('sync')).status));
      assert.deepEqual(new Set(statuses), new Set([502, 503]));
      const options = { method: 'POST', headers: JSON_HEADERS, body: JSON.stringify({ parameters }) };
      const leaving = { ...options, signal: AbortSignal.timeout(60) };
      await fetch(`${service.url}/endpoints/${ids.sync}`, leaving).catch(() => undefined);
      await upstream.untilIdle();
    });

    it('neither as it is nor in another form', async () => {
      await service.stop();
      const log = lines.join('');
      for (const stage of ['validate', 'callApi', 'present', 'encode']) assert.match(log, new RegExp(`stage ${stage}`));
      assert.match(log, format === 'text' ? / 502 / : /"status":502/);
      const everything = { log, responses: answers.join('\n') };
      for (const [name, secret] of Object.entries(secrets)) {
        for (const form of forms(secret)) {
          for (const [where, text] of Object.entries(everything)) {
            const at = text.indexOf(form);
            assert.ok(at < 0, `${name} is in the ${where}: …${text.slice(Math.max(0, at - 300), at + 100)}…`);
          }
        }
      }
      for (const id of pollIds) assert.ok(!log.includes(id.slice(2, 34)), 'poll ids');
    });

    it("and no plugin sees the operator's, or what the auth methods own", () => {
      const all = JSON.stringify(notes.all);
      const operators = ['upstreamHeader', 'fixedVariable', 'fixedInText', 'defaultSecret', 'privateKey'] as const;
      const hidden = [...operators, 'apiKey', 'wrongKey', 'paymentProof', 'badProof'] as const;
      for (const name of hidden) assert.ok(!all.includes(secrets[name]), name);
      const later = JSON.stringify(notes.all.filter(({ topic }) => topic !== 'onHttpRequest'));
      assert.ok(!later.includes(secrets.secretQuery), 'secret parameters are for onHttpRequest only');
      assert.ok(later.includes(JSON.stringify(secrets.queryValue).slice(1, -1)), 'others are seen');
      for (const id of pollIds) assert.ok(!all.includes(id));
    });
  });
}
