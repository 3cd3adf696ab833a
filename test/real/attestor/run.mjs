// One service, one upstream with TLS, one real attestor: see README.md.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createTlsServer } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startAttestor, startGateway } from './attestor.mjs';
import { makeCertificates } from './certificates.mjs';

const project = resolve(process.argv[2] ?? fileURLToPath(new URL('../../..', import.meta.url)));
const HOST = 'localhost';
const API_KEY = 'Bearer upstream-secret';
const CLAIMS = 20;

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Answers with the price, or with what it was sent, to whoever has the key. */
async function startUpstream({ certificate, key }) {
  const server = createTlsServer({ cert: certificate, key }, async (req, res) => {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    const authorized = req.headers.authorization === API_KEY;
    const body = { method: req.method, path: req.url, sent: Buffer.concat(chunks).toString('utf8'), usd: 2064.01 };
    res.writeHead(authorized ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise((done) => server.listen(0, HOST, done));
  return { url: `https://${HOST}:${server.address().port}`, server };
}

function configOf(port, upstream, gateway, attestor) {
  const responseMatches = [{ type: 'regex', value: '"usd":\\s*(?<price>[\\d.]+)' }];
  const query = [{ name: 'ids' }, { name: 'X-Session', in: 'header', secret: true, fixed: 'session-secret' }];
  const body = [{ name: 'q', in: 'body' }, ...query];
  const encoding = { type: 'uint256', path: '$.usd', times: '1e18' };
  return {
    version: '1.0',
    server: { port },
    settings: { proof: { type: 'reclaim', gatewayUrl: gateway, attestors: [attestor] } },
    apis: [
      {
        name: 'api',
        url: upstream,
        headers: { Authorization: API_KEY },
        auth: { type: 'free' },
        endpoints: [
          { name: 'raw', path: '/p', parameters: query, responseMatches },
          { name: 'encoded', path: '/p', parameters: [...query, { name: 'v' }], encoding, responseMatches },
          { name: 'path', path: '/of/{id}', parameters: [{ name: 'id', in: 'path', required: true }], responseMatches },
          { name: 'post', path: '/p', method: 'POST', parameters: body, responseMatches },
          { name: 'put', path: '/p', method: 'PUT', parameters: body, responseMatches },
          { name: 'patch', path: '/p', method: 'PATCH', parameters: body, responseMatches },
          { name: 'unmatched', path: '/p?u', responseMatches: [{ type: 'regex', value: '"eur"' }] },
        ],
      },
    ],
  };
}

/** Takes from the log what endpoints are called, and what is wrong. */
function follow(stdout, ids, warnings) {
  let buffered = '';
  stdout.on('data', (chunk) => {
    const lines = (buffered + chunk).split('\n');
    buffered = lines.pop() ?? '';
    for (const line of lines) {
      const { level, msg, reason } = JSON.parse(line);
      const [, name, id] = /^api\/(\S+) (0x[0-9a-f]{64})$/.exec(msg) ?? [];
      if (name) ids[name] = id;
      if (level === 'warn' || level === 'error') warnings.push(reason ?? msg);
    }
  });
}

/** The service as an operator starts it. */
async function startService(folder, config) {
  const file = join(folder, 'config.yaml');
  // JSON is YAML.
  await writeFile(file, JSON.stringify(config));
  const child = spawn(process.execPath, ['cli/bin.js', 'start', '-c', file], {
    cwd: project,
    env: {
      PATH: process.env.PATH,
      LOG_FORMAT: 'json',
      SERVICE_PRIVATE_KEY: '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
      NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ids = {};
  const warnings = [];
  follow(child.stdout, ids, warnings);
  const url = `http://127.0.0.1:${config.server.port}`;
  for (let attempt = 0; ; attempt += 1) {
    const healthy = await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    // The log may be a little behind.
    if (healthy && Object.keys(ids).length === config.apis[0].endpoints.length) break;
    assert.ok(attempt < 200 && child.exitCode === null, 'the service did not start');
    await new Promise((done) => setTimeout(done, 100));
  }
  const post = async (name, parameters = {}) => {
    const response = await fetch(`${url}/endpoints/${ids[name]}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ parameters }),
    });
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer;
  };
  return { child, post, warnings };
}

/** What the service logs is out within half a second. */
async function until(condition) {
  for (let attempt = 0; attempt < 100 && !condition(); attempt += 1) await new Promise((done) => setTimeout(done, 20));
}

/** By the attestor's own library. */
async function verify(core, { claim, signatures }) {
  assert.equal(core.getIdentifierFromClaimInfo({ ...claim }), claim.identifier);
  const claimSignature = Buffer.from(signatures.claimSignature.slice(2), 'hex');
  await core.assertValidClaimSignatures({ claim, signatures: { ...signatures, claimSignature } });
}

function summary(times) {
  const sorted = times.map(Math.round).sort((a, b) => a - b);
  return `${sorted.length} claims: ${sorted[0]}–${sorted.at(-1)} ms, median ${sorted[Math.floor(sorted.length / 2)]} ms`;
}

const folder = await mkdtemp(join(tmpdir(), 'attestor-'));
const certificates = await makeCertificates(HOST);
await writeFile(join(folder, 'ca.pem'), certificates.ca);
const upstream = await startUpstream(certificates);
const attestor = await startAttestor(await freePort(), certificates.ca);
const gateway = await startGateway(attestor);
const address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const service = await startService(folder, configOf(await freePort(), upstream.url, gateway.url, address));
let failures = 0;

async function check(name, run) {
  try {
    await run();
    console.log(`ok      ${name}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED  ${name}: ${error instanceof Error ? error.message : error}`);
    console.log(`  service: ${service.warnings.at(-1)}`);
  }
}

const proven = [
  ['raw', { ids: 'eth' }],
  ['raw', {}],
  ['raw', { ids: "a b&c=%é😀'" }],
  ['encoded', { ids: 'eth' }],
  ['path', { id: 'x/y ü' }],
  ['post', { q: { nested: [1, 'é', null, 'a\nb'] } }],
  ['put', { q: '"quoted" \\' }],
  ['patch', { q: 1.5, ids: 'eth' }],
];
for (const [name, parameters] of proven) {
  await check(`${name} ${JSON.stringify(parameters)} carries a proof that the attestor's library accepts`, async () => {
    const answer = await service.post(name, parameters);
    assert.ok(answer.proof, 'no proof');
    await verify(attestor.core, answer.proof);
    assert.equal(JSON.parse(answer.proof.claim.context).extractedParameters.price, '2064.01');
    assert.doesNotMatch(JSON.stringify(answer.proof), /secret/);
  });
}
await check('a pattern that does not match: no proof, and the answer', async () => {
  const answer = await service.post('unmatched');
  assert.equal(answer.rawData.usd, 2064.01);
  assert.ok(!('proof' in answer));
  await until(() => service.warnings.length > 0);
  assert.deepEqual(service.warnings, ['gateway status 502']);
});
gateway.times.length = 0;
await check(`${CLAIMS} one after the other`, async () => {
  for (let i = 0; i < CLAIMS; i += 1) assert.ok((await service.post('encoded', { v: i })).proof, 'no proof');
});
console.log(`        ${summary(gateway.times)}`);
gateway.times.length = 0;
await check(`${CLAIMS} at once`, async () => {
  const answers = Array.from({ length: CLAIMS }, (_, i) => service.post('encoded', { v: `at once ${i}` }));
  for (const { proof } of await Promise.all(answers)) assert.ok(proof, 'no proof');
});
console.log(`        ${summary(gateway.times)}`);

service.child.kill();
await new Promise((done) => service.child.once('exit', done));
await rm(folder, { recursive: true });
process.exit(failures === 0 ? 0 : 1);
