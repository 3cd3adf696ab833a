/** An engine refuses what is no server of its kind, and a config that is wrong. */
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { errorsOf } from '../support/config.ts';
import { outputWithout } from '../support/hide.ts';
import { errorOf, freePort, type Given, started } from './redis-server.ts';

/** The port of something that listens, but is no such server. */
async function listening(t: TestContext, handle: (socket: Socket) => void): Promise<number> {
  const port = await freePort();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  t.after(() => server.close());
  return port;
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
      const port = await listening(t, handle);
      const message = await errorOf(t, { url: `redis://:geheim@127.0.0.1:${port}` });
      assert.equal(message, `Error: settings.state: redis at 127.0.0.1:${port} ${reason}`);
    });
  }

  it('takes a Valkey, whatever Redis it says to be', async (t) => {
    const info = ['redis_version:5.0.0', 'valkey_version:9.0.0', 'role:master', 'aof_enabled:1', 'connected_slaves:0'];
    const port = await listening(
      t,
      answering((name) => (name === 'info' ? bulk(info) : '*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n')),
    );
    const { error, engine, logged } = await started(t, { url: `redis://127.0.0.1:${port}` });
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

describe('the config of an engine', () => {
  const apis = [{ name: 'a', url: 'https://a.example', auth: { type: 'free' }, endpoints: [{ name: 'e', path: '/' }] }];
  const pem =
    'expected: Certificates of those who sign its certificate, PEM; default those of Node.js (pattern -----BEGIN )';
  const form =
    'has the wrong form, expected: redis://host:port/database, or rediss:// for TLS (pattern ^rediss?://[^\\s/?#]+(?:/[0-9]{0,5})?$)';
  const listForm =
    'has the wrong form, expected: redis://host:port, or rediss:// for TLS (pattern ^rediss?://[^\\s/?#]+/?$)';
  const unlike = 'must have the scheme, user and password of the first one';
  const cases: readonly [Given, ...string[]][] = [
    [{ url: 'redis://h' }],
    [{ url: 'rediss://u:p%40@[::1]:1/2', prefix: '', tls: true, username: 'u', password: 'p' }],
    [{ url: 'redis://h/', tls: {} }],
    [{ url: 'redis://h', prefx: 'a' }, 'prefx: unknown key, did you mean "prefix"?'],
    [{ url: 'http://u:geheim@h' }, `url: ${form}`],
    [{ url: 'redis://u:ge#heim@h' }, `url: ${form}`],
    [{ url: 'redis://h?db=1' }, `url: ${form}`],
    [{ url: 'redis://u:geheim@h:99999' }, 'url: is no valid URL'],
    [{ url: 'redis://u:ge%heim@h' }, 'url: is no valid URL'],
    [{ urls: ['redis://u:p@h:1', 'redis://u:p@[::1]'] }],
    [{ urls: ['rediss://h:1/'], username: 'u', password: 'p' }],
    [{ urls: [] }, 'urls: must not be empty'],
    [{ urls: ['h:6379'] }, 'urls[0]: has no scheme: write rediss:// or redis:// in front'],
    [{ urls: 'redis://h' }, 'urls: expected a list, found a string'],
    [{ urls: ['redis://u:geheim@h/1'] }, `urls[0]: ${listForm}`],
    [{ urls: ['redis://h', 'redis://u:geheim@h:99999'] }, 'urls[1]: is no valid URL'],
    [{ urls: ['redis://h', 'rediss://h'] }, `urls[1]: ${unlike}`],
    [{ urls: ['redis://:geheim@h', 'redis://:other@h'] }, `urls[1]: ${unlike}`],
    [{ sentinel: { name: 'main', urls: ['redis://:p@h', 'redis://:p@i:1'], username: 'u', password: 'p' } }],
    [{ sentinel: { urls: ['redis://h'] } }, 'sentinel.name: required key is missing'],
    [{ sentinel: { name: 'main', urls: [] } }, 'sentinel.urls: must not be empty'],
    [{ sentinel: { name: 'main', urls: ['redis://:ge%heim@h'] } }, 'sentinel.urls[0]: is no valid URL'],
    [{ sentinel: { name: 'main', urls: ['redis://h', 'rediss://h'] } }, `sentinel.urls[1]: ${unlike}`],
    [{ url: 'rediss://h', tls: false }, 'tls: expected true or a mapping, found a boolean'],
    [{ url: 'rediss://h', tls: { cat: 1 } }, 'tls.cat: unknown key, did you mean "ca"?'],
    [{ url: 'rediss://h', tls: { ca: '/etc/ca.pem' } }, `tls.ca: has the wrong form, ${pem}`],
    [
      { url: 'rediss://h', tls: { cert: '-----BEGIN CERTIFICATE-----' } },
      'tls: cannot be used: error:04800066:PEM routines::bad end line',
    ],
  ];
  for (const [given, ...expected] of cases) {
    it(`${JSON.stringify(given)}: ${expected.length === 0 ? 'can be used' : expected}`, async () => {
      const errors = await errorsOf({ settings: { state: { type: 'redis', ...given } }, apis });
      assert.deepEqual(
        errors,
        expected.map((line) => `settings.state.${line}`),
      );
    });
  }

  const places = { url: 'redis://h', urls: ['redis://h'], sentinel: { name: 'main', urls: ['redis://h'] } };
  const { url, urls, sentinel } = places;
  for (const given of [{}, { url, urls }, { url, sentinel }, { urls, sentinel }, places]) {
    it(`${JSON.stringify(given)}: is refused`, async () => {
      const errors = await errorsOf({ settings: { state: { type: 'redis', ...given } }, apis });
      assert.deepEqual(errors, ['settings.state: must have one of "url", "urls" and "sentinel"']);
    });
  }
});
