/** An endpoint ID changes with each part of its specification, and with nothing else. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import canonicalize from 'canonicalize';
import { keccak256, toUtf8Bytes } from 'ethers';
import { loadObject } from '../support/config.ts';
import { type Block, oneApi } from '../support/service.ts';

const CONTRACT = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const settings = {
  fhe: { network: 'sepolia', rpcUrl: 'https://rpc.example', verifier: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
};
const URL = 'https://api.example.com/v1';

const parameters: readonly Block[] = [
  { name: 'symbol', in: 'path', required: true },
  { name: 'currency', default: 'usd' },
  { name: 'X-Tier', in: 'header', fixed: 'gold' },
  { name: 'currency', in: 'body', default: 1.5 },
  { name: 'flag', fixed: false },
  { name: 'key', fixed: '${KEY}' },
  { name: 'token', in: 'cookie', default: 'hidden', secret: true },
  { name: 'Ünï', in: 'query' },
];
const encoding = { type: 'uint256', path: '$.price', times: '*' };
const endpoint: Block = {
  path: '/price/{symbol}',
  method: 'POST',
  parameters,
  encoding,
  encrypt: { type: 'euint64', contract: CONTRACT },
};

/** The hashed specification as the decisions describe it, written down by hand. */
const specification = {
  url: 'https://api.example.com/v1',
  path: '/price/{symbol}',
  method: 'POST',
  parameters: [
    { name: 'X-Tier', in: 'header', required: false, secret: false, fixed: 'gold' },
    { name: 'currency', in: 'body', required: false, secret: false, default: 1.5 },
    { name: 'currency', in: 'query', required: false, secret: false, default: 'usd' },
    { name: 'flag', in: 'query', required: false, secret: false, fixed: false },
    { name: 'key', in: 'query', required: false, secret: true },
    { name: 'symbol', in: 'path', required: true, secret: false },
    { name: 'token', in: 'cookie', required: false, secret: true },
    { name: 'Ünï', in: 'query', required: false, secret: false },
  ],
  encoding,
  encrypt: { type: 'euint64', contract: CONTRACT.toLowerCase() },
};

const least = { url: 'http://a.example', path: '/x', method: 'GET', parameters: [], encoding: null, encrypt: null };

const hash = (spec: unknown) => keccak256(toUtf8Bytes(canonicalize(spec) ?? ''));

async function load(config: Block, env: Record<string, string> = { KEY: 'k1' }) {
  const { explained } = await loadObject({ settings, ...config }, env);
  const [first] = explained;
  assert.ok(first !== undefined);
  return { id: first.endpoint.id, text: first.text };
}

const idOf = async (
  own: Block,
  { url = URL, env, api = {} }: { url?: string; env?: Record<string, string>; api?: Block } = {},
) => (await load(oneApi(url, { e: own }, { api }), env)).id;

