/** What a hook returns takes effect as documented, and anything else drops the request. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { inspect } from 'node:util';
import { suite } from '../support/lifetime.ts';
import { acts, hostileThrows, notes, puppetFile, revokedProxy, throwingProxy } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { tidy } from '../support/tidy.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

const DROPPED = [403, { error: 'Request dropped by plugin "puppet"' }];
const MUTATIONS = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign'] as const;
type Mutation = (typeof MUTATIONS)[number];

const parameters = [
  { name: 'q', in: 'query', required: true },
  { name: 'note', in: 'body' },
];
const endpoints = {
  encoded: { path: '/price', parameters, encoding: { type: 'uint256', path: '$.price' } },
  raw: { path: '/price', parameters: [] },
};
const { upstream, service } = await served(suite, endpoints, {
  answers: { '/price': faults.json({ price: 7 }) },
  sources: { puppet: puppetFile('puppet') },
  // Checking some of the results takes long where others have the processor.
  entries: { puppet: { timeout: 30_000 } },
  api: { auth: { type: 'apiKey', keys: ['k'] } },
});

beforeEach(() => tidy(service, upstream));

const encoded = (parameters: unknown = { q: 'a' }) => service.post('api/encoded', parameters, { 'X-Api-Key': 'k' });
const raw = () => service.post('api/raw', {}, { 'X-Api-Key': 'k' });
const on = (hook: string, act: (context: Readonly<Record<string, unknown>>) => unknown) => {
  acts.set(`puppet ${hook}`, act);
};

async function outcome(response: Response): Promise<[number, unknown]> {
  assert.equal(response.headers.get('content-type'), 'application/json');
  const text = await response.text();
  assert.ok(!text.includes('LEAK'), text);
  return [response.status, JSON.parse(text)];
}

/** The request is dropped, with the plugin's name and nothing else, and observers learn the stage. */
async function assertDropped(hook: Mutation, what: string): Promise<void> {
  on('onError', ({ stage, status, error }) => {
    notes.add('error', [stage, status, (error as Error).message]);
  });
  assert.deepEqual(await outcome(await encoded()), DROPPED, what);
  assert.deepEqual(await notes.until('error'), [[hook, 403, 'Request dropped by plugin "puppet"']], what);
  assert.equal(upstream.requests.length, hook === 'onHttpRequest' || hook === 'onBeforeApiCall' ? 0 : 1, what);
  acts.clear();
  notes.clear();
  upstream.requests.length = 0;
}

describe('onHttpRequest may reject', () => {
  it('with 403 by default, before authentication and before any API call', async () => {
    on('onHttpRequest', () => ({ reject: true }));
    const [status, body] = await outcome(await service.post('api/encoded', { q: 'a' }));
    assert.equal(status, 403);
    assert.deepEqual(Object.keys(body as object), ['error']);
    assert.equal(upstream.requests.length, 0);
  });

  it('with the status and message given', async () => {
    for (const [status, message] of [
      [400, 'no'],
      [451, 'Not "here"\n\u2028'],
      [599, ''],
    ] as const) {
      on('onHttpRequest', async () => ({ reject: true, status, message }));
      assert.deepEqual(await outcome(await encoded()), [status, { error: message }]);
    }
  });

  it('or not: undefined and {reject: false} pass', async () => {
    for (const value of [undefined, { reject: false }, { reject: false, status: 403 }]) {
      on('onHttpRequest', () => value);
      await verifyEncoded(await encoded(), service.signer.address);
    }
  });

  it('on requests that authentication or validation would refuse too', async () => {
    on('onHttpRequest', ({ parameters }) => {
      notes.add('seen', parameters);
    });
    const refused = [401, { error: 'Missing X-Api-Key header' }];
    assert.deepEqual(await outcome(await service.post('api/encoded', { undeclared: [1] })), refused);
    assert.deepEqual(await outcome(await encoded({})), [400, { error: 'Missing required parameter(s): q' }]);
    assert.deepEqual(notes.of('seen'), [{ undeclared: [1] }, {}]);
  });
});

