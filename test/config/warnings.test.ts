/** A config that works and is dangerous is warned of. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { folderWith, runCli } from '../cli/run.ts';
import { errorsOf, loadObject, warningsOf } from '../support/config.ts';

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

describe('a variable that is empty', () => {
  it('is warned of, and is an error where its value is wrong', async () => {
    const given = config({ headers: { Authorization: 'Bearer $' + '{V}$' + '{V}', 'X-Other': '$' + '{W}' } });
    const message = 'the variable V is empty';
    const env = { V: '', W: 'w' };
    assert.deepEqual(await warningsOf(given, env), [`apis[0].headers.Authorization: ${message}`]);
    assert.deepEqual(await errorsOf(config({ auth: { type: 'apiKey', keys: ['$' + '{V}'] } }), env), [
      'apis[0].auth.keys[0]: must not be empty',
      `apis[0].auth.keys[0]: ${message}`,
    ]);
  });
});

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
      `warning: apis[0].auth.keys[0]: ${message} (a, line 5)
warning: apis[0].auth.keys[1]: the variable UNSET is not set (a, line 5)
warning: apis[0].auth.keys[2]: ${message} (a, line 5)
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
  const star = { type: 'string', path: '*' };
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

describe('what is pinned and may surprise', () => {
  const encoded = (path: string, times?: string) => ({
    encoding: { type: 'int256', exact: true, path, ...(times === undefined ? {} : { times }) },
  });
  const several = (path: string) => `${path} may match several values: the first in the order of the answer is signed`;

  it('is a path that may match several values', async () => {
    const paths = ['$..price', "$['a','b']", '$.a[*]', '$.a[0:2]', '$.a[?(@.b==1)]', '$.*.c'];
    assert.deepEqual(
      await warningsOf(config({}, ...paths.map((path) => encoded(path)))),
      paths.map((path, i) => `apis[0].endpoints[${i}].encoding.path: ${several(path)}`),
    );
    const single = ['$.a.b', "$['a b'][0]", '$.a[-1:]', '$.a', '$'];
    assert.deepEqual(await warningsOf(config({}, ...single.map((path) => encoded(path)))), []);
  });

  it('is no filter for one entry by its name, as docs/configuration.md has it, but one that asks for more', async () => {
    const named = [
      "$.pairs[?(@.id=='ETH')].price",
      "$[?(@.a.b === 'x y')].c[0]",
      '$.a[?(@.id===1027)]',
      `$.a[?(@['b c']=="d")]`,
    ];
    assert.deepEqual(await warningsOf(config({}, ...named.map((path) => encoded(path)))), []);
    const others = [
      '$.a[?(@.b)]',
      "$.a[?(@.b!='c')]",
      '$.a[?(@.b==true)]',
      "$.a[?(@.b=='c'||@.d)]",
      "$..a[?(@.b=='c')]",
      "$.a[?(@.b=='c')].*",
      "$.a[?(@.b[?(@.c=='d')])]",
    ];
    assert.deepEqual(
      await warningsOf(config({}, ...others.map((path) => encoded(path)))),
      others.map((path, i) => `apis[0].endpoints[${i}].encoding.path: ${several(path)}`),
    );
  });

  it('is what asks the same as another spelling, with another endpoint ID', async () => {
    const placed = { path: '{id}', parameters: [{ name: 'id', in: 'path' }] };
    const spelt = (usual: string) => `asks the same as ${usual}, but makes another endpoint ID: write ${usual}`;
    assert.deepEqual(await warningsOf(config({}, { path: 'price' }, encoded('price'), encoded('a[0]'), placed)), [
      `apis[0].endpoints[0].path: ${spelt('/price')}`,
      `apis[0].endpoints[1].encoding.path: price ${spelt('$.price')}`,
      `apis[0].endpoints[2].encoding.path: a[0] ${spelt('$.a[0]')}`,
      `apis[0].endpoints[3].path: ${spelt('/{id}')}`,
    ]);
    const usual = ['/price', '', '?all=1'].map((path) => ({ path }));
    assert.deepEqual(await warningsOf(config({}, ...usual, encoded('*'), encoded('$.price'))), []);
  });

  it('is a multiplier that is nothing or less', async () => {
    const at = (i: number) => `apis[0].endpoints[${i}].encoding.times`;
    assert.deepEqual(await warningsOf(config({}, encoded('$.a', '0'), encoded('$.a', '-1e18'), encoded('$.a', '1'))), [
      `${at(0)}: makes every value 0`,
      `${at(1)}: changes the sign of every value`,
    ]);
  });

  it('is a parameter that the API or the path has too', async () => {
    const parameters = [{ name: 'x-cur', in: 'header' }, { name: 'symbol' }, { name: 'other' }];
    const given = config({ headers: { 'X-Cur': 'usd' } }, { path: '/price?symbol=ETH', parameters });
    const at = 'apis[0].endpoints[0].parameters';
    assert.deepEqual(await warningsOf(given), [
      `${at}[0]: is never sent: the headers of the API hold x-cur`,
      `${at}[1]: is sent beside the symbol that the path holds: the upstream gets both`,
    ]);
  });
});

describe('errors of what can never work', () => {
  it('a regular expression in a filter, whose time nothing bounds', async () => {
    const cure = 'a regular expression would let the upstream stall the service';
    const paths = [
      '$[?(@.match(/^(a+)+$/))]',
      "$[?(@.match('^(a+)+$'))]",
      '$.a[?(/x/.test(@.b))]',
      "$.a[?(@.b.replace('a', 'b') == 'c')]",
    ];
    for (const path of paths) {
      const errors = await errorsOf(config({}, { encoding: { type: 'string', path } }));
      assert.equal(errors.length, 1, path);
      assert.match(errors[0] ?? '', /^apis\[0\]\.endpoints\[0\]\.encoding\.path: /);
      assert.ok(errors[0]?.includes(cure), errors[0]);
    }
  });

  it('a brace without its counterpart', async () => {
    assert.deepEqual(await errorsOf(config({}, { path: '/price/{symbol' })), [
      'apis[0].endpoints[0].path: holds a brace without its counterpart',
    ]);
  });

  it('a placeholder without a parameter, and nothing else about the others', async () => {
    const parameters = [
      { name: 'q', fixed: 1 },
      { name: 'r', default: 'eur' },
    ];
    assert.deepEqual(await errorsOf(config({}, { path: '/y/{b}', parameters })), [
      'apis[0].endpoints[0].path: the placeholder {b} has no parameter with in: path',
    ]);
  });

  it('an API key that no header can carry', async () => {
    const keyed = (key: string) => config({ auth: { type: 'apiKey', keys: [key] } });
    const message = 'apis[0].auth.keys[0]: can never match: a header holds no such character there';
    for (const key of [` ${LONG}`, `${LONG}\n`, `${LONG}\u2192`])
      assert.deepEqual(await errorsOf(keyed(key)), [message]);
    assert.deepEqual(await errorsOf(keyed(`${LONG} ${LONG}`)), []);
  });

  it('and none of them shows the value of a variable', async () => {
    const given = config({}, { encoding: { type: `\${V}`, path: '$.a' } });
    const [error = ''] = await errorsOf(given, variables);
    assert.match(error, /^apis\[0\]\.endpoints\[0\]\.encoding\.type: /);
    assert.ok(!error.includes(LONG) && error.includes('***'), error);
  });
});
