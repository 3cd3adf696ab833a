/** `verify` accepts what the service sends, and says why it refuses others. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { getBytes, keccak256, solidityPackedKeccak256, toUtf8Bytes, Wallet } from 'ethers';
import { oneApi } from '../support/answers.ts';
import { finished, submitted } from '../support/async.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { type Ended, folderWith, launch, launchCli, PROGRAM, runCli } from './run.ts';

const OTHER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const UNPINNED = 'Pinned: no, any signer was accepted; say with --node whose signature it must be';
const SIGNED_AT = 1_767_225_600;
const ID = keccak256(toUtf8Bytes('an endpoint'));
const wallet = new Wallet(`0x${'11'.repeat(32)}`);

function digestOf(timestamp: number, data: string, endpointId = ID): string {
  return solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]);
}

async function answer(data = '0x1234', timestamp = SIGNED_AT) {
  const signature = await wallet.signMessage(getBytes(digestOf(timestamp, data)));
  return { node: wallet.address, endpointId: ID, timestamp, data, signature };
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
  const upstream = await upstreamFor(suite);
  upstream.on('*', (_req, res) => void res.end('{"price":"1.5","b":[null,"ü"],"__proto__":1e21}'));
  const encoding = { type: 'int256', path: '$.price', times: '1e18' };
  const service = await serviceFor(
    suite,
    oneApi(upstream.url, {
      encoded: { encoding },
      raw: {},
      stream: { encoding, mode: 'stream' },
      async: { mode: 'async' },
    }),
  );

  const word = `0x${1_500_000_000_000_000_000n.toString(16).padStart(64, '0')}`;
  const hash = keccak256(toUtf8Bytes('{"__proto__":1e+21,"b":[null,"ü"],"price":"1.5"}'));

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
    assert.deepEqual(ended, report('encoded', JSON.parse(text), word));
  });

  it('a raw answer', async (t) => {
    const text = await (await service.post('api/raw')).text();
    const ended = await verifyText(t, text, '--node', TEST_ADDRESS, '--max-age', '600');
    assert.deepEqual(ended, report('raw', JSON.parse(text), hash, rawNote));
  });

  it('an SSE frame', async (t) => {
    const text = await (await service.post('api/stream')).text();
    assert.match(text, /^data: /);
    const ended = await verifyText(t, text, '--node', TEST_ADDRESS);
    assert.deepEqual(ended, report('stream', JSON.parse(text.slice(6)), word));
    assert.deepEqual(await verifyText(t, text.trim().replace('data: ', 'data:'), '--node', TEST_ADDRESS), ended);
  });

  it('a complete async record', async (t) => {
    const record = await finished(service, await submitted(await service.post('api/async')));
    const { timestamp } = record;
    assert.ok(typeof timestamp === 'number');
    const ended = await verifyText(t, JSON.stringify(record), '--node', TEST_ADDRESS);
    assert.deepEqual(ended, report('async', { timestamp }, hash, rawNote));
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
  const report = (timestamp: string, seconds: number) =>
    accepted([
      `Signer: ${wallet.address}`,
      UNPINNED,
      `Digest: ${digestOf(seconds, '0x1234')}`,
      `Endpoint ID: ${ID}`,
      `Timestamp: ${timestamp}`,
      'Signed data: 0x1234',
    ]);
  const expected = report('2026-01-01T00:00:00.000Z (1767225600)', SIGNED_AT);

  it('says when no signer was pinned', async (t) => {
    assert.deepEqual(await verifyText(t, JSON.stringify(await answer())), expected);
  });

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

  it('shows a timestamp that no date can hold', async (t) => {
    const late = await answer('0x1234', Number.MAX_SAFE_INTEGER);
    assert.deepEqual(await verifyText(t, JSON.stringify(late)), report('9007199254740991', Number.MAX_SAFE_INTEGER));
  });

  const text = async (change: object) => JSON.stringify({ ...(await answer()), ...change });

  it('refuses another signer than the one pinned', async (t) => {
    const message = `FILE: the response is signed by ${wallet.address}, not by ${OTHER}`;
    assert.deepEqual(await verifyText(t, await text({}), '--node', OTHER), refused(message));
    assert.deepEqual(await verifyText(t, await text({}), `--node=${OTHER}`), refused(message));
  });

  it('refuses what was changed', async (t) => {
    const message = `FILE: the signature is not by the node ${wallet.address}, or something in the response was changed`;
    assert.deepEqual(await verifyText(t, await text({ data: '0x1235' })), refused(message));
    assert.deepEqual(await verifyText(t, await text({ timestamp: SIGNED_AT + 1 })), refused(message));
  });

  it('refuses another endpoint and an old answer', async (t) => {
    const other = keccak256('0x');
    const otherEndpoint = await verifyText(t, await text({}), '--endpoint-id', other);
    assert.deepEqual(otherEndpoint, refused(`FILE: the response is of endpoint ${ID}, not of ${other}`));
    assert.deepEqual(await verifyText(t, await text({}), '--endpoint-id', ID), expected);
    const { code, stdout, stderr } = await verifyText(t, await text({}), '--max-age', '0');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^error: FILE: the response is \d+ seconds old, more than 0\n$/);
  });

  const inputs: [string, string | Buffer, string][] = [
    ['an empty file', '', 'neither a JSON object nor an SSE frame'],
    ['text', 'hello\n\nthere', 'neither a JSON object nor an SSE frame'],
    ['an array', '[{}]', 'neither a JSON object nor an SSE frame'],
    ['half a body', '{"node":"0x', 'malformed JSON'],
    ['half a frame', 'data: {"node":', 'malformed JSON'],
    ['a frame without an object', 'data: null\n\n', 'the response is no object'],
    ['two frames', 'data: {}\n\ndata: {}\n\n', 'more than one SSE frame'],
    ['bytes', Buffer.from([0x7b, 0xff, 0x7d]), 'not UTF-8'],
    ['an empty object', '{}', 'the response has no node and no signature'],
    [
      'an error with control characters',
      '{"error":"\\u001b[2J\\nerror: x"}',
      'the response is an error, not a signed answer: \\u001b[2J error: x',
    ],
  ];
  for (const [what, input, message] of inputs) {
    it(`refuses ${what}`, async (t) => {
      assert.deepEqual(await verifyText(t, input), refused(`FILE: ${message}`));
    });
  }

  it('refuses what is too large, without reading to the end', async (t) => {
    assert.deepEqual(await runCli(t, ['verify', '/dev/zero']), refused('/dev/zero: larger than 16 MiB'));
  });

  it('names a file that cannot be read', async (t) => {
    const cwd = await folderWith(t);
    assert.deepEqual(await runCli(t, ['verify', 'no'], { cwd }), refused(`${join(cwd, 'no')}: file not found`));
    assert.deepEqual(await runCli(t, ['verify', '.'], { cwd }), refused(`${cwd}: cannot be read (EISDIR)`));
  });

  const address = 'option --node <address> must be 0x and 40 hex digits, mixed-case only with the right checksum';
  const options: [string, string[], string][] = [
    ['a short address', ['--node', OTHER.slice(0, -1)], address],
    ['a mistyped address', ['--node', OTHER.replace('C8', 'c8')], address],
    [
      'an endpoint by its name',
      ['--endpoint-id', 'api/price'],
      'option --endpoint-id <id> must be 0x and 64 hex digits',
    ],
    ['an age with a unit', ['--max-age', '5m'], 'option --max-age <seconds> must be a whole number'],
    ['a negative age', ['--max-age=-1'], 'option --max-age <seconds> must be a whole number'],
  ];
  for (const [what, words, message] of options) {
    it(`refuses ${what} as an option`, async (t) => {
      assert.deepEqual(await verifyText(t, await text({}), ...words), refused(message));
    });
  }
});