describe('onAfterApiCall changes what was answered', () => {
  it('data of any JSON kind, undefined members being absent', async () => {
    const kinds = [null, 0, -0, '', 'x', false, [], {}, [1, [2, { a: null }]], JSON.parse('{"__proto__": {"a": 1}}')];
    for (const data of kinds) {
      on('onAfterApiCall', () => ({ data }));
      const { rawData } = await verifyRaw(await raw(), service.signer.address);
      assert.equal(JSON.stringify(rawData), JSON.stringify(data));
    }
    on('onAfterApiCall', () => ({ data: { kept: 1, gone: undefined, list: [undefined] } }));
    assert.deepEqual((await verifyRaw(await raw(), service.signer.address)).rawData, { kept: 1, list: [null] });
  });

  it('a status that is not 2xx is never signed', async () => {
    for (const status of [100, 199, 300, 304, 404, 500, 599]) {
      on('onAfterApiCall', () => ({ data: { price: 1 }, status }));
      assert.deepEqual(await outcome(await encoded()), [502, { error: 'API call failed' }], String(status));
    }
    for (const status of [200, 204, 299]) {
      on('onAfterApiCall', () => ({ data: { price: 1 }, status }));
      const { data } = await verifyEncoded(await encoded(), service.signer.address);
      assert.equal(BigInt(data), 1n);
    }
  });
});

describe('onBeforeSign changes what is signed', () => {
  it('to any whole number of hex bytes', async () => {
    for (const data of ['0x', '0xab', '0xAbCd', `0x${'11'.repeat(1000)}`]) {
      on('onBeforeSign', () => ({ data }));
      const body = await verifyEncoded(await encoded(), service.signer.address);
      assert.equal(body.data, data);
    }
  });

  it('or leaves it with undefined', async () => {
    on('onBeforeSign', async () => undefined);
    assert.equal(BigInt((await verifyEncoded(await encoded(), service.signer.address)).data), 7n);
  });
});

/** `depth` levels of an array that holds the level below twice: 2^depth values out of a few objects. */
function exponential(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = [value, value];
  return value;
}

function cyclic(): object {
  const circle: Record<string, unknown> = {};
  circle.self = { circle };
  return circle;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = { value };
  return value;
}

class Instance {
  readonly price = 1;
}

type Values = Readonly<Record<string, () => unknown>>;
/** Values, by what the log says of them. */
type Said = Readonly<Record<string, Values>>;

/** What is said of a proxy is said by JavaScript. */
const ANYTHING = '';
const proxies: Values = { 'a proxy that throws': throwingProxy, 'a revoked proxy': revokedProxy };

const TOO_MUCH = 'is too deep, too large or in a cycle';
const FUNCTION = 'holds a function, which JSON cannot carry';

/** Values that JSON cannot carry unchanged, and that are no plain objects. */
const noObjects: Said = {
  'holds a number, which JSON cannot carry': { NaN: () => Number.NaN, Infinity: () => Number.POSITIVE_INFINITY },
  'holds a bigint, which JSON cannot carry': { 'a bigint': () => 1n },
  'holds a symbol, which JSON cannot carry': { 'a symbol': () => Symbol('x') },
  [FUNCTION]: { 'a function': () => () => 1 },
  'holds a class instance': {
    'a date': () => new Date(),
    'a map': () => new Map(),
    'a buffer': () => Buffer.from('x'),
    'an error': () => new Error('LEAK'),
    'a promise': () => Promise.resolve(1),
    'a boxed number': () => Object(1),
    'a class instance': () => new Instance(),
  },
  [TOO_MUCH]: {
    'an exponential structure': () => exponential(64),
    'an array of four thousand million holes': () => new Array(2 ** 32 - 1),
  },
};

