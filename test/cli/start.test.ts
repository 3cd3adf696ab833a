/** `start` serves, says what stops it in one line per error, and obeys signals. */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { silentLog } from '../../plugins-sdk/log.ts';
import { startService } from '../../service/index.ts';
import { packageVersion } from '../../service/surroundings.ts';
import { hostOf } from '../support/https.ts';
import { eventually } from '../support/wait.ts';
import { failed, folderWith, runCli } from './run.ts';
import { ADDRESS, configText, endpointId, KEY, MNEMONIC, specifications } from './service-config.ts';
import { heldUpstream, lastLine, postTo, startIn, TIME, urlOf, withPlugin } from './started.ts';

const { eth, all } = specifications();

describe('start', { concurrency: 4 }, () => {
  it('logs the address, the signer, one line per endpoint and the stages of a request, no secret, and serves until SIGTERM, the explorer, too', async (t) => {
    const config = configText(undefined, 'settings: { explorer: true }');
    const running = await startIn(t, { 'c.yaml': config }, { LOG_LEVEL: 'trace' });
    await running.output(lastLine);
    const health = await fetch(`${await urlOf(running)}/health`);
    assert.deepEqual(await health.json(), { status: 'ok', node: ADDRESS });
    // The explorer is bundled by the program that is itself a bundle.
    const page = await (await fetch(`${await urlOf(running)}/`)).text();
    assert.match(page, /<style>[^<]{20}/);
    assert.match(page, /<script>[^<]{20}/);
    const { code, signal, stdout, stderr } = await running.stop();
    assert.deepEqual([code, signal, stderr], [0, null, '']);
    assert.ok(!stdout.includes(KEY.slice(2)));
    const written = stdout.trimEnd().split('\n');
    for (const line of written) assert.match(line, new RegExp(`^${TIME} (INFO|WARN|DEBUG|TRACE) \\S`));
    assert.ok(written.some((line) => line.includes(' DEBUG stage ')));
    const lines = written.filter((line) => / (INFO|WARN) /.test(line));
    const texts = lines.map((line) => line.replace(new RegExp(`^${TIME} (INFO|WARN) `), ''));
    assert.match(texts[0] ?? '', new RegExp(`^signed-data-proxy ${packageVersion()} config=/\\S+/c\\.yaml$`));
    assert.match(texts[1] ?? '', /^listening on http:\/\/127\.0\.0\.1:\d+$/);
    assert.match(texts[2] ?? '', new RegExp(`^signer ${ADDRESS} backend=secp256k1$`));
    const ids = texts.filter((text) => text.startsWith('prices/'));
    assert.deepEqual(ids, [`prices/eth ${endpointId(eth)}`, `prices/all ${endpointId(all)}`]);
    assert.deepEqual(texts.slice(-2), ['stopping signal=SIGTERM', 'stopped']);
  });

  it('logs JSON for machines, as .env may ask, traces the stages of a request with LOG_LEVEL=debug or trace, and never logs a secret', async (t) => {
    const files = { 'c.yaml': configText(), '.env': 'LOG_FORMAT=json\n' };
    const running = await startIn(t, files, { LOG_LEVEL: 'trace', SERVICE_MNEMONIC: MNEMONIC });
    await running.output(/"msg":"prices\/all/);
    const [, url] = await running.output(/"msg":"listening on (http:[^"]+)"/);
    await postTo(url, endpointId(all));
    await running.output(/"level":"debug",[^\n]*"msg":"stage validate"/);
    running.child.kill('SIGINT');
    const { code, stdout, stderr } = await running.ended;
    assert.equal(code, 0);
    assert.ok(!`${stdout}${stderr}`.includes(KEY.slice(2)));
    assert.ok(!`${stdout}${stderr}`.includes(MNEMONIC));
    const lines = Array.from(stdout.trimEnd().split('\n'), (line) => JSON.parse(line));
    const { time, ...line } = lines.find(({ msg }) => msg.startsWith('prices/eth'));
    assert.match(time, new RegExp(`^${TIME}$`));
    assert.deepEqual(line, { level: 'info', msg: `prices/eth ${endpointId(eth)}` });
    assert.deepEqual(lines.at(-2), { ...lines.at(-2), level: 'info', msg: 'stopping', signal: 'SIGINT' });
  });
});

