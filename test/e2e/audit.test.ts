/** Each answer leaves its line in the audit record, or the log says that it is lost. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, readlink, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { verifyResponse } from '../../verify/index.ts';
import { folderWith } from '../cli/run.ts';
import { finished, submitted } from '../support/async.ts';
import { auditLines, untilAudited } from '../support/audit.ts';
import { blockNamed, readPage } from '../support/docs.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { type Block, oneApi, serviceFor, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { SECOND, signerPlugin } from '../support/signer-plugin.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const encoding = { type: 'int256', path: '$.price', times: '1' };

/** A service that records what it signs in a folder that outlives it. */
async function setUp(
  t: TestContext,
  endpoints: Readonly<Record<string, Block>> = { plain: { encoding } },
  {
    audit = {},
    settings = {},
    sources = {},
  }: { audit?: Block; settings?: Block; sources?: Record<string, string> } = {},
) {
  const upstream = await upstreamFor(t, { '*': faults.json({ price: 7 }) });
  const folder = await folderWith(t);
  const path = join(folder, 'audit.jsonl');
  const { files, plugins } = pluginFiles(sources);
  const config = (changes: Block = {}) =>
    oneApi(upstream.url, endpoints, { settings: { ...settings, plugins, audit: { path, ...audit, ...changes } } });
  const service = await serviceFor(t, config(), { files });
  const { stop } = service;
  /** What is there once the service has stopped. */
  const recorded = async () => {
    await stop();
    return auditLines(path);
  };
  const post = (name = 'plain') => service.post(`api/${name}`);
  return { upstream, service, folder, path, config, recorded, stop, post };
}

async function answerOf(response: Response) {
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const answer = JSON.parse(text);
  const verified = verifyResponse(answer, { node: null });
  assert.ok(verified.ok);
  return { answer, digest: verified.digest, requestId: response.headers.get('x-request-id') };
}