/** The same of plain objects. */
const objects: Said = {
  [FUNCTION]: { 'a toJSON method': () => ({ toJSON: () => 1 }) },
  [TOO_MUCH]: {
    'a cycle': cyclic,
    'nesting too deep': () => nested(1000),
    'nesting that would end the stack': () => nested(1_000_000),
  },
  LEAK: {
    'a getter that throws': () => ({
      get price() {
        throw new Error('LEAK');
      },
    }),
  },
  [ANYTHING]: proxies,
};

const common: Values = {
  null: () => null,
  'a number': () => 0,
  'a text': () => 'LEAK',
  'an empty text': () => '',
  true: () => true,
  false: () => false,
  'a bigint': () => 1n,
  'a symbol': () => Symbol('LEAK'),
  'a function': () => () => undefined,
  'an array': () => [],
  'an empty object': () => ({}),
  'another key': () => ({ rejected: true, response: {}, bytes: '0x' }),
};

const at = (key: string, values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).map(([what, make]) => [`${what} in "${key}"`, () => ({ [key]: make() })] as const),
  );
const each = (key: string, values: readonly unknown[], more = {}): Values =>
  Object.fromEntries(values.map((value) => [`${key} ${inspect(value)}`, () => ({ ...more, [key]: value })] as const));
const mapped = (said: Said, change: (values: Values) => Values): Said =>
  Object.fromEntries(Object.entries(said).map(([reason, values]) => [reason, change(values)]));
const inValue = (values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).map(([what, make]) => [`${what} in a value`, () => ({ parameters: { q: make() } })]),
  );

const wrong: Readonly<Record<Mutation, readonly Said[]>> = {
  onHttpRequest: [
    {
      'returned no object with "reject"': common,
      '"reject" is no boolean': each('reject', ['yes', 1, null, undefined]),
      '"status" is no HTTP error status': each('status', [200, 302, 399, 600, 403.5, Number.NaN, '403', null], {
        reject: true,
      }),
      '"message" is no string': each('message', [7, null, { LEAK: 1 }], { reject: true }),
      '"message" is longer than 8192 characters': {
        'a long message': () => ({ reject: true, message: 'x'.repeat(8193) }),
      },
      [ANYTHING]: {
        ...proxies,
        'a getter that throws': () => ({
          get reject() {
            throw throwingProxy();
          },
        }),
      },
    },
  ],
  onBeforeApiCall: [
    {
      'returned no object with "parameters"': common,
      '"parameters" is no object': {
        ...at('parameters', { null: () => null, 'a text': () => 'q=1', 'an array': () => [['q', 1]] }),
        ...each('parameters', [undefined, 1]),
        ...Object.assign({}, ...Object.values(noObjects).map((values) => at('parameters', values))),
      },
      [ANYTHING]: proxies,
    },
    mapped(objects, (values) => at('parameters', values)),
    mapped(noObjects, inValue),
    mapped(objects, inValue),
  ],
  onAfterApiCall: [
    {
      'returned no object with "data"': { ...common, 'no data, but a status': () => ({ status: 200 }) },
      'holds a undefined, which JSON cannot carry': each('data', [undefined]),
      '"status" is no HTTP status': each('status', [99, 600, '200', null, 200.5], { data: {} }),
      [ANYTHING]: proxies,
    },
    mapped(noObjects, (values) => at('data', values)),
    mapped(objects, (values) => at('data', values)),
  ],
  onBeforeSign: [
    {
      'returned no object with "data"': common,
      '"data" is no hex string of whole bytes': {
        ...each('data', [null, undefined, 17, '', '0', '0x1', '0X12', '1234', '0xzz', '0x12 ', '0x12\n', ['0x12']]),
        ...each('data', [Buffer.from([1]), Object('0x12')]),
      },
      [ANYTHING]: proxies,
    },
  ],
};

