/** Only the service's own user may ask it about payments. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { createServer, Server } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { Operation } from '../../plugins-sdk/define.ts';
import { silentLog } from '../../plugins-sdk/log.ts';
import { askControl, controlAt, controlPaths } from '../../service/control.ts';
import { folderWith, launch, PROGRAM, runCli } from './run.ts';

const ASKED = { name: 'payments release', words: { id: `0x${'1'.repeat(64)}` } };
const uid = process.getuid?.() ?? 0;
const isRoot = uid === 0;
const namespaces = spawnSync('unshare', ['-rm', 'mount', '--bind', '/tmp', '/run']).status === 0;
const withoutNamespaces = namespaces ? false : 'mount namespaces cannot be made here';

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

/** A config of which a command knows neither the key nor the header, and the socket of its service. */
async function configIn(t: TestContext, state?: { type: 'file'; path: string }) {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference to a variable
  const headers = { 'X-Key': '${UPSTREAM_KEY}' };
  const upstream = { name: 'a', url: 'http://127.0.0.1:1', auth: { type: 'free' }, headers };
  const endpoint = { name: 'e', path: '/p', encoding: { type: 'uint256', path: '$.price' } };
  const settings = state === undefined ? {} : { state };
  const config = { version: '1.0', server: { port: 0 }, apis: [{ ...upstream, endpoints: [endpoint] }], settings };
  const file = join(await folderWith(t, { 'c.yaml': JSON.stringify(config) }), 'c.yaml');
  return { file, path: controlPaths(file)[0] };
}