describe('what stops start-up is one line per error on stderr and exit code 1', { concurrency: 4 }, () => {
  const start = async (t: TestContext, files: Record<string, string>, env: Record<string, string>) => {
    const cwd = await folderWith(t, files);
    return { cwd, ended: await runCli(t, ['start', '-c', 'c.yaml'], { cwd, env }) };
  };
  const key = { SERVICE_PRIVATE_KEY: KEY };

  it('a file that is not there', async (t) => {
    const { cwd, ended } = await start(t, {}, key);
    assert.deepEqual(ended, failed(`${join(cwd, 'c.yaml')}: file not found`));
  });

  it('no signer', async (t) => {
    const missing = 'SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC must be set';
    const { cwd, ended } = await start(t, { 'c.yaml': configText() }, {});
    const env = join(cwd, '.env');
    assert.deepEqual(ended, failed(`${missing}; there is no ${env}: start where it is, or name one with --env`));
    await writeFile(env, `SERVICE_PRIVATE_KEY=${KEY}\n`, { mode: 0o600 });
    const empty = await runCli(t, ['start', '-c', 'c.yaml'], { cwd, env: { SERVICE_PRIVATE_KEY: '' } });
    assert.deepEqual(empty, failed(`${missing}; ${env} was read, and the environment wins over it`));
    const other = join(cwd, 'other.env');
    await writeFile(other, 'HOST=a.example\n', { mode: 0o600 });
    const named = await runCli(t, ['start', '-c', 'c.yaml', '--env', 'other.env'], { cwd });
    assert.deepEqual(named, failed(`${missing}; ${other} was read, and the environment wins over it`));
  });

  it('a bad private key, which is not shown', async (t) => {
    const rule = 'SERVICE_PRIVATE_KEY must be 32 bytes of hex, not zero and below the order of secp256k1';
    const { ended } = await start(t, { 'c.yaml': configText() }, { SERVICE_PRIVATE_KEY: '0x1234' });
    assert.deepEqual(ended, failed(rule));
  });

  it('a variable that is not set', async (t) => {
    const { ended } = await start(t, { 'c.yaml': configText(`https://\${HOST_OF_API}`) }, key);
    assert.deepEqual([ended.code, ended.stdout], [1, '']);
    assert.match(ended.stderr, /^error: .*HOST_OF_API.*\n$/);
  });

  it('several errors in the config', async (t) => {
    const text = configText()
      .replace('encoding:', 'encodign:')
      .replace('name: q,', 'nmae: q,')
      .replace('port: 0', 'port: 70000');
    const { ended } = await start(t, { 'c.yaml': text }, key);
    assert.deepEqual([ended.code, ended.stdout], [1, '']);
    const lines = ended.stderr.trimEnd().split('\n');
    assert.ok(lines.length >= 3, ended.stderr);
    for (const line of lines) assert.match(line, /^error: (server|apis)[^ ]*: /);
  });

  it('an invalid LOG_LEVEL', async (t) => {
    const { ended } = await start(t, { 'c.yaml': configText() }, { ...key, LOG_LEVEL: 'loud' });
    const choices = 'trace, debug, info, warn, error, fatal, silent';
    assert.deepEqual(ended, failed(`LOG_LEVEL must be one of ${choices}, not "loud"`));
  });

  it('a port in use', async (t) => {
    const host = await hostOf(t, createServer());
    const why = 'the port is in use: end what has it, or set another server.port';
    const cwd = await folderWith(t, { 'c.yaml': configText().replace('port: 0', `port: ${host.split(':')[1]}`) });
    const started = startService({ file: join(cwd, 'c.yaml'), env: key, log: silentLog });
    await assert.rejects(started, { message: `cannot listen on ${host}: ${why}` });
  });

  it('a plugin that throws several lines', async (t) => {
    const { ended } = await start(t, withPlugin('throw new Error("one\\ntwo");'), key);
    assert.deepEqual([ended.code, ended.stdout], [1, '']);
    assert.match(ended.stderr, /^error: settings\.plugins\[0\][^\n]*: [^\n]+\n$/);
  });
});

describe('signals', { concurrency: 4 }, () => {
  /** An upstream that answers when told, behind a service that is in the middle of a request. */
  async function midRequest(t: TestContext) {
    const { url: base, arrival } = await heldUpstream(t);
    const running = await startIn(t, { 'c.yaml': configText(base) });
    const id = endpointId(specifications(base).eth);
    const response = postTo(await urlOf(running), id);
    return { running, id, response, upstream: await arrival };
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`${signal} lets a request in flight finish, however often it is repeated`, async (t) => {
      const { running, id, response, upstream } = await midRequest(t);
      running.child.kill(signal);
      await running.output(new RegExp(`stopping signal=${signal}\\n`));
      running.child.kill('SIGTERM');
      running.child.kill('SIGINT');
      // It goes on accepting for a moment, and no longer.
      const health = `${await urlOf(running)}/health`;
      await eventually(async () => !(await fetch(health).catch(() => undefined)), 'the port to be closed');
      upstream.setHeader('Content-Type', 'application/json').end('{"price": 2}');
      const answer = await response;
      const body: { endpointId: string } = JSON.parse(await answer.text());
      assert.deepEqual([answer.status, body.endpointId], [200, id]);
      const { code, stdout, stderr } = await running.ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /INFO stopped\n$/);
      assert.equal(stdout.match(/stopping/g)?.length, 1);
    });
  }

  it('one that comes while the service starts ends it cleanly', async (t) => {
    const running = await startIn(
      t,
      withPlugin(`console.log('loading'); await new Promise((done) => setTimeout(done, 60_000));`),
    );
    await running.output(/loading/);
    running.child.kill('SIGINT');
    const { code, stderr } = await running.ended;
    assert.deepEqual([code, stderr], [0, '']);
  });
});