/** The log names the reason of each failure, with its class and the place behind it. */
function assertLogged(reason: string, what: string): void {
  const details = service.logs.flatMap(({ fields: { detail } }) => (detail === undefined ? [] : [String(detail)]));
  assert.ok(details.length > 0, what);
  for (const detail of details)
    if (reason !== ANYTHING) assert.equal(detail.split('\n', 1)[0], `Error: ${reason}`, what);
}

for (const hook of MUTATIONS) {
  describe(`${hook}: a result of the wrong shape is 403 \`Request dropped by plugin "<name>"\``, () => {
    for (const [reason, values] of wrong[hook].flatMap(Object.entries<Values>))
      for (const [what, make] of Object.entries(values)) {
        it(`${what}: ${reason || 'its own words'}`, async () => {
          on(hook, make);
          await assertDropped(hook, 'returned');
          on(hook, async () => make());
          await assertDropped(hook, 'resolved');
          assertLogged(reason, what);
        });
      }
  });

  describe(`${hook}: whatever it throws is 403 \`Request dropped by plugin "<name>"\` and never reaches the client`, () => {
    for (const [what, make] of Object.entries(hostileThrows)) {
      it(what, async () => {
        on(hook, () => {
          throw make();
        });
        await assertDropped(hook, 'thrown');
        on(hook, () => Promise.reject(make()));
        await assertDropped(hook, 'rejected');
      });
    }

    it('a promise of another make that fails on its way', async () => {
      const thenables: Readonly<Record<string, () => object>> = {
        'then throws': () => ({
          // biome-ignore lint/suspicious/noThenProperty: a hostile thenable is what is tested
          then() {
            throw throwingProxy();
          },
        }),
        'then is a getter that throws': () => ({
          // biome-ignore lint/suspicious/noThenProperty: a hostile thenable is what is tested
          get then() {
            throw throwingProxy();
          },
        }),
        'then rejects with nothing': () => ({
          // biome-ignore lint/suspicious/noThenProperty: a hostile thenable is what is tested
          then: (_: unknown, reject: (error?: unknown) => void) => reject(),
        }),
        'then answers twice and throws': () => ({
          // biome-ignore lint/suspicious/noThenProperty: a hostile thenable is what is tested
          then(resolve: (value: unknown) => void, reject: (error: unknown) => void) {
            resolve(throwingProxy());
            reject(new Error('LEAK'));
            throw new Error('LEAK');
          },
        }),
      };
      for (const [what, make] of Object.entries(thenables)) {
        on(hook, make);
        await assertDropped(hook, what);
      }
    });

    it('and the next request is served', async () => {
      await verifyEncoded(await encoded(), service.signer.address);
    });
  });
}

it('a dropped request is in the log at a level that operators see, with plugin and reason', async () => {
  on('onBeforeSign', () => {
    throw new TypeError('the oracle is out');
  });
  service.logs.length = 0;
  const response = await encoded();
  assert.deepEqual(await outcome(response), DROPPED);
  const line = service.logs.find(({ level, message, fields }) => {
    return (
      (level === 'warn' || level === 'error') && `${message}${JSON.stringify(fields)}`.includes('the oracle is out')
    );
  });
  assert.ok(line !== undefined, JSON.stringify(service.logs));
  assert.match(`${line.message}${JSON.stringify(line.fields)}`, /puppet/);
  assert.match(`${line.message}${JSON.stringify(line.fields)}`, /onBeforeSign/);
  assert.equal(line.fields.requestId, response.headers.get('x-request-id'));
});

it('what a hook keeps of its context or its result changes nothing later', async () => {
  const list = [1];
  const data: Record<string, unknown> = { price: 1, list };
  on('onAfterApiCall', () => {
    queueMicrotask(() => {
      data.price = 2;
      list.push(2);
    });
    return { data };
  });
  const { rawData } = await verifyRaw(await raw(), service.signer.address);
  assert.deepEqual(rawData, { price: 1, list: [1] });
});
