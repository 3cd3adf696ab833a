import assert from 'node:assert/strict';
import { chmod, chown, lstat, mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { askControl, Control, controlPath } from '../../cli/service/control.ts';
import { definitions } from '../../cli/service/index.ts';
import { throwAwaySigning } from '../../cli/service/signers.ts';
import { loadConfig } from '../../config/index.ts';
import type { Operation } from '../../plugins-sdk/define.ts';
import { folderWith, runCli } from './run.ts';
import { KEY } from './service-config.ts';

const ASKED = { name: 'payments release', words: { id: `0x${'1'.repeat(64)}` } };
const uid = process.getuid?.() ?? 0;
const isRoot = uid === 0;

/** Temporary files of this test alone. */
async function ownTemporary(t: TestContext): Promise<string> {
  const folder = await folderWith(t);
  const { TMPDIR } = process.env;
  process.env.TMPDIR = folder;
  t.after(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  return folder;
}

async function loadedIn(t: TestContext, state?: object) {
  const upstream = { name: 'a', url: 'http://127.0.0.1:1', auth: { type: 'free' } };
  const endpoint = { name: 'e', path: '/p', encoding: { type: 'uint256', path: '$.price' } };
  const settings = state === undefined ? {} : { state };
  const config = { version: '1.0', server: { port: 0 }, apis: [{ ...upstream, endpoints: [endpoint] }], settings };
  const file = join(await folderWith(t, { 'c.yaml': JSON.stringify(config) }), 'c.yaml');
  const loaded = await loadConfig({
    file,
    env: { SERVICE_PRIVATE_KEY: KEY },
    builtins: definitions(throwAwaySigning()),
  });
  return { file, path: controlPath(file, loaded) };
}

/** A service that answers with its name; resolves with what it warns of. */
async function serve(t: TestContext, path: string, result: string) {
  const warned: unknown[] = [];
  const nothing = () => undefined;
  const log = {
    debug: nothing,
    info: nothing,
    error: nothing,
    warn: (_: string, fields = {}) => void warned.push(fields),
  };
  const control = new Control(path, log, () => [[ASKED.name, async () => [{ result }]]]);
  await control.open();
  t.after(() => control.close());
  return warned;
}

/** What somebody else has made before the service did. */
async function plant(t: TestContext, path: string) {
  const server = createServer({ allowHalfOpen: true }, (socket) =>
    socket.end('{"results":[{"result":"forged"}]}'),
  ).unref();
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await new Promise<void>((done) => server.listen(path, done));
  t.after(() => server.close());
  await chmod(path, 0o600);
}

const notFolder = (path: string) =>
  `${dirname(path)} is not a folder of this user alone: remove it, or set TMPDIR to another folder for service and command`;
const notSocket = (path: string) =>
  `${path} is not a socket of this user alone: use the command as the user of the service, or remove it`;

describe('the socket that commands ask', () => {
  it('is asked where it is of this user alone, in a folder of the same', async (t) => {
    const temporary = await ownTemporary(t);
    const { path } = await loadedIn(t);
    assert.equal(dirname(path), join(temporary, `signed-data-proxy-${uid}`));
    assert.equal(await askControl(path, ASKED), undefined);
    assert.deepEqual(await serve(t, path, 'one'), []);
    assert.deepEqual(await askControl(path, ASKED), [{ result: 'one' }]);
  });

  it('is not asked where others could have made it', async (t) => {
    await ownTemporary(t);
    const { path } = await loadedIn(t);
    await plant(t, path);
    await chmod(path, 0o660);
    await assert.rejects(askControl(path, ASKED), { message: notSocket(path) });
    await chmod(path, 0o600);
    await chmod(dirname(path), 0o711);
    await assert.rejects(askControl(path, ASKED), { message: notFolder(path) });
    assert.deepEqual(await serve(t, path, 'one'), [{ path, reason: notFolder(path) }]);
  });

  it('is not asked where it is of another user', { skip: !isRoot }, async (t) => {
    const temporary = await ownTemporary(t);
    const { file, path } = await loadedIn(t);
    await plant(t, path);
    await chown(path, 65534, 65534);
    await assert.rejects(askControl(path, ASKED), { message: notSocket(path) });
    await chown(dirname(path), 65534, 65534);
    const { code, stdout, stderr } = await runCli(t, ['payments', 'release', ASKED.words.id, '-c', file], {
      env: { TMPDIR: temporary },
    });
    assert.deepEqual({ code, stdout, stderr }, { code: 1, stdout: '', stderr: `error: ${notFolder(path)}\n` });
  });

  it('is one for each service, however deep the folders of their state are', async (t) => {
    const temporary = await ownTemporary(t);
    const deep = join(await folderWith(t), 'd'.repeat(60), 'é'.repeat(30));
    await mkdir(deep, { recursive: true });
    const services = await Promise.all(
      ['one', 'two'].map(async (name) => {
        const { path } = await loadedIn(t, { type: 'file', path: join(deep, name) });
        assert.equal(dirname(path), join(temporary, `signed-data-proxy-${uid}`));
        return { name, path };
      }),
    );
    for (const { name, path } of services) assert.deepEqual(await serve(t, path, name), []);
    for (const { name, path } of services) {
      assert.ok((await lstat(path)).isSocket());
      assert.deepEqual(await askControl(path, ASKED), [{ result: name }]);
    }
  });

  it('is not had where no path is short enough', async (t) => {
    const deep = join(await ownTemporary(t), 'd'.repeat(100));
    await mkdir(deep);
    process.env.TMPDIR = deep;
    const { path } = await loadedIn(t);
    const reason = `${path} is too long for a socket: set TMPDIR to a shorter path for service and command`;
    assert.deepEqual(await serve(t, path, 'one'), [{ path, reason }]);
    await assert.rejects(askControl(path, ASKED), { message: reason });
  });

  it('hears the payer, and what is refused is an error beside what was done', async (t) => {
    const temporary = await ownTemporary(t);
    const { file, path } = await loadedIn(t);
    const payer = `0x${'aA'.repeat(20)}`;
    const nothing = () => undefined;
    const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
    const run: Operation = async (words) => [{ result: `done for ${words.payer}` }, { refused: 'not this one' }];
    const control = new Control(path, log, () => [[ASKED.name, run]]);
    await control.open();
    t.after(() => control.close());
    const release = async (...more: string[]) => {
      const words = ['payments', 'release', ASKED.words.id, '-c', file, ...more];
      const { code, stdout, stderr } = await runCli(t, words, { env: { TMPDIR: temporary } });
      return { code, stdout, stderr };
    };
    const [done, wrong] = await Promise.all([release('--payer', payer), release('--payer', '0x12')]);
    const stdout = `result  done for ${payer}\n\nrefused  not this one\n`;
    assert.deepEqual(done, { code: 1, stdout, stderr: 'error: not this one\n' });
    const stderr = 'error: --payer must be an address: 0x and 40 hex digits\n';
    assert.deepEqual(wrong, { code: 1, stdout: '', stderr });
  });
});