describe('the audit record', () => {
  it('has a line for each answer: what was signed, by whom, for whom', async (t) => {
    const key = { name: 'ada', key: 'k'.repeat(32) };
    const { service, path, recorded } = await setUp(t, {
      plain: { encoding },
      keyed: { encoding, receipt: true, auth: { type: 'apiKey', keys: [key] }, parameters: [{ name: 'q' }] },
    });
    const plain = await answerOf(await service.post('api/plain'));
    const keyed = await answerOf(await service.post('api/keyed', { q: 'x' }, { 'X-Api-Key': key.key }));
    const of = (name: string, { answer, digest, requestId }: typeof plain) => ({
      ...{ requestId, endpoint: `api/${name}`, endpointId: service.ids[`api/${name}`] },
      ...{ digest, timestamp: answer.timestamp, signer: TEST_ADDRESS },
    });
    const lines = await recorded();
    assert.deepEqual(lines, [
      of('plain', plain),
      { ...of('keyed', keyed), requestHash: keyed.answer.receipt.requestHash, client: 'ada' },
    ]);
    const text = await readFile(path, 'utf8');
    const example = blockNamed(await readPage('docs/operate.md'), 'line');
    assert.deepEqual(Object.keys(JSON.parse(example)), Object.keys(JSON.parse(text.split('\n')[0] ?? '')));
    assert.ok(!text.includes(plain.answer.data) && !text.includes(plain.answer.signature));
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it('with values it has the answers, which can be verified years later', async (t) => {
    const { service, recorded } = await setUp(t, { raw: {}, plain: { encoding } }, { audit: { values: true } });
    const answers = [await answerOf(await service.post('api/raw')), await answerOf(await service.post('api/plain'))];
    const lines = await recorded();
    assert.deepEqual(
      lines.map(({ answer }) => answer),
      answers.map(({ answer }) => answer),
    );
    assert.ok(lines.every(({ answer }) => verifyResponse(answer, { node: TEST_ADDRESS }).ok));
  });

  it('has one for an async answer, with the id of the request and not that which opens the answer', async (t) => {
    const { service, path } = await setUp(t, { later: { encoding, mode: 'async' } });
    const response = await service.post('api/later');
    const requestId = response.headers.get('x-request-id');
    const at = await submitted(response);
    const record = await finished(service, at);
    const [line] = await untilAudited(path, 1);
    assert.deepEqual([line?.requestId, line?.timestamp], [requestId, record.timestamp]);
    assert.ok(!(await readFile(path, 'utf8')).includes(at.requestId));
  });

  it('has one for a streamed answer', async (t) => {
    const { service, recorded } = await setUp(t, { one: { encoding, mode: 'stream' } });
    assert.equal((await service.post('api/one')).status, 200);
    const [line, ...more] = await recorded();
    assert.deepEqual([line?.endpoint, line?.again, line?.given, more], ['api/one', undefined, undefined, []]);
  });

  it('says of an answer that is given again that its signature is no new one', async (t) => {
    const { service, upstream, recorded } = await setUp(t, { kept: { encoding, cache: { maxAge: 600_000 } } });
    let release = () => {};
    const waiting = new Promise<void>((resolve) => (release = resolve));
    upstream.on('/kept', (...request) => waiting.then(() => faults.json({ price: 7 })(...request)));
    // The second one waits for the call of the first, the third finds what it left.
    const together = [service.post('api/kept'), service.post('api/kept')];
    await upstream.untilRequested('/kept');
    release();
    const responses = [...(await Promise.all(together)), await service.post('api/kept')];
    const ids = responses.map(({ headers }) => headers.get('x-request-id'));
    const lines = await recorded();
    assert.equal(upstream.requests.length, 1);
    assert.deepEqual(lines.map(({ requestId }) => requestId).toSorted(), ids.toSorted());
    const [first] = lines;
    const kept = lines.map(({ digest, again }) => ({ digest, again }));
    assert.deepEqual(
      kept,
      [undefined, true, true].map((again) => ({ digest: first?.digest, again })),
    );
  });

  const withheld: Readonly<Record<string, readonly [mode: string, source: string]>> = {
    'was signed and then withheld': [
      'sync',
      `export default { name: 'no', setup: ({}) => ({ hooks: { approve: () => { throw new Error('no'); } } }) };`,
    ],
    'was signed when its mode had given up': [
      'hasty',
      `let [goOn, reach] = [];
      const reached = new Promise((resolve) => { reach = resolve; });
      globalThis.testGoOn = () => goOn();
      export default { name: 'no', modes: ['hasty'], setup: () => ({ hooks: {
        attest: () => new Promise((resolve) => { goOn = resolve; reach(); }),
        present: { hasty: async (run) => { run().catch(() => undefined); await reached; throw new Error('too slow'); } },
      } }) };`,
    ],
  };
  for (const [what, [mode, source]] of Object.entries(withheld))
    it(`has what ${what}`, async (t) => {
      const { post, recorded } = await setUp(t, { plain: { encoding, mode } }, { sources: { no: source } });
      const response = await post();
      assert.equal(response.status, 500);
      if (mode === 'hasty') Reflect.get(globalThis, 'testGoOn')();
      const [line, ...more] = await recorded();
      assert.deepEqual([line?.requestId, line?.given, more], [response.headers.get('x-request-id'), false, []]);
    });

  it('names all signers, and is of the answers that plugins sign, too', async (t) => {
    const settings = { signer: { type: 'environment', next: { type: 'kept', key: SECOND.privateKey } } };
    const sources = { kept: signerPlugin('audit') };
    const { post, recorded } = await setUp(t, { both: { encoding, signatures: true } }, { sources, settings });
    await answerOf(await post('both'));
    const [line] = await recorded();
    assert.deepEqual([line?.signer, line?.alsoSignedBy], [TEST_ADDRESS, [SECOND.address]]);
  });

  it('is off without a path, and has no line for what was not signed', async (t) => {
    const { service, upstream, recorded } = await setUp(t);
    upstream.on('/plain', faults.serverError());
    assert.equal((await service.post('api/plain')).status, 502);
    assert.deepEqual(await recorded(), []);
  });
});

describe('the file of the audit record', () => {
  it('goes on in a new one when a program for logs has moved it away', async (t) => {
    const { service, stop, folder, path } = await setUp(t);
    await answerOf(await service.post('api/plain'));
    await untilAudited(path, 1);
    await rename(path, join(folder, 'moved'));
    await answerOf(await service.post('api/plain'));
    await stop();
    for (const file of [path, join(folder, 'moved')]) assert.equal((await auditLines(file)).length, 1);
    // Where there is no /proc, nobody can say which files are open.
    const descriptors = await readdir('/proc/self/fd').catch(() => []);
    const open = await Promise.all(descriptors.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
    assert.deepEqual(
      open.filter((file) => file.startsWith(folder)),
      [],
    );
  });

  it('that ends within a line goes on with a line of its own', async (t) => {
    const { service, stop, path, config } = await setUp(t);
    const torn = join(path, '..', 'torn');
    await writeFile(torn, '{"time":"2026-01-01T00:00');
    assert.ok((await reload(service, config({ path: torn }))).done);
    const { digest } = await answerOf(await service.post('api/plain'));
    await stop();
    const [first, second, ...rest] = (await readFile(torn, 'utf8')).split('\n');
    assert.deepEqual([first, JSON.parse(second ?? '').digest, rest], ['{"time":"2026-01-01T00:00', digest, ['']]);
  });

  it('may be another one after a reload, which loses no line', async (t) => {
    const { service, stop, path, config } = await setUp(t);
    const other = `${path}2`;
    const before = await answerOf(await service.post('api/plain'));
    assert.ok((await reload(service, config({ path: other }))).done);
    const after = await answerOf(await service.post('api/plain'));
    assert.ok((await reload(service, config({ path: other, values: true, sync: true }))).done);
    const last = await answerOf(await service.post('api/plain'));
    await stop();
    const digests = async (file: string) => (await auditLines(file)).map(({ digest }) => digest);
    assert.deepEqual(await digests(path), [before.digest]);
    assert.deepEqual(await digests(other), [after.digest, last.digest]);
  });

  it('must be one that can be written: else the service does not start, and a reload changes nothing', async (t) => {
    const { service, folder, config } = await setUp(t);
    const at = (name: string) => join(folder, name);
    await mkdir(at('directory'));
    const missing = 'cannot be used (ENOENT): its directory does not exist: create it, or change path';
    for (const [path, why] of [
      [at('none/audit'), missing],
      [at('directory'), 'cannot be used (EISDIR): it is a directory: add the name of a file'],
      ['/dev/null', 'is no regular file: change path'],
    ] as const) {
      const { done, lines } = await reload(service, config({ path }));
      const line = `error plugin "audit" cannot start: settings.audit.path: ${path} ${why}`;
      assert.deepEqual([done, lines[0]], [false, line]);
    }
    // Not even root may write there.
    const { done, lines } = await reload(service, config({ path: '/sys/audit.jsonl' }));
    assert.equal(done, false);
    assert.match(lines[0] ?? '', /: \/sys\/audit\.jsonl cannot be used \((EACCES|EPERM|EROFS)\): /);
    await answerOf(await service.post('api/plain'));
    await assert.rejects(startTestService(config({ path: at('none/audit') })), {
      message: /^plugin "audit" cannot start: settings\.audit\.path: .+ \(ENOENT\): its directory does not exist/,
    });
  });
});

it('a file with something else in it is no audit record: neither a start nor a reload takes it', async (t) => {
  const { service, folder, config } = await setUp(t);
  const foreign = join(folder, 'customers.csv');
  await writeFile(foreign, 'name,key\n');
  const fault = `settings.audit.path: ${foreign} has something else in it, which does not begin with "{": choose another file`;
  const { done, lines } = await reload(service, config({ path: foreign }));
  assert.deepEqual([done, lines[0]?.includes(fault)], [false, true], lines[0]);
  await assert.rejects(startTestService(config({ path: foreign })), (error: Error) => error.message.includes(fault));
  assert.equal(await readFile(foreign, 'utf8'), 'name,key\n');
  const state = { type: 'file', path: join(folder, 'state') };
  const both = { ...config(), settings: { state, audit: { path: state.path } } };
  await assert.rejects(startTestService(both), /something else/);
  await writeFile(foreign, '');
  assert.ok((await reload(service, config({ path: foreign }))).done);
});
