import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { folderWith, runCli } from '../cli/run.ts';
import { loadObject, warningsOf } from '../support/config.ts';

type Block = Readonly<Record<string, unknown>>;

/** A config of one API, open to everyone, with one endpoint; blocks are merged in. */
function config(api: Block = {}, ...endpoints: readonly Block[]) {
  const list = (endpoints.length === 0 ? [{}] : endpoints).map((endpoint, i) => ({
    name: `e${i}`,
    path: `/${i}`,
    ...endpoint,
  }));
  return { apis: [{ name: 'a', url: 'https://api.example.com', auth: { type: 'free' }, ...api, endpoints: list }] };
}

const LONG = '0123456789abcdef';
const variables = { V: LONG };

describe('keys that can be guessed', () => {
  const message = 'has fewer than 16 characters and can be guessed: use a random one, such as 32 hex digits';

  it('are those under 16 characters, once for all endpoints that share them', async () => {
    const auth = { type: 'apiKey', keys: [LONG, LONG.slice(1), 'x'] };
    assert.deepEqual(await warningsOf(config({ auth }, {}, {})), [
      `apis[0].auth.keys[1]: ${message}`,
      `apis[0].auth.keys[2]: ${message}`,
    ]);
  });

  it('are found in a list, on an endpoint, and in a variable', async () => {
    const keyed = (...keys: string[]) => ({ type: 'apiKey', keys });
    const own = { auth: [keyed(LONG), keyed(LONG, `\${SHORT}-\${V}`, `\${SHORT}`)] };
    const given = config({ auth: [keyed('short')] }, { auth: keyed('short') }, own, {});
    assert.deepEqual(await warningsOf(given, { ...variables, SHORT: 'x' }), [
      `apis[0].auth[0].keys[0]: ${message}`,
      `apis[0].endpoints[0].auth.keys[0]: ${message}`,
      `apis[0].endpoints[1].auth[1].keys[2]: ${message}`,
    ]);
  });

  it('are no matter where no endpoint uses them', async () => {
    assert.deepEqual(
      await warningsOf(config({ auth: { type: 'apiKey', keys: ['x'] } }, { auth: { type: 'free' } })),
      [],
    );
  });

  it('are not judged while their variable is unset, and never shown', async (t) => {
    const keys = `['hunter2', '\${UNSET}', '\${SECRET}']`;
    const text = `version: '1.0'
apis:
  - name: a
    url: https://api.example.com
    auth: { type: apiKey, keys: ${keys} }
    endpoints: [{ name: e, path: / }]
`;
    const cwd = await folderWith(t, { 'c.yaml': text });
    const args = ['config', 'validate', '-c', 'c.yaml'];
    const { code, stdout, stderr } = await runCli(t, args, { cwd, env: { SECRET: 'hunter3' } });
    assert.equal(code, 0);
    assert.match(stdout, /^a\/e 0x[0-9a-f]{64}\n$/);
    assert.equal(
      stderr,
      `warning: apis[0].auth.keys[0]: ${message}
warning: apis[0].auth.keys[1]: the variable UNSET is not set
warning: apis[0].auth.keys[2]: ${message}
`,
    );
  });
});

describe('endpoints that are open to everyone', () => {
  const key = { type: 'apiKey', keys: [LONG] };
  const free = { type: 'free' };
  const x402 = {
    type: 'x402',
    network: 1,
    rpc: 'https://rpc.example.com',
    token: `0x${'0'.repeat(40)}`,
    amount: '1',
    recipient: `0x${'0'.repeat(39)}1`,
  };

  it('because free is in a list with other methods, wherever it stands', async () => {
    const given = config({ auth: [key, free] }, {}, { auth: [free, key, key, x402] }, { auth: key });
    assert.deepEqual(await warningsOf(given), [
      'apis[0].endpoints[0]: auth lists free beside apiKey: "a/e0" is free for everyone: leave out free, or the others',
      'apis[0].endpoints[1]: auth lists free beside apiKey and x402: "a/e1" is free for everyone: leave out free, or the others',
    ]);
  });

  it('because nobody said otherwise', async () => {
    assert.deepEqual(await warningsOf(config({ auth: undefined }, { auth: [key] }, {})), [
      'apis[0].endpoints[1]: no auth on the API or the endpoint: "a/e1" is free for everyone',
    ]);
  });

  it('are not warned of where free is what the operator says', async () => {
    assert.deepEqual(await warningsOf(config({ auth: [key, x402] }, { auth: free }, { auth: [free] }, {})), []);
  });
});

