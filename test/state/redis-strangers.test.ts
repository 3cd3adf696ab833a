/** An engine refuses what is no server of its kind, and a config that is wrong. */
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { outputWithout } from '../support/hide.ts';
import { hostOf } from '../support/https.ts';
import { errorOf, freePort, started } from './redis-server.ts';

/** `127.0.0.1:<port>` of something that listens, but is no such server. */
function listening(t: TestContext, handle: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => handle(socket.on('error', () => undefined)));
  return hostOf(t, server);
}

/** Answers each command as the function says. */
const answering = (answer: (name: string) => string) => (socket: Socket) =>
  socket.on('data', (data) => {
    for (const [, name = ''] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g))
      socket.write(answer(name.toLowerCase()));
  });

const bulk = (lines: readonly string[]) => {
  const text = lines.map((line) => `${line}\r\n`).join('');
  return `$${text.length}\r\n${text}\r\n`;
};

describe('the start of an engine whose server is none', () => {
  it('says that nothing is there', async (t) => {
    const port = await freePort();
    const message = `Error: settings.state: redis at 127.0.0.1:${port} cannot be reached: ECONNREFUSED`;
    assert.equal(await errorOf(t, { url: `redis://127.0.0.1:${port}` }), message);
    const named = await errorOf(t, { url: `redis://u:geheim@localhost:${port}` });
    assert.equal(named, `Error: settings.state: redis at localhost:${port} cannot be reached: ECONNREFUSED`);
    const six = await errorOf(t, { url: `redis://[::1]:${port}` });
    assert.match(
      six ?? '',
      /^Error: settings\.state: redis at \[::1\]:\d+ cannot be reached: (?:ECONNREFUSED|EADDRNOTAVAIL)$/,
    );
  });

  it('says that the name is unknown, and takes port 6379 by itself', async (t) => {
    assert.match(
      (await errorOf(t, { url: 'redis://redis.invalid' })) ?? '',
      /^Error: settings\.state: redis at redis\.invalid:6379 cannot be reached: (?:ENOTFOUND|EAI_AGAIN)$/,
    );
  });

  const strangers: readonly [string, (socket: Socket) => void, string][] = [
    ['talks in another way', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), 'is no Redis and no Valkey'],
    ['says nothing', () => undefined, 'does not answer'],
    ['ends the connection', (socket) => socket.destroy(), 'closed the connection; if TLS is expected, write rediss://'],
    [
      'repeats the password',
      answering((name) => `-ERR unknown command '${name}', with args beginning with: 'geheim'\r\n`),
      "answered: ERR unknown command 'auth'",
    ],
    ['repeats the password otherwise', answering(() => '-ERR geheim? No.\r\n'), 'answered: ERR ***? No.'],
    ['answers, but is something else', answering(() => bulk(['a:b'])), 'is no Redis and no Valkey'],
    [
      'is too old',
      answering(() => bulk(['redis_version:6.0.16', 'role:master'])),
      'has version 6.0.16: Redis 6.2 or later, or Valkey, is needed',
    ],
    [
      'is a Sentinel',
      answering(() => bulk(['redis_version:7.0.15', 'redis_mode:sentinel'])),
      'is a Sentinel: set sentinel.urls in place of url',
    ],
    [
      'is still loading',
      answering(() => bulk(['redis_version:7.0.15', 'role:master', 'loading:1'])),
      'is still loading its data: try again once it has',
    ],
  ];
  for (const [what, handle, reason] of strangers) {
    it(`says so when it ${what}`, async (t) => {
      const host = await listening(t, handle);
      const message = await errorOf(t, { url: `redis://:geheim@${host}` });
      assert.equal(message, `Error: settings.state: redis at ${host} ${reason}`);
    });
  }

  it('says that it is no node of a cluster, also where it describes itself after that', async (t) => {
    const info = bulk(['redis_version:7.0.15', 'role:master']);
    const answers = { client: '+OK\r\n', cluster: '-ERR This instance has cluster support disabled\r\n' };
    const asked = answering((name) => Object(answers)[name] ?? '');
    const handle = (socket: Socket) => void asked(socket).once('end', () => socket.end(`${info}*0\r\n`));
    const host = await hostOf(t, createServer({ allowHalfOpen: true }, handle));
    const message = `Error: settings.state: redis at ${host} is no node of a cluster: set url in place of urls`;
    assert.equal(await errorOf(t, { urls: [`redis://${host}`] }), message);
  });

  it('takes a Valkey, whatever Redis it says to be', async (t) => {
    const info = ['redis_version:5.0.0', 'valkey_version:9.0.0', 'role:master', 'aof_enabled:1', 'connected_slaves:0'];
    const host = await listening(
      t,
      answering((name) => (name === 'info' ? bulk(info) : '*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n')),
    );
    const { error, engine, logged } = await started(t, { url: `redis://${host}` });
    assert.deepEqual([error, engine.doubts(), logged], [undefined, [], []]);
  });
});

describe('an engine without its library', () => {
  it('says how to install it', () => {
    const client = new URL('../../builtins/state-redis/client.ts', import.meta.url).href;
    const program = `import { createClient } from ${JSON.stringify(client)};
      await createClient({}, () => null).catch((error) => console.log(error.message));`;
    const text = 'settings.state needs a package that is not installed: npm install ioredis@6\n';
    assert.equal(outputWithout('ioredis', program), text);
  });
});