describe('endpoint IDs', () => {
  it('is keccak256 of the canonical JSON of the specification, computed independently', async () => {
    const { id, text } = await load(oneApi(URL, { e: endpoint }));
    assert.equal(text, canonicalize(specification));
    assert.equal(id, hash(specification));
    assert.equal(id, `0x${id.slice(2).toLowerCase()}`);
  });

  it('the least specification', async () => {
    const { id, text } = await load(oneApi('http://a.example', { e: { path: '/x' } }));
    assert.equal(text, canonicalize(least));
    assert.equal(id, hash(least));
    const encoding = { type: 'bool', path: '$.a' };
    for (const more of [{}, { receipt: true }, { receipt: false }]) {
      const encoded = await load(oneApi('http://a.example', { e: { path: '/x', encoding, ...more } }));
      assert.equal(encoded.id, hash({ ...least, encoding: { ...encoding, times: null } }));
    }
  });

  it('what not every specification has is in it only where it is set', async () => {
    const plain = { name: 'q', in: 'query', required: false, secret: false };
    const body = { ...plain, in: 'body' };
    const encoding = { type: 'int256', path: '$.a,$.b' };
    const map = { b: 'x', a: 'y' };
    const one = (parameter: Block, more: Block = {}) => ({ parameters: [parameter], ...more });
    const cases: [own: Block, hashed: Block][] = [
      [{ encoding: { ...encoding, combine: 'mean' } }, { encoding: { ...encoding, times: null, combine: 'mean' } }],
      [{ encoding: { ...encoding, path: '$.a' } }, { encoding: { ...encoding, path: '$.a', times: null } }],
      [one({ name: 'q', map }), one({ ...plain, map })],
      [one({ name: 'q', map, secret: true }), one({ ...plain, secret: true })],
      [one({ name: 'q', in: 'none', required: true }), one({ ...plain, in: 'none', required: true })],
      [one({ name: 'q', style: 'comma', default: [1] }), one({ ...plain, style: 'comma', default: [1] })],
      [
        one({ name: 'q', in: 'body', nested: false }, { bodyType: 'json', method: 'POST' }),
        one(body, { method: 'POST' }),
      ],
      [
        { parameters: [{ name: 'q', in: 'body' }, { name: 'q' }], bodyType: 'form', method: 'POST' },
        { parameters: [{ ...body, form: true }, plain], method: 'POST' },
      ],
      [
        one({ name: 'q', in: 'body', nested: true, fixed: [{ y: 1, x: null }] }, { method: 'POST' }),
        one({ ...body, nested: true, fixed: [{ x: null, y: 1 }] }, { method: 'POST' }),
      ],
    ];
    for (const [own, hashed] of cases) {
      const { text } = await load(oneApi('http://a.example', { e: { path: '/x', ...own } }));
      assert.equal(text, canonicalize({ ...least, ...hashed }));
    }
  });

  it('defaults that are written out, and `secret: false`, change nothing', async () => {
    const short = { path: '/x', parameters: [{ name: 'a' }] };
    const long = { name: 'a', in: 'query', required: false, secret: false };
    assert.equal(await idOf({ path: '/x', method: 'GET', mode: 'sync', parameters: [long] }), await idOf(short));
  });

  /** The endpoint with these changes of the parameter of that name. */
  const change = (name: string, changed: Block) => ({
    ...endpoint,
    parameters: parameters.map((p) => (p.name === name ? { ...p, ...changed } : p)),
  });
  const encrypted = (contract: string, type = 'euint64') => ({ ...endpoint, encrypt: { type, contract } });

  it('two configurations of one specification give one ID', async () => {
    const id = await idOf(endpoint);
    const described = parameters.map((parameter) => ({ ...parameter, description: 'Für Menschen' }));
    const same: [string, Block, Parameters<typeof idOf>[1]?][] = [
      ['parameters in another order', { ...endpoint, parameters: [...parameters].reverse() }],
      ['descriptions', { ...endpoint, description: 'text', parameters: described }],
      ['a trailing slash', endpoint, { url: `${URL}/` }],
      ['another value of a secret variable', endpoint, { env: { KEY: 'another' } }],
      ['another secret default', change('token', { default: 'x' })],
      ['a secret without a default', change('token', { default: undefined })],
      ['`secret: true` written out', change('key', { secret: true })],
      ['a contract in lower case', encrypted(CONTRACT.toLowerCase())],
      ['a contract in upper case', encrypted(`0x${CONTRACT.slice(2).toUpperCase()}`)],
      ['another mode', { ...endpoint, mode: 'stream' }],
      ['what must not be cut', { ...endpoint, encoding: { ...encoding, exact: true } }],
      ['what may be cut', { ...endpoint, encoding: { ...encoding, exact: false } }],
      ['what clients may send', { ...change('symbol', { schema: { type: 'string' } }), strictParameters: true }],
      ['what an answer must be', { ...endpoint, expect: { schema: {}, fresh: { path: '$.time', maxAge: 1000 } } }],
      [
        'calls of the upstream',
        endpoint,
        { api: { quota: { perDay: 1 }, shareFor: '1s', mirrors: ['https://b.example'] } },
      ],
      [
        'auth, cache, timeout and headers',
        { ...endpoint, auth: { type: 'apiKey', keys: ['k'] }, cache: { maxAge: 1 } },
        { api: { timeout: 5, headers: { a: 'b' } } },
      ],
    ];
    for (const [what, own, options] of same) assert.equal(await idOf(own, options), id, what);
    const renamed = oneApi(URL, { 'another name': { ...endpoint } }, { api: { name: 'another API' } });
    assert.equal((await load(renamed)).id, id);
    const later = oneApi(URL, { first: { path: '/other' }, e: endpoint });
    assert.ok((await loadObject({ settings, ...later }, { KEY: 'k' })).endpoints.some((found) => found.id === id));
  });

  const { encrypt: _, ...plain } = endpoint;
  const variants: [string, Block, Parameters<typeof idOf>[1]?][] = [
    ['nothing', endpoint],
    ['host', endpoint, { url: 'https://api2.example.com/v1' }],
    ['scheme', endpoint, { url: 'http://api.example.com/v1' }],
    ['prefix', endpoint, { url: 'https://api.example.com/v2' }],
    ['path', { ...endpoint, path: '/prices/{symbol}' }],
    ['trailing slash of the path', { ...endpoint, path: '/price/{symbol}/' }],
    ['method', { ...endpoint, method: 'PUT' }],
    ['type of the encoding', { ...endpoint, encoding: { type: 'int256', path: '$.price', times: '*' } }],
    ['path of the encoding', { ...endpoint, encoding: { type: 'uint256', path: '$.price.v', times: '*' } }],
    ['times pinned', { ...endpoint, encoding: { type: 'uint256', path: '$.price', times: '1e18' } }],
    ['times absent', { ...endpoint, encoding: { type: 'uint256', path: '$.price' } }],
    ['encrypt removed', plain],
    ['no encoding', { ...plain, encoding: undefined }],
    ['type delegated', { ...plain, encoding: { type: '*', path: '$.price', times: '*' } }],
    ['path delegated', { ...plain, encoding: { type: 'uint256', path: '*', times: '*' } }],
    ['encrypt type', encrypted(CONTRACT, 'euint32')],
    ['encrypt contract', encrypted(CONTRACT.replace('0x3C', '0x4c').toLowerCase())],
    ['a parameter more', { ...endpoint, parameters: [...parameters, { name: 'more' }] }],
    ['a parameter less', { ...endpoint, parameters: parameters.slice(0, -1) }],
    ['a name', change('Ünï', { name: 'Uni' })],
    ['a secret name', change('key', { name: 'apikey' })],
    ['a place', change('Ünï', { in: 'header', name: 'Uni' })],
    ['required', change('Ünï', { required: true })],
    ['secret', change('Ünï', { secret: true })],
    ['a fixed value', change('X-Tier', { fixed: 'silver' })],
    ['a fixed value from a variable', change('X-Tier', { fixed: 'g${KEY}' }), { env: { KEY: 'old' } }],
    ['the type of a fixed value', change('flag', { fixed: 'false' })],
    ['a default', change('symbol', { required: false, default: 'ETH' })],
    ['a fixed empty text', change('Ünï', { fixed: '' })],
  ];

  it('every change of the specification changes it', async () => {
    const ids = new Map<string, string>();
    for (const [what, own, options] of variants) {
      const id = await idOf(own, options);
      assert.equal(ids.get(id), undefined, `${what} gives the same ID as ${ids.get(id)}`);
      ids.set(id, what);
    }
  });

  it('sorting is by code units, not by locale', async () => {
    const names = ['b', 'B', 'a', 'A', 'ä', 'Z', '_', '10', '9', '\u{1f600}', '\ufb33'];
    const { text } = await load(oneApi(URL, { e: { path: '/x', parameters: names.map((name) => ({ name })) } }));
    const hashed = JSON.parse(text).parameters.map(({ name }: { name: string }) => name);
    assert.deepEqual(hashed, ['10', '9', 'A', 'B', 'Z', '_', 'a', 'b', 'ä', '\u{1f600}', '\ufb33']);
  });

  it('secret values are in no hashed text', async () => {
    const { text } = await load(oneApi(URL, { e: endpoint }), { KEY: 'TOP-SECRET' });
    assert.ok(!text.includes('TOP-SECRET') && !text.includes('hidden'));
    const inside = {
      path: '/x',
      parameters: [
        { name: 'a', fixed: 'Bearer ${KEY}' },
        { name: 'b', fixed: '$${KEY}' },
      ],
    };
    const { text: partly } = await load(oneApi(URL, { e: inside }), { KEY: 'TOP-SECRET' });
    assert.deepEqual(JSON.parse(partly).parameters, [
      { name: 'a', in: 'query', required: false, secret: true },
      { name: 'b', in: 'query', required: false, secret: false, fixed: '${KEY}' },
    ]);
  });
});