describe('credentials over plain HTTP', () => {
  const warned = (places: string) => [
    `apis[0].url: sends credentials that anyone on the way can read (${places}): use https`,
  ];
  const plain = (api: Block, ...endpoints: readonly Block[]) =>
    config({ url: 'http://api.example.com', ...api }, ...endpoints);

  for (const name of [
    'Authorization',
    'proxy-authorization',
    'X-Api-Key',
    'apikey',
    'COOKIE',
    'X-Auth-Token',
    'Session-Id',
  ]) {
    it(`the header ${name}`, async () => {
      assert.deepEqual(await warningsOf(plain({ headers: { Accept: 'x', [name]: 'x' } })), warned(`headers.${name}`));
    });
  }

  it('a header whose value comes from a variable, whatever it is called', async () => {
    const headers = { 'X-Tier': `a-\${V}`, Accept: '*/*', 'X.Dot': `\${V}` };
    assert.deepEqual(await warningsOf(plain({ headers }), variables), warned('headers.X-Tier, headers["X.Dot"]'));
  });

  it('a secret parameter, and one that a variable fixes', async () => {
    const parameters = [{ name: 'a' }, { name: 'b', secret: true }, { name: 'c', fixed: `\${V}` }];
    assert.deepEqual(
      await warningsOf(plain({}, {}, { parameters }), variables),
      warned('endpoints[1].parameters[1], endpoints[1].parameters[2]'),
    );
  });

  it('is one line for an API, which names three places', async () => {
    const parameters = ['a', 'b', 'c'].map((name) => ({ name, secret: true }));
    assert.deepEqual(
      await warningsOf(plain({ headers: { Cookie: 'x' } }, { parameters }, { parameters })),
      warned('headers.Cookie, endpoints[0].parameters[0], endpoints[0].parameters[1] and 4 more'),
    );
  });

  const headers = { Authorization: 'x' };
  for (const host of ['10.0.0.1', '[2001:db8::1]', '128.0.0.1', 'localhost.example.com', 'notlocalhost', '[::2]']) {
    it(`to ${host}`, async () => {
      assert.deepEqual(
        await warningsOf(config({ url: `http://${host}:8080/v1`, headers })),
        warned('headers.Authorization'),
      );
    });
  }
  for (const host of [
    'localhost',
    'LOCALHOST.',
    'api.localhost',
    '127.0.0.1',
    '127.1',
    '127.255.0.9',
    '[::1]',
    '[::ffff:127.0.0.1]',
  ]) {
    it(`not to ${host}, which is this machine`, async () => {
      assert.deepEqual(await warningsOf(config({ url: `http://${host}:8080/v1`, headers })), []);
    });
  }

  it('not over https, and not without credentials', async () => {
    const parameters = [{ name: 'a', fixed: 'x' }, { name: 'b' }];
    assert.deepEqual(await warningsOf(config({ headers }, { parameters: [{ name: 'a', secret: true }] })), []);
    assert.deepEqual(await warningsOf(plain({ headers: { Accept: 'x', 'User-Agent': 'x' } }, { parameters })), []);
  });

  it('names each API by itself', async () => {
    const [one] = config({ url: 'http://one.example.com' }).apis;
    const [two] = config({ name: 'b', url: 'http://two.example.com', headers }).apis;
    const { warnings } = await loadObject({ apis: [one, two] });
    assert.deepEqual(
      warnings.map(({ level, path }) => [level, path]),
      [['warning', 'apis[1].url']],
    );
  });
});

describe('a cache that requesters fill', () => {
  const message =
    'with a cache, every path that a requester chooses is an upstream call and an entry of its own: pin the path, or leave the cache out';
  const star = { type: 'int256', path: '*' };
  const cache = { maxAge: 1000 };

  it('because they choose the path', async () => {
    assert.deepEqual(await warningsOf(config({ cache }, { encoding: star }, {})), [
      `apis[0].endpoints[0].encoding.path: ${message}`,
    ]);
    assert.deepEqual(await warningsOf(config({}, {}, { encoding: star, cache })), [
      `apis[0].endpoints[1].encoding.path: ${message}`,
    ]);
  });

  it('not without a cache, with a pinned path, or where the cache has no effect', async () => {
    const pinned = { type: '*', path: '$.a' };
    assert.deepEqual(await warningsOf(config({}, { encoding: star }, { encoding: pinned, cache })), []);
    assert.deepEqual(await warningsOf(config({}, { encoding: star, cache, mode: 'async' })), [
      'apis[0].endpoints[0].cache: has no effect in async mode',
    ]);
  });
});

describe('other things that are legal and unwise', () => {
  it('an address that clients may choose', async () => {
    const message = 'clients can choose their own address unless a proxy in front sets X-Forwarded-For';
    for (const trustForwardedFor of [true, 2]) {
      const given = { server: { rateLimit: { trustForwardedFor } }, ...config() };
      assert.deepEqual(await warningsOf(given), [`server.rateLimit.trustForwardedFor: ${message}`]);
    }
    assert.deepEqual(await warningsOf({ server: { rateLimit: { trustForwardedFor: false } }, ...config() }), []);
  });
});
