/** `verify` accepts what the service sends, and says why it refuses others. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { getBytes, keccak256, toUtf8Bytes } from 'ethers';
import { finished, submitted } from '../support/async.ts';
import { suite } from '../support/lifetime.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { digestOf, everyKind, endpointId as ID, JSON_TEXT, SIGNED_AT, WORD, wallet } from '../verify/setup.ts';
import { type Ended, folderWith, launch, launchCli, PROGRAM, runCli } from './run.ts';
import { configText } from './service-config.ts';

async function answer() {
  const signature = await wallet.signMessage(getBytes(digestOf(SIGNED_AT, '0x1234')));
  return { node: wallet.address, endpointId: ID, timestamp: SIGNED_AT, data: '0x1234', signature };
}

function accepted(lines: readonly string[]): Ended {
  return { code: 0, signal: null, stdout: lines.map((line) => `${line}\n`).join(''), stderr: '' };
}

function refused(message: string): Ended {
  return { code: 1, signal: null, stdout: '', stderr: `error: ${message}\n` };
}

/** Runs the command on a file with that text; error texts name the file. */
async function verifyText(t: TestContext, text: string | Buffer, ...options: string[]): Promise<Ended> {
  const cwd = await folderWith(t);
  await writeFile(join(cwd, 'a.json'), text);
  const ended = await runCli(t, ['verify', 'a.json', ...options], { cwd });
  return { ...ended, stderr: ended.stderr.replace(join(cwd, 'a.json'), 'FILE') };
}

describe('verify, with what the service sends', async () => {
  const service = await everyKind(suite);
  const hash = keccak256(toUtf8Bytes(JSON_TEXT));

  const report = (endpoint: string, { timestamp }: { timestamp: number }, data: string, note = '') => {
    const id = service.ids[`api/${endpoint}`] ?? '';
    return accepted([
      `Signer: ${TEST_ADDRESS}`,
      'Pinned: yes',
      `Digest: ${digestOf(timestamp, data, id)}`,
      `Endpoint ID: ${id}`,
      `Timestamp: ${new Date(timestamp * 1000).toISOString()} (${timestamp})`,
      `Signed data: ${data}${note}`,
    ]);
  };
  const rawNote = ' (hash of the canonical JSON of rawData)';

  it('an encoded answer', async (t) => {
    const text = await (await service.post('api/encoded')).text();
    const ended = await verifyText(t, text, '--node', TEST_ADDRESS.toLowerCase());
    assert.deepEqual(ended, report('encoded', JSON.parse(text), WORD));
  });

  it('a raw answer', async (t) => {
    const text = await (await service.post('api/raw')).text();
    const ended = await verifyText(t, text, '--node', TEST_ADDRESS, '--max-age', '600');
    assert.deepEqual(ended, report('raw', JSON.parse(text), hash, rawNote));
  });

  it('an SSE frame', async (t) => {
    const text = await (await service.post('api/framed')).text();
    assert.match(text, /^data: /);
    const ended = await verifyText(t, text, '--node', TEST_ADDRESS);
    assert.deepEqual(ended, report('framed', JSON.parse(text.slice(6)), WORD));
    assert.deepEqual(await verifyText(t, text.trim().replace('data: ', 'data:'), '--node', TEST_ADDRESS), ended);
  });

  it('a complete async record', async (t) => {
    const record = await finished(service, await submitted(await service.post('api/kept')));
    const { timestamp } = record;
    assert.ok(typeof timestamp === 'number');
    const ended = await verifyText(t, JSON.stringify(record), '--node', TEST_ADDRESS);
    assert.deepEqual(ended, report('kept', { timestamp }, hash, rawNote));
  });

  it('an async submission and an error are no answers', async (t) => {
    const pending = await (await service.post('api/async')).text();
    assert.deepEqual(
      await verifyText(t, pending),
      refused('FILE: the request is still pending: there is no answer yet'),
    );
    const error = await (await fetch(`${service.url}/endpoints/0x`, { method: 'POST' })).text();
    const message = 'FILE: the response is an error, not a signed answer: Endpoint not found';
    assert.deepEqual(await verifyText(t, error), refused(message));
  });
});

describe('verify', () => {
  const expected = accepted([
    `Signer: ${wallet.address}`,
    'Pinned: no, any signer was accepted; say with --node whose signature it must be',
    `Digest: ${digestOf(SIGNED_AT, '0x1234')}`,
    `Endpoint ID: ${ID}`,
    'Timestamp: 2026-01-01T00:00:00.000Z (1767225600)',
    'Signed data: 0x1234',
  ]);

  it('reads stdin', async (t) => {
    const shell = '"$0" "$1" verify - < "$2"';
    const cwd = await folderWith(t, { 'a.json': JSON.stringify(await answer()) });
    const words = [process.execPath, PROGRAM, join(cwd, 'a.json')];
    assert.deepEqual(await launch(t, 'sh', ['-c', shell, ...words]).ended, expected);
    assert.deepEqual(
      await launchCli(t, ['verify', '-']).ended,
      refused('stdin: neither a JSON object nor an SSE frame'),
    );
  });

  it('reads JSON that was reformatted, with a byte order mark', async (t) => {
    assert.deepEqual(await verifyText(t, `\ufeff\r\n${JSON.stringify(await answer(), undefined, 2)}\n`), expected);
  });

  it('reads an event with other fields and other line ends', async (t) => {
    const [head, tail] = JSON.stringify(await answer(), undefined, 1).split('\n "data"');
    const data = `${head}\n "data"${tail}`.split('\n').map((line) => `data: ${line}`);
    const text = [': hello', '', 'event: message', 'id: 1', ...data, '', ''];
    assert.deepEqual(await verifyText(t, text.join('\r\n')), expected);
    assert.deepEqual(await verifyText(t, text.join('\r')), expected);
  });

  it('reads an event whose JSON has line separators of Unicode, which end no line of it', async (t) => {
    const { data: _, ...rest } = await answer();
    const rawData = 'a\u2028b\u2029c';
    const digest = digestOf(SIGNED_AT, keccak256(toUtf8Bytes(JSON.stringify(rawData))));
    const signed = { ...rest, rawData, signature: await wallet.signMessage(getBytes(digest)) };
    const { code, stderr } = await verifyText(t, `data: ${JSON.stringify(signed)}\n\n`, '--node', wallet.address);
    assert.deepEqual([code, stderr], [0, '']);
  });

  it('refuses an old answer', async (t) => {
    const { code, stdout, stderr } = await verifyText(t, JSON.stringify(await answer()), '--max-age', '0');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^error: FILE: the response is \d+ seconds old, more than 0\n$/);
  });

  it('looks for the endpoint of an answer in a config, whatever the answer names', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText(), 'a.json': '{"endpointId":{"toString":1}}' });
    assert.deepEqual(
      await runCli(t, ['verify', 'a.json', '-c', 'c.yaml'], { cwd }),
      refused(`${join(cwd, 'a.json')}: the response has no node and no signature`),
    );
  });

  it('refuses bytes that are no text', async (t) => {
    assert.deepEqual(await verifyText(t, Buffer.from([0x7b, 0xff, 0x7d])), refused('FILE: is not UTF-8 text'));
  });

  it('names a file that cannot be read', async (t) => {
    const cwd = await folderWith(t);
    assert.deepEqual(await runCli(t, ['verify', '.'], { cwd }), refused(`${cwd}: is a directory, expected a file`));
  });
});