/** A service that answers with its name; resolves with what it warns of, and with what each reload does. */
async function serve(t: TestContext, path: string, result: string) {
  const warned: unknown[] = [];
  const log = { ...silentLog, warn: (_: string, fields = {}) => void warned.push(fields) };
  const control = controlAt(path, log, () => [[ASKED.name, async () => [{ result }]]]);
  await control.open();
  t.after(() => control.close());
  return { warned, open: control.open };
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

describe('the socket that commands ask', () => {
  it('is asked where it is of this user alone, in a folder of the same, and is made again if it was removed', async (t) => {
    const temporary = await ownTemporary(t);
    const { path } = await configIn(t);
    assert.equal(dirname(path), join(temporary, `signed-data-proxy-${uid}`));
    assert.equal(await askControl(path, ASKED), undefined);
    const { warned, open } = await serve(t, path, 'one');
    assert.deepEqual(await askControl(path, ASKED), [{ result: 'one' }]);
    await open();
    await rm(dirname(path), { recursive: true });
    await open();
    assert.deepEqual(await askControl(path, ASKED), [{ result: 'one' }]);
    assert.deepEqual(warned, []);
  });

  it('a connection that the system refuses ends neither the service nor the socket', async (t) => {
    await ownTemporary(t);
    const { path } = await configIn(t);
    const servers: Server[] = [];
    const { unref } = Server.prototype;
    t.mock.method(Server.prototype, 'unref', function (this: Server) {
      servers.push(this);
      return unref.call(this);
    });
    const { warned } = await serve(t, path, 'one');
    // What Node emits where a connection cannot be accepted, such as without memory for it.
    servers[0]?.emit('error', new Error('accept ENOMEM'));
    assert.deepEqual(warned, [{ path, detail: 'accept ENOMEM' }]);
    assert.deepEqual(await askControl(path, ASKED), [{ result: 'one' }]);
  });

  it('is not asked where others could have made it', async (t) => {
    await ownTemporary(t);
    const { path } = await configIn(t);
    await plant(t, path);
    await chmod(dirname(path), 0o720);
    await assert.rejects(askControl(path, ASKED), { message: notFolder(path) });
    assert.deepEqual((await serve(t, path, 'one')).warned, [{ path, detail: notFolder(path) }]);
  });

  it('is not asked where it is of another user', { skip: !isRoot }, async (t) => {
    const temporary = await ownTemporary(t);
    const { file, path } = await configIn(t);
    await plant(t, path);
    await chown(dirname(path), 65534, 65534);
    const { code, stdout, stderr } = await runCli(t, ['payments', ASKED.words.id, '--release', '-c', file], {
      env: { TMPDIR: temporary },
    });
    assert.deepEqual({ code, stdout, stderr }, { code: 1, stdout: '', stderr: `error: ${notFolder(path)}\n` });
  });

  it('is in the runtime directory where there is one, and root may ask that of another user', {
    skip: !isRoot,
  }, async (t) => {
    const runtime = await folderWith(t);
    const { file } = await configIn(t);
    process.env.RUNTIME_DIRECTORY = `${runtime}:/run/other`;
    t.after(() => delete process.env.RUNTIME_DIRECTORY);
    const [path] = controlPaths(file);
    assert.equal(dirname(path), runtime);
    assert.deepEqual((await serve(t, path, 'one')).warned, []);
    const ask = () => askControl(path, ASKED);
    for (const each of [path, runtime]) await chown(each, 65534, 65534);
    assert.deepEqual(await ask(), [{ result: 'one' }]);
    // Others than the user could have made it there.
    await chmod(runtime, 0o777);
    await assert.rejects(ask(), { message: notFolder(path) });
  });

  it('of the unit is found without a word, a key or a variable', { skip: withoutNamespaces }, async (t) => {
    const run = await folderWith(t);
    const { file } = await configIn(t);
    process.env.RUNTIME_DIRECTORY = join(run, 'signed-data-proxy');
    t.after(() => delete process.env.RUNTIME_DIRECTORY);
    await mkdir(process.env.RUNTIME_DIRECTORY, { mode: 0o700 });
    const [path] = controlPaths(file);
    assert.deepEqual((await serve(t, path, 'one')).warned, []);
    const program = [process.execPath, PROGRAM, 'payments', ASKED.words.id, '--release', '-c', file];
    const words = ['-rm', 'sh', '-c', 'mount --bind "$1" /run && shift && exec "$@"', 'sh', run, ...program];
    const { code, stdout, stderr } = await launch(t, 'unshare', words, { env: { RUNTIME_DIRECTORY: '' } }).ended;
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'result  one\n', stderr: '' });
  });

  it('is named where nobody listens', async (t) => {
    const temporary = await ownTemporary(t);
    const { file, path } = await configIn(t);
    const [, unit] = controlPaths(file);
    const { code, stdout, stderr } = await runCli(t, ['payments', ASKED.words.id, '-c', file], {
      env: { TMPDIR: temporary },
    });
    const error = `without settings.state only the running service knows, and none listens at ${path} or ${unit}`;
    assert.deepEqual({ code, stdout, stderr }, { code: 1, stdout: '', stderr: `error: ${error}\n` });
  });

  it('is not had where no path is short enough', async (t) => {
    const deep = join(await ownTemporary(t), 'd'.repeat(100));
    await mkdir(deep);
    process.env.TMPDIR = deep;
    const { path } = await configIn(t);
    const detail = `${path} is too long for a socket: set TMPDIR to a shorter path for service and command`;
    assert.deepEqual((await serve(t, path, 'one')).warned, [{ path, detail }]);
    await assert.rejects(askControl(path, ASKED), { message: detail });
  });

  it('hears the payer, and what is refused is an error beside what was done', async (t) => {
    const temporary = await ownTemporary(t);
    const { file, path } = await configIn(t);
    const payer = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
    const nothing = () => undefined;
    const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
    const run: Operation = async (words) => [{ result: `done for ${words.payer}` }, { refused: 'not this one' }];
    const control = controlAt(path, log, () => [[ASKED.name, run]]);
    await control.open();
    t.after(() => control.close());
    const release = async (...more: string[]) => {
      const words = ['payments', ASKED.words.id, '--release', '-c', file, ...more];
      const { code, stdout, stderr } = await runCli(t, words, { env: { TMPDIR: temporary } });
      return { code, stdout, stderr };
    };
    const [done, wrong] = await Promise.all([release('--payer', payer), release('--payer', '0x12')]);
    const stdout = `result  done for ${payer}\n\nrefused  not this one\n`;
    assert.deepEqual(done, { code: 1, stdout, stderr: 'error: not this one\n' });
    const rule = '<address> must be 0x and 40 hex digits, mixed-case only with the right checksum';
    const stderr = `error: option --payer ${rule}\n`;
    assert.deepEqual(wrong, { code: 1, stdout: '', stderr });
  });
});
