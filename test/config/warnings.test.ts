/** A config that works and is dangerous is warned of. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, runCli } from '../cli/run.ts';
import { errorsOf, loadObject, warningsOf } from '../support/config.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

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

/** What is said of the only endpoint, which is raw. */
const raw = (name: string) =>
  `recommendation: encoding for ${name}: raw answers carry numbers as doubles, an encoding signs every digit\n`;

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

describe('a line of the variables file that does not say what it seems to', () => {
  it('is warned of with file and line, and never with the value; the value stays (cases, row 17)', async (t) => {
    const upstream = await upstreamFor(t, { '/0': faults.json({ price: 1 }) });
    const given = { version: '1.0', ...config({ url: upstream.url, headers: { 'X-Key': `\${KEY}` } }) };
    const files = { 'c.yaml': stringify(given), '.env': 'KEY=secret#1\nKEY hunter2\n' };
    const cwd = await folderWith(t, files);
    const warned = [
      [`${cwd}/.env:1`, 'the value of KEY ends before the #: write it in quotes to keep the rest'],
      [`${cwd}/.env:2`, 'this line is ignored: write NAME=value'],
    ];
    const { stdout, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.match(stdout, /^a\/e0 0x[0-9a-f]{64}\n$/);
    assert.equal(stderr, warned.map(([at, message]) => `warning: ${at}: ${message}\n`).join('') + raw('a/e0'));
    const json = await runCli(t, ['config', 'validate', '-c', 'c.yaml', '--json'], { cwd });
    assert.deepEqual(
      JSON.parse(json.stdout).warnings.map((one: Block) => [one.path, one.message]),
      warned,
    );
    const tried = await runCli(t, ['try', 'a/e0', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([tried.code, upstream.requests[0]?.headers['x-key']], [0, 'secret']);
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
${raw('a/e')}`,
    );
  });
});

describe('endpoints that are open to everyone', () => {
  const key = { type: 'apiKey', keys: [LONG] };
  const free = { type: 'free' };
  const kept = { settings: { state: { type: 'file', path: 'state' } } };
  const x402 = {
    type: 'x402',
    network: 1,
    rpc: 'https://rpc.example.com',
    token: `0x${'0'.repeat(40)}`,
    amount: '1',
    recipient: `0x${'0'.repeat(39)}1`,
  };

  it('because free is in a list with other methods, wherever it stands', async () => {
    const given = { ...kept, ...config({ auth: [key, free] }, {}, { auth: [free, key, key, x402] }, { auth: key }) };
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
    const given = config({ auth: [key, x402] }, { auth: free }, { auth: [free] }, {});
    assert.deepEqual(await warningsOf({ ...kept, ...given }), []);
  });
});

const plainly = (harm: string) => `is plain HTTP: anyone on the way could ${harm}; use https`;

describe('plain HTTP to another machine, where what travels decides what is signed or paid', () => {
  const address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
  const token = '0x0000000000000000000000000000000000000000';
  const paid = (rpc: string) => ({ type: 'x402', network: 1, rpc, token, amount: '1', recipient: address });
  const fhe = { network: 'sepolia', verifier: address };
  const cases: readonly (readonly [path: string, message: string, at: (host: string) => Block])[] = [
    ['apis[0].auth.rpc', plainly('say that a payment was made'), (host) => config({ auth: paid(`http://${host}`) })],
    [
      'settings.proof.gatewayUrl',
      plainly('read what is asked, and answer with proofs of their own'),
      (host) => ({
        settings: { proof: { type: 'reclaim', gatewayUrl: `http://${host}`, attestors: [address] } },
        ...config(),
      }),
    ],
    [
      'settings.fhe.rpcUrl',
      plainly('name the contracts and signers that are trusted'),
      (host) => ({ settings: { fhe: { ...fhe, rpcUrl: `http://${host}` } }, ...config() }),
    ],
    [
      'settings.fhe.relayerUrl',
      plainly('read the key that is sent, and give other keys to encrypt with'),
      (host) => ({
        settings: { fhe: { ...fhe, rpcUrl: 'https://rpc.example.com', relayerUrl: `http://${host}` } },
        ...config(),
      }),
    ],
    [
      'settings.signer.url',
      plainly('have what they like signed, or read the credentials that are sent'),
      (host) => ({ settings: { signer: { type: 'web3signer', url: `http://${host}`, address } }, ...config() }),
    ],
    [
      'settings.signer.next.endpoint',
      plainly('have what they like signed'),
      (host) => {
        const next = { type: 'aws-kms', keyId: 'a', region: 'eu-central-1', endpoint: `http://${host}` };
        const signer = { type: 'web3signer', url: 'https://signer.example.com', address, next };
        return { settings: { signer }, ...config() };
      },
    ],
    [
      'apis[0].mirrors[0]',
      plainly('change what gets signed'),
      (host) => config({ url: 'http://api.example.com', mirrors: [`http://${host}`] }),
    ],
    [
      'settings.state.url',
      'is without TLS: anyone on the way could change what is kept, payments included; use rediss or tls',
      (host) => ({ settings: { state: { type: 'redis', url: `redis://${host}` } }, ...config() }),
    ],
    [
      'settings.state.urls',
      'is without TLS: anyone on the way could change what is kept, payments included; use rediss or tls',
      (host) => ({ settings: { state: { type: 'redis', urls: ['redis://[::1]', `redis://${host}`] } }, ...config() }),
    ],
    [
      'settings.state.sentinel',
      'is without TLS: anyone on the way could change what is kept, payments included; use rediss or tls',
      (host) => {
        const sentinel = { name: 'main', urls: [`redis://${host}`] };
        return { settings: { state: { type: 'redis', sentinel } }, ...config() };
      },
    ],
  ];
  for (const [path, message, at] of cases) {
    it(`${path} is warned of, and not to this machine`, async () => {
      const found = async (host: string) => (await warningsOf(at(host))).filter((line) => line.startsWith(`${path}:`));
      assert.deepEqual(await found('node.example.com:8545'), [`${path}: ${message}`]);
      assert.deepEqual(await found('127.0.0.1:8545'), []);
    });
  }

  it('so is a proof that anyone may attest', async () => {
    const proof = { type: 'reclaim', gatewayUrl: 'https://gateway.example.com' };
    assert.deepEqual(await warningsOf({ settings: { proof }, ...config() }), [
      'settings.proof: has no attestors: a proof is taken whoever attests it; list the addresses that you trust',
    ]);
  });
});

describe('plain HTTP to an upstream', () => {
  const plain = plainly('change what gets signed, or read what is sent');

  for (const host of ['10.0.0.1', '[2001:db8::1]', '128.0.0.1', 'localhost.example.com', 'notlocalhost', '[::2]']) {
    it(`at ${host} is warned of`, async () => {
      assert.deepEqual(await warningsOf(config({ url: `http://${host}:8080/v1` })), [`apis[0].url: ${plain}`]);
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
    it(`at ${host} is not, since that is this machine`, async () => {
      assert.deepEqual(await warningsOf(config({ url: `http://${host}:8080/v1` })), []);
    });
  }

  it('is one line for each API', async () => {
    const [one] = config({ url: 'https://one.example.com' }).apis;
    const [two] = config({ name: 'b', url: 'http://two.example.com' }, {}, {}).apis;
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
    assert.deepEqual(await warningsOf(config({}, encoded('/data/price'))), [
      'apis[0].endpoints[0].encoding.path: /data/price is a name, not a JSON Pointer: write $.data.price',
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

describe('what an upstream takes for something else', () => {
  const body = [{ name: 'symbol', in: 'body' }];

  it('is a body with GET, once an endpoint', async () => {
    const message = 'sends body parameters with GET, which upstreams ignore or refuse: set method: POST, or in: query';
    const two = { parameters: [...body, { name: 'b', in: 'body', fixed: 1 }] };
    assert.deepEqual(await warningsOf(config({}, two, { ...two, method: 'GET' })), [
      `apis[0].endpoints[0]: ${message}`,
      `apis[0].endpoints[1]: ${message}`,
    ]);
    const others = ['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => ({ ...two, method }));
    assert.deepEqual(await warningsOf(config({}, ...others, { parameters: [{ name: 'q' }] })), []);
  });

  it('is user:password behind Basic, which is not shown', async () => {
    const message =
      'Basic takes base64, which holds no colon: write the base64 of user:password, or in headers basic: {user, password}';
    const basic = (name: string, value: string) =>
      warningsOf(config({ headers: { [name]: value } }), { U: 'u', P: 'p' });
    for (const value of ['Basic user:hunter2', 'basic :x', 'Basic  a b:c', 'Basic $' + '{U}:$' + '{P}'])
      assert.deepEqual(await basic('authorization', value), [`apis[0].headers.authorization: ${message}`], value);
    assert.deepEqual(await basic('Proxy-Authorization', 'Basic a:b'), [
      `apis[0].headers.Proxy-Authorization: ${message}`,
    ]);
    for (const value of ['Basic dXNlcjpwYXNz', 'Bearer a:b', 'Basic', 'Digest username="a:b"'])
      assert.deepEqual(await basic('Authorization', value), [], value);
    assert.deepEqual(await basic('X-Other', 'Basic a:b'), []);
    const fixed = { parameters: [{ name: 'Authorization', in: 'header', fixed: 'Basic a:b' }] };
    assert.deepEqual(await warningsOf(config({}, fixed)), [`apis[0].endpoints[0].parameters[0].fixed: ${message}`]);
  });

  it('is the type of a form on a body of JSON (cases, row 5)', async () => {
    const message = 'announces a form, but body parameters are sent as JSON: set bodyType: form, or leave it out';
    const post = { method: 'POST', parameters: body };
    const typed = (type: string, ...endpoints: Block[]) =>
      warningsOf(config({ headers: { 'Content-Type': type } }, ...endpoints));
    for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
      assert.deepEqual(await typed(type, {}, post), [`apis[0].headers.Content-Type: ${message}`]);
    assert.deepEqual(await typed('application/x-www-form-urlencoded', {}), []);
    assert.deepEqual(await typed('application/json; charset=utf-8', post), []);
    const own = { name: 'content-type', in: 'header', default: 'Application/X-WWW-Form-Urlencoded' };
    assert.deepEqual(await warningsOf(config({}, { ...post, parameters: [...body, own] })), [
      `apis[0].endpoints[0].parameters[1].default: ${message}`,
    ]);
  });
});

describe('a number that is sent otherwise than it is written (cases, row 8)', () => {
  const written = (parameters: string) => `version: '1.0'
apis:
  - name: a
    url: https://api.example.com
    auth: { type: free }
    endpoints:
      - name: e
        path: /
        method: POST
        parameters: ${parameters}
`;
  const linesOf = async (t: TestContext, parameters: string) => {
    const cwd = await folderWith(t, { 'c.yaml': written(parameters) });
    const { code, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.equal(code, 0, stderr);
    return stderr.split('\n').filter((text) => text.startsWith('warning: '));
  };
  const line = (place: string, said: string) =>
    `warning: apis[0].endpoints[0].parameters${place}: ${said}: write it in quotes to send that text (a/e, line 10)`;

  it('is warned of, fixed or default, in any place, also behind an alias', async (t) => {
    const numbers = ['1.10', '1e3', '0x1F', '.5', '+5', '1.0', '0o17', '-0', '007'];
    const sent = ['1.1', '1000', '31', '0.5', '5', '1', '15', '0', '7'];
    const list = numbers.map((number, i) => `{ name: p${i}, fixed: ${number} }`).join(', ');
    assert.deepEqual(
      await linesOf(t, `[${list}]`),
      numbers.map((number, i) => line(`[${i}].fixed`, `${number} is sent as ${sent[i]}`)),
    );
    const aliases =
      '[{ name: a, default: &n 1.10 }, { name: b, in: body, fixed: *n }, { name: c, in: body, fixed: 1e21 }]';
    assert.deepEqual(await linesOf(t, aliases), [
      line('[0].default', '1.10 is sent as 1.1'),
      line('[1].fixed', '1.10 is sent as 1.1'),
      line('[2].fixed', '1e21 is sent as 1e+21'),
    ]);
  });

  it('is not shown where it is secret, and not warned of where it is sent as written', async (t) => {
    assert.deepEqual(await linesOf(t, '[{ name: a, fixed: 1.10, secret: true }]'), [
      line('[0].fixed', 'the number is not sent as written'),
    ]);
    const list = `[{ name: a, fixed: '1.10' }, { name: b, default: 1.1 }, { name: c, fixed: -5 }, { name: d, fixed: true }]`;
    assert.deepEqual(await linesOf(t, list), []);
  });

  it('loses leading zeros elsewhere, with a warning', async (t) => {
    assert.deepEqual(await linesOf(t, '[{ name: a, schema: { enum: [007, -01.5, 0.5, 0] } }]'), [
      'warning: apis[0].endpoints[0].parameters[0].schema.enum[0]: 007 is read as 7: write it so, or in quotes (a/e, line 10)',
      'warning: apis[0].endpoints[0].parameters[0].schema.enum[1]: -01.5 is read as -1.5: write it so, or in quotes (a/e, line 10)',
    ]);
  });

  it('is sent as JavaScript writes it', async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json(1) });
    const parameters =
      '[{ name: a, fixed: 1.10 }, { name: b, default: 1e3 }, { name: c, fixed: 0x1F }, { name: d, fixed: .5 }]';
    const cwd = await folderWith(t, { 'c.yaml': written(parameters).replace('https://api.example.com', upstream.url) });
    const { stderr } = await runCli(t, ['try', 'a/e', '-c', 'c.yaml'], { cwd });
    assert.equal(upstream.requests[0]?.path, '/?a=1.1&b=1000&c=31&d=0.5', stderr);
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
