/** The command `try`, before a real upstream. */
import assert from 'node:assert/strict';
import { afterEach, describe, it, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { suite } from '../support/lifetime.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { folderWith, runCli } from './run.ts';

const upstream = await upstreamFor(suite);

afterEach(() => {
  upstream.requests.length = 0;
});

const SECRET = { KEY: 'upstream-secret', QUERY_KEY: 'of the/query' };

function config(endpoint: object, more: object = {}) {
  const api = {
    ...{ name: 'prices', url: upstream.url, headers: { Authorization: '$' + '{KEY}' } },
    // Neither clients' keys nor what runs beside the service is needed.
    auth: { type: 'apiKey', keys: ['$' + '{CLIENT_KEY}'] },
    ...{ cache: { maxAge: '1m' }, receipt: true },
    endpoints: [{ name: 'eth', path: '/price', ...endpoint }],
  };
  const settings = { metrics: { port: 1 }, state: { type: 'file', path: '/nowhere/at/all' }, ...more };
  return stringify({
    version: '1.0',
    settings,
    apis: [api, { ...api, name: 'other', url: 'https://$' + '{UNSET}.example' }],
  });
}

async function tried(t: TestContext, text: string, ...args: string[]) {
  const cwd = await folderWith(t, { 'c.yaml': text });
  return runCli(t, ['try', 'prices/eth', '-c', 'c.yaml', ...args], { cwd, env: SECRET });
}

describe('try', () => {
  it('asks with no number that was rounded, and takes each parameter once', async (t) => {
    upstream.text('/price', '1');
    const text = config({ parameters: [{ name: 'depth', schema: { type: 'integer' } }] });
    const refused = async (...args: string[]) => {
      const { code, stderr } = await tried(t, text, ...args);
      assert.deepEqual([code, upstream.requests], [1, []]);
      return stderr;
    };
    const inexact = 'error: prices/eth: 400 Invalid parameter: depth (send this number as a string)\n';
    assert.equal(await refused('--param', 'depth=12345678901234567890123'), inexact);
    const twice = 'error: option --param <name=text> gives "depth" more than once\n';
    assert.equal(await refused('--param', 'depth=1', '--param', 'depth=2'), twice);
    const cwd = await folderWith(t, { 'c.yaml': text });
    const { stderr } = await runCli(t, ['try', 'eth', '-c', 'c.yaml'], { cwd, env: SECRET });
    assert.match(stderr, /c\.yaml: there is no endpoint eth, did you mean "prices\/eth"\?\n$/);
  });

  it('says where a redirect leads, without its query', async (t) => {
    for (const [location, to] of [
      ['https://me:secret@other.example/v2/price?key=secret', ' to https://other.example/v2/price'],
      ['../v2/price#secret', ` to ${upstream.url}/v2/price`],
      ['//other.example', ' to http://other.example/'],
      ['http://', ''],
    ] as const) {
      upstream.on('/price', faults.redirect(location, 307));
      const { code, stderr } = await tried(t, config({}));
      const said = `error: prices/eth: 502 API call failed (upstream status 307${to})\n`;
      assert.deepEqual([code, stderr], [1, said]);
    }
  });

  it('says which parameters the endpoint does not take', async (t) => {
    upstream.text('/price', '1');
    const text = config({ parameters: [{ name: 'symbol', default: 'ETH' }] });
    const message = 'the endpoint takes no parameter "simbol", did you mean "symbol"?';
    const { code, stderr } = await tried(t, text, '--param', 'simbol=BTC');
    assert.deepEqual([code, stderr], [0, `warning: ${message}\n`]);
    const { stdout } = await tried(t, text, '--param', 'simbol=BTC', '--json');
    assert.deepEqual(JSON.parse(stdout).warnings, [message]);
  });

  it('asks once, and prints the answer, its paths, and what each would sign, digit by digit', async (t) => {
    const answer =
      '{"price":2064.012345678901234567,"n":"12","odd":{"a b":[1.5,true]},"to":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","none":null}';
    upstream.text('/price', answer);
    const parameters = [
      { name: 'symbol', required: true },
      { name: 'depth', schema: { type: 'integer' } },
      { name: 'key', fixed: '$' + '{QUERY_KEY}', secret: true },
    ];
    const encoding = { type: 'int256', path: '$.price', times: '1e2' };
    const run = await tried(t, config({ parameters, encoding }), '--param', 'symbol=ETH', '--param', 'depth=5');
    assert.deepEqual([run.code, run.stderr], [0, '']);
    assert.equal(
      run.stdout,
      `GET ${upstream.url}/price?symbol=ETH&depth=5&key=***

{
  "n": "12",
  "none": null,
  "odd": {
    "a b": [
      1.5,
      true
    ]
  },
  "price": 2064.012345678901234567,
  "to": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
}

PATH             VALUE                                         TYPE     TIMES  WOULD SIGN
$.n              "12"                                          int256          12
$.odd['a b'][0]  1.5                                           int256   1e18   1500000000000000000
$.odd['a b'][1]  true                                          bool            true
$.price          2064.012345678901234567                       int256   1e18   2064012345678901234567
$.to             "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  address         0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266

As configured, int256 of $.price: 206401
`,
    );
    assert.deepEqual(
      upstream.requests.map(({ path, headers }) => [path, headers.authorization]),
      [['/price?symbol=ETH&depth=5&key=of%20the%2Fquery', SECRET.KEY]],
    );
  });

  it('shows each number as the upstream wrote it, also as JSON', async (t) => {
    upstream.text(
      '/price',
      '{"b":9007199254740993.5,"z":12345678901234567890123,"s":"1.10 \\" 2","f":1.10,"e":-1E3,"n":[0.30000000000000001]}',
    );
    const text = config({ encoding: { type: 'uint256', path: '$.z' } });
    const { stdout } = await tried(t, text);
    const rows = stdout
      .split('WOULD SIGN\n')[1]
      ?.split('\n')
      .slice(0, 6)
      .map((row) => row.split(/ {2,}/));
    assert.deepEqual(rows, [
      ['$.b', '9007199254740993.5', 'int256', '1e18', '9007199254740993500000000000000000'],
      ['$.e', '-1E3', 'int256', '-1000'],
      ['$.f', '1.10', 'int256', '1e18', '1100000000000000000'],
      ['$.n[0]', '0.30000000000000001', 'int256', '1e18', '300000000000000010'],
      ['$.s', '"1.10 \\" 2"', 'string', '"1.10 \\" 2"'],
      ['$.z', '12345678901234567890123', 'int256', '1e18', '12345678901234567890123000000000000000000'],
    ]);
    assert.match(stdout, /^ {2}"z": 12345678901234567890123$/m);
    const { stdout: json } = await tried(t, text, '--json');
    assert.match(
      json,
      /"data":\{"b":9007199254740993\.5,"e":-1E3,"f":1\.10,"n":\[0\.30000000000000001\],"s":"1\.10 \\" 2","z":12345678901234567890123\}/,
    );
    assert.match(json, /\{"path":"\$\.n\[0\]","value":0\.30000000000000001,/);
  });

  it('sends a body, and shows what would be signed after plugins', async (t) => {
    upstream.on('/price', (_req, res, { body }) => void res.end(body));
    const plugin =
      'export default { name: "twice", hooks: { onAfterApiCall: ({ response }) => ({ data: { twice: response.data.legs[0] * 2 } }) } };';
    const text = config(
      { method: 'POST', parameters: [{ name: 'legs', in: 'body' }] },
      { plugins: [{ source: './twice.mjs' }] },
    );
    const cwd = await folderWith(t, { 'c.yaml': text, 'twice.mjs': plugin });
    const { stdout } = await runCli(t, ['try', 'prices/eth', '-c', 'c.yaml', '--param', 'legs=[21]'], {
      cwd,
      env: SECRET,
    });
    assert.equal(
      stdout,
      `POST ${upstream.url}/price\n{"legs":[21]}\n\n` +
        '{\n  "twice": 42\n}\n\nPATH     VALUE  TYPE    TIMES  WOULD SIGN\n$.twice  42     int256         42\n',
    );
    assert.deepEqual(
      upstream.requests.map(({ body }) => body),
      ['{"legs":[21]}'],
    );
  });

  it('shows an answer that is not as expected, and signs nothing of it', async (t) => {
    upstream.text('/price', '{"price":0}');
    const expect = { schema: { properties: { price: { exclusiveMinimum: 0 } } } };
    const { code, stdout } = await tried(t, config({ encoding: { type: 'int256', path: '$.price' }, expect }));
    const why = 'nothing: unexpected answer: /price must be > 0';
    const shown = '{\n  "price": 0\n}\n\nPATH     VALUE  TYPE    TIMES  WOULD SIGN\n$.price  0      int256         0\n';
    const request = `GET ${upstream.url}/price\n\n`;
    assert.deepEqual([code, stdout], [0, `${request}${shown}\nAs configured, int256 of $.price: ${why}\n`]);
    assert.equal(upstream.requests.length, 1);
    const whole = await tried(t, config({ expect }));
    const refused = 'error: prices/eth: 502 API call failed (unexpected answer: /price must be > 0)\n';
    assert.deepEqual([whole.code, whole.stderr], [1, refused]);
  });

  it('sends a text wherever the schema allows one', async (t) => {
    upstream.on('/price', (_req, res) => void res.end('{}'));
    const free = ['query', 'body'].map((place) => ({ name: `untyped-${place}`, in: place }));
    const typed = ['string', 'integer'].map((type) => ({ name: type, in: 'body', schema: { type } }));
    const parameters = [...free, ...typed, { name: 'either', in: 'body', schema: { type: ['integer', 'string'] } }];
    const given = parameters.flatMap(({ name }) => ['--param', `${name}=5`]);
    await tried(t, config({ method: 'POST', parameters }), ...given);
    assert.deepEqual(
      upstream.requests.map(({ path, body }) => [path, JSON.parse(body)]),
      [['/price?untyped-query=5', { 'untyped-body': 5, string: '5', integer: 5, either: '5' }]],
    );
  });

  it('says what would be refused, and shows nothing to a terminal that it would obey', async (t) => {
    upstream.json('/price', { price: 'n/a \u001b[2J', list: Array.from({ length: 300 }, (_, i) => i) });
    const { stdout } = await tried(t, config({ encoding: { type: 'int256', path: '$.price' } }));
    assert.match(stdout, /\n… \d+ more lines\n\nPATH /);
    assert.match(stdout, /^\$\.list\[2\] +2 +int256 +2\n\$\.price +"n\/a \\u001b\[2J" +string +"n\/a \\u001b\[2J"$/m);
    assert.match(stdout, /\nAs configured, int256 of \$\.price: nothing: .+\n$/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
    assert.doesNotMatch(stdout, /\u001b/);
  });

  it('fails in the words of the service, and tells no secret', async (t) => {
    const failed = async (text: string, ...args: string[]) => {
      const { code, stdout, stderr } = await tried(t, text, ...args);
      assert.deepEqual([code, stdout], [1, '']);
      assert.doesNotMatch(stderr, /upstream-secret/);
      return stderr;
    };
    const required = config({ parameters: [{ name: 'symbol', required: true }] });
    assert.equal(await failed(required), 'error: prices/eth: 400 Missing required parameter(s): symbol\n');
    assert.match(await failed(required, '--param', 'symbol'), /^error: option --param <name=text> must be a name/);
    upstream.on('/price', faults.serverError());
    assert.equal(await failed(config({})), 'error: prices/eth: 502 API call failed (upstream status 500)\n');
    upstream.on('/price', faults.html());
    assert.equal(await failed(config({})), 'error: prices/eth: 502 API call failed (the body is no JSON)\n');
    upstream.text('/price', `"${'x'.repeat(1024 * 1024)}"`);
    assert.match(await failed(config({})), /^error: prices\/eth: 502 API call failed \(too-large: /);
    assert.match(await failed(config({ name: 'btcusd' })), /c\.yaml: there is no endpoint prices\/eth\n$/);
    assert.match(
      await failed(config({ name: 'ethh' })),
      /c\.yaml: there is no endpoint prices\/eth, did you mean "prices\/ethh"\?\n$/,
    );
    assert.match(
      await failed(config({ path: '/{' })),
      /apis\[0\]\.endpoints\[0\]\.path: holds a brace without its counterpart/,
    );
  });
});
