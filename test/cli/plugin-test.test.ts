/** `plugin test` runs a plugin through its hooks, and shows what each changes. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { difference } from '../../cli/plugin/difference.ts';
import { loadPlugin } from '../../cli/plugin/load.ts';
import { type RecordedRequest, readRecord } from '../../cli/plugin/record.ts';
import { runRecorded } from '../../cli/plugin/run.ts';
import type { PublicHooks } from '../../plugins-sdk/hooks/contexts.ts';
import { type Behaviour, definePlugin, Refusal, Type } from '../../plugins-sdk/index.ts';
import { definitions } from '../../service/index.ts';
import { type Ended, folderWith, PACKAGE_ROOT, runCli } from './run.ts';

const TEMPLATE = join(PACKAGE_ROOT, 'cli/plugin/template/hooks/my-plugin.ts');

/** What was printed, without the times that nobody can know. */
function untimed({ stdout }: Ended): string[] {
  return stdout.split('\n').map((line) => line.replace(/\d+\.\d ms/, 'N ms').replace(/ {2,}/g, ' '));
}

const nothing = () => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const builtins = definitions();
const encoder = builtins.find(({ name }) => name === 'encode-abi') ?? assert.fail('no encoder');
const credentials = builtins.flatMap((builtin) => builtin.credentials ?? []);

/** What becomes of each hook of a plugin `p`; a fault is marked. */
async function outcomes(
  hooks: Partial<PublicHooks>,
  record: RecordedRequest = {},
  budget: number | 'none' = 'none',
): Promise<Record<string, string>> {
  const definition = definePlugin({ name: 'p', setup: () => ({ hooks }) });
  const choice = { definition, budget, config: undefined, source: './p.ts', operator: true };
  const steps = await runRecorded({ choice, record, encoder, credentials, log, patience: 10_000 });
  return Object.fromEntries(steps.map(({ name, text, fault }) => [name, `${fault ? 'FAULT ' : ''}${text}`]));
}

/** What becomes of each stage of a full plugin `p`, in order. */
async function stepsOf(behaviour: Behaviour, record: RecordedRequest): Promise<[string, string][]> {
  const auth = { tenant: Type.Object({}) };
  const definition = definePlugin({ name: 'p', auth, modes: ['slow'], setup: () => behaviour });
  const choice = { definition, budget: 10_000, config: undefined, source: './p.ts', operator: true };
  const steps = await runRecorded({ choice, record, encoder, credentials, log, patience: 10_000 });
  return steps.map(({ name, text, fault }) => [name, withoutPlace(`${fault ? 'FAULT ' : ''}${text}`)]);
}

const withoutPlace = (text = '') => text.replace(/ \(at .*\)$/, ' (at …)');

const MALFORMED = 'config.slow: malformed variable reference: write ${NAME}, or $${ for the text ${';

describe('plugin test, on the command line', () => {
  it('passes a sample through the hooks of a plugin that lies in any folder', async (t) => {
    const cwd = await folderWith(t);
    const { code } = await runCli(t, ['plugin', 'new', 'mine'], { cwd });
    assert.equal(code, 0);
    const ended = await runCli(t, ['plugin', 'test', 'mine.ts', '--timeout', '5000'], { cwd });
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /^failed in callApi: 502 API call failed, request 0x[0-9a-f]{64}\n$/);
    assert.deepEqual(untimed(ended), [
      'plugin mine: 5000 ms for all hooks of a request',
      'request a sample: prices/eth-usd',
      '',
      'HOOK SPENT OUTCOME',
      'onHttpRequest N ms passed',
      'onBeforeApiCall N ms passed',
      'onAfterApiCall N ms passed',
      'onBeforeSign N ms passed',
      'onResponseSent N ms done',
      'onError N ms done with 502 API call failed',
      '',
    ]);
  });

  it('takes a recorded request and a config, variables replaced', async (t) => {
    const cwd = await folderWith(t, {
      'request.json':
        '{"endpoint": {"api": "a", "name": "e", "encoding": {"type": "uint8", "path": "$.p"}},' +
        '"parameters": {"s": " x "}, "response": {"data": {"p": 6.987654321098765432109876}}}',
      'config.yaml': 'minimum: ${DIGITS}\nrequiredHeader: "${HEADER}"\n',
      '.env': 'DIGITS=0\n',
    });
    const args = ['plugin', 'test', TEMPLATE, '-c', 'config.yaml', '--request', 'request.json'];
    const rejected = await runCli(t, args, { cwd, env: { HEADER: 'x-client' } });
    assert.deepEqual(
      [rejected.code, untimed(rejected).slice(1)],
      [
        0,
        [
          'request request.json: a/e',
          '',
          'HOOK SPENT OUTCOME',
          'onHttpRequest N ms rejected: 400 Missing header: x-client',
          'onBeforeApiCall not reached',
          'onAfterApiCall not reached',
          'onBeforeSign not reached',
          'onResponseSent not reached',
          'onError N ms done with 400 Missing header: x-client',
          '',
        ],
      ],
    );
    const allowed = await runCli(t, [...args.slice(0, 3), '-c', '{ minimum: "${DIGITS}" }', ...args.slice(5)], {
      cwd,
    });
    assert.deepEqual(untimed(allowed).slice(4, 8), [
      'onHttpRequest N ms passed',
      'onBeforeApiCall N ms changed s: " x " → "x"',
      'onAfterApiCall N ms passed',
      'onBeforeSign N ms passed',
    ]);
  });

  it('ends with exit code 1 when a hook fails', async (t) => {
    const text = 'export default { name: "bad", hooks: { onError() { throw new Error("a\\u001b[2J"); } } };';
    const cwd = await folderWith(t, { 'bad.mjs': text });
    const ended = await runCli(t, ['plugin', 'test', './bad.mjs'], { cwd });
    assert.deepEqual([ended.code, ended.stderr], [1, '']);
    const [line = ''] = untimed(ended).slice(4);
    const expected = 'onError N ms failed with 502 API call failed: Error: a\\u001b[2J (at …)';
    assert.equal(withoutPlace(line), expected);
    assert.match(line, /\(at .*bad\.mjs:1:\d+\)/);
  });

  it('says in one line each what is wrong', async (t) => {
    const cwd = await folderWith(t, { 'odd.mjs': 'export default { name: "odd", hooks: {} };' });
    const cases: [string[], string[]][] = [
      [['none.ts'], ['plugin "none.ts": there is no such file']],
      [['builtin:cache'], ['"builtin:cache" is part of the service']],
      [
        [TEMPLATE, '-c', '{ minimun: 2, slow: 0 }'],
        [MINIMUM, SLOW],
      ],
      [
        [TEMPLATE, '-c', '{ a: "'],
        ['--config:1:7: a text above begins with " and does not end: write " behind it, and \\" for one inside'],
      ],
      [[TEMPLATE, '-c', 'none.yaml'], [`${cwd}/none.yaml: file not found`]],
      [[TEMPLATE, '--timeout', '1s'], ['option --timeout <ms> must be a whole number']],
    ];
    for (const [args, lines] of cases) {
      const { code, stdout, stderr } = await runCli(t, ['plugin', 'test', ...args], { cwd });
      assert.deepEqual([code, stdout, stderr], [1, '', lines.map((line) => `error: ${line}\n`).join('')]);
    }
  });
});

const OWNED = 'settings.plugins: plugin "owner" cannot own the config key server.port: it belongs to plugin "listener"';
const HEX = '0x and hex digits of whole bytes (pattern ^0x(?:[0-9a-fA-F]{2})*$)';
const UNKNOWN_TYPE = 'endpoint.encoding.type: "int512" is no type: int8 to int256, in steps of 8';
const SLOW = 'config.slow: must be at least 1';
const MINIMUM = 'config.minimun: unknown key, did you mean "minimum"?';

describe('plugin test, on loading', () => {
  it('says what the service would say of a plugin that it cannot load', async (t) => {
    const folder = await folderWith(t, {
      'odd.mjs': 'export default { name: "odd", hooks: { onHttpRequests() {} } };',
      'cache.mjs': 'export default { name: "cache", hooks: {} };',
      'throws.ts': 'throw new Error("no luck");',
      'strict.mjs':
        'export const configSchema = { parse() { throw new Error("never " + "s3cret"); } }; export default () => ({});',
      'owner.mjs':
        'const keys = [{ level: "server", path: "port", schema: { type: "integer" }, of() {}, in() {} }];' +
        'export default { name: "owner", keys, setup: () => ({}) };',
    });
    const load = (source: string, entry: { timeout?: number; config?: unknown } = {}) => {
      const { timeout, config } = entry;
      const env = { SECRET: 's3cret' };
      return loadPlugin({ source, folder, timeout, config, env, builtins: definitions(), patience: 10_000 });
    };
    const cases: [string, object, string[]][] = [
      ['none.ts', {}, ['plugin "none.ts": there is no such file']],
      ['none', {}, ['plugin "none": there is no such package']],
      ['odd.mjs', {}, ['plugin "odd.mjs": unknown hook "onHttpRequests", did you mean "onHttpRequest"?']],
      ['cache.mjs', {}, ['the name "cache" is that of a built-in plugin']],
      ['throws.ts', {}, ['plugin "throws.ts": cannot be loaded: no luck']],
      ['strict.mjs', { config: { key: '${SECRET}' } }, ['config: never ***']],
      ['owner.mjs', { config: {} }, ['config: the plugin takes no config', OWNED]],
      ['owner.mjs', {}, [OWNED]],
      [TEMPLATE, { timeout: 0 }, ['timeout: must be at least 1']],
      [TEMPLATE, { config: { slow: '${TIME}' } }, ['config.slow: the variable TIME is not set']],
      [TEMPLATE, { config: { slow: '${SECRET' } }, [MALFORMED]],
      [TEMPLATE, { config: { minimun: 2, slow: 0 } }, [MINIMUM, SLOW]],
    ];
    for (const [source, entry, lines] of cases) {
      await assert.rejects(load(source, entry), { name: 'ConfigErrors', message: lines.join('\n') });
    }
    const { definition, budget, config } = await load(TEMPLATE, { timeout: 5, config: { slow: 7 } });
    assert.deepEqual([definition.name, budget, config], ['my-plugin', 5, { slow: 7, minimum: 0 }]);
  });

  it('says everything that is wrong with a recorded request', async (t) => {
    const folder = await folderWith(t, {
      'a.yaml':
        'endpont: {}\nparameters: []\nresponse: { data: 1, status: 404 }\nendpoint: { encoding: { type: int256 } }',
      'b.json': '{"ip": "localhost"}',
      'c.json': '{',
      'd.yaml': 'data: "0x123"',
    });
    const cases: [string, string[]][] = [
      [
        'a.yaml',
        [
          'endpont: unknown key, did you mean "endpoint"?',
          'parameters: expected a mapping, found a list',
          'response.status: must be at most 299',
          'endpoint.encoding.path: required key is missing',
        ],
      ],
      ['b.json', ['ip: no IP address']],
      ['c.json', ['malformed JSON']],
      ['d.yaml', [`data: has the wrong form, expected: ${HEX}`]],
    ];
    for (const [file, lines] of cases) {
      const path = join(folder, file);
      await assert.rejects(readRecord(path), { message: lines.map((line) => `${path}: ${line}`).join('\n') });
    }
    const encoding = { type: 'int512', path: '$.a' };
    await assert.rejects(outcomes({}, { endpoint: { encoding } }), { message: UNKNOWN_TYPE });
  });
});

describe('plugin test, through the hooks', () => {
  const encoding = { type: 'uint16', path: '$.p' };
  const word = (hex: string) => `0x${hex.padStart(64, '0')}`;

  it('hands each hook what was recorded and what the hooks before it made of it', async () => {
    const seen: unknown[] = [];
    const record = {
      endpoint: { api: 'a', name: 'e', encoding },
      parameters: { q: 'one' },
      headers: { 'X-Client': 'me', 'X-Api-Key': 'secret' },
      ip: '10.0.0.1',
      response: { data: { p: 1, q: [1, 2] }, status: 201 },
      error: { status: 504, message: 'Late' },
    };
    const told = await outcomes(
      {
        onHttpRequest: ({ api, endpoint, parameters, headers, ip }) => {
          seen.push({ api, endpoint, parameters, headers, ip });
        },
        onBeforeApiCall: ({ parameters }) => ({ parameters: { ...parameters, r: 2 } }),
        onAfterApiCall: ({ parameters, response: { data, status } }) => {
          seen.push({ parameters, data, status });
          return { data: { p: 258 }, status: 200 };
        },
        onBeforeSign: ({ data }) => {
          seen.push(data);
          return { data: '0x0102' };
        },
        onResponseSent: ({ status }) => void seen.push(status),
        onError: ({ status, error, stage }) => void seen.push({ status, message: error.message, stage }),
      },
      record,
    );
    assert.deepEqual(seen, [
      { api: 'a', endpoint: 'e', parameters: { q: 'one' }, headers: { 'x-client': 'me' }, ip: '10.0.0.1' },
      { parameters: { q: 'one', r: 2 }, data: { p: 1, q: [1, 2] }, status: 201 },
      word('102'),
      200,
      { status: 504, message: 'Late', stage: 'callApi' },
    ]);
    assert.deepEqual(told, {
      onHttpRequest: 'passed',
      onBeforeApiCall: 'changed r: added 2',
      onAfterApiCall: 'changed data.p: 1 → 258, data.q: removed, status: 201 → 200',
      onBeforeSign: `changed data: ${JSON.stringify(word('102')).slice(0, 72)} → "0x0102"`,
      onResponseSent: 'done',
      onError: 'done with 504 Late',
    });
  });

  it('encodes with what the client chooses where the endpoint leaves it open', async () => {
    const seen: unknown[] = [];
    const record = {
      endpoint: { encoding: { type: '*', path: '$.p' } },
      parameters: { _type: 'uint256' },
      response: { data: { p: 10 } },
    };
    const onBeforeSign: PublicHooks['onBeforeSign'] = ({ data }) => void seen.push(data);
    assert.deepEqual(await outcomes({ onBeforeSign }, record), { onBeforeSign: 'passed' });
    assert.deepEqual(seen, [word('a')]);
    const without = await outcomes({ onBeforeSign }, { ...record, parameters: {} });
    assert.deepEqual(without, {
      '(encoding)': 'FAULT refused: 400 Endpoint requires `_type` request parameter',
      onBeforeSign: 'not reached',
    });
    // As in the service, the choice is looked at before the upstream is asked.
    const hooks = { onHttpRequest: () => undefined, onBeforeApiCall: () => undefined, onError: () => undefined };
    assert.deepEqual(Object.entries(await outcomes(hooks, { ...record, parameters: {} })), [
      ['onHttpRequest', 'passed'],
      ['(encoding)', 'FAULT refused: 400 Endpoint requires `_type` request parameter'],
      ['onBeforeApiCall', 'not reached'],
      ['onError', 'done with 400 Endpoint requires `_type` request parameter'],
    ]);
  });

  it('says which hook dropped the request, and why', async () => {
    const told = await outcomes({
      onBeforeApiCall: () => {
        throw new RangeError('no');
      },
      onAfterApiCall: () => undefined,
      onError: () => undefined,
    });
    assert.deepEqual(
      { ...told, onBeforeApiCall: withoutPlace(told.onBeforeApiCall) },
      {
        onBeforeApiCall: 'FAULT dropped: 403 Request dropped by plugin "p": RangeError: no (at …)',
        onAfterApiCall: 'not reached',
        onError: 'done with 403 Request dropped by plugin "p"',
      },
    );
  });

  it('holds hooks to their budget', async () => {
    const never = () => new Promise<undefined>(() => undefined);
    const hooks = { onHttpRequest: () => undefined, onBeforeApiCall: never, onError: () => undefined };
    const told = await outcomes(hooks, {}, 500);
    assert.deepEqual(told, {
      onHttpRequest: 'passed',
      onBeforeApiCall: 'FAULT dropped: 403 Plugin "p" budget exhausted: its 500 ms were spent in the call',
      onError: 'done with 403 Plugin "p" budget exhausted',
    });
  });

  it('signs no error status and nothing that cannot be encoded', async () => {
    const onBeforeSign = () => undefined;
    const status = await outcomes({ onAfterApiCall: () => ({ data: null, status: 503 }), onBeforeSign });
    assert.deepEqual(status, {
      onAfterApiCall: 'changed status: 200 → 503',
      '(status)': 'refused: 502 API call failed, for an error status is never signed',
      onBeforeSign: 'not reached',
    });
    const record = { endpoint: { encoding }, response: { data: { p: 'x' } } };
    assert.deepEqual(await outcomes({ onBeforeSign }, record), {
      '(encoding)': 'FAULT refused: 502 API call failed',
      onBeforeSign: 'not reached',
    });
  });

  it('leaves onBeforeSign out of a raw answer, unless there are bytes to sign', async () => {
    const hooks = { onBeforeSign: () => ({ data: '0x02' }) };
    assert.deepEqual(await outcomes(hooks, { response: { data: 1 } }), {
      onBeforeSign: 'not run: a raw answer skips it; record endpoint.encoding, or data',
    });
    assert.deepEqual(await outcomes(hooks, { data: '0x01' }), { onBeforeSign: 'changed data: "0x01" → "0x02"' });
  });

  it('tells the plugin’s observers, runs hooks on their table, and takes an encoding that is only unwise', async () => {
    const told: unknown[] = [];
    const definition = definePlugin({
      name: 'full',
      setup: () => ({
        observe: { stage: ({ stage, outcome }) => void told.push([stage, outcome]) },
        hooks: {
          onHttpRequest() {
            told.push(Object.keys(Object(this)));
          },
        },
      }),
    });
    const choice = { definition, budget: 10_000, config: undefined, source: './p.ts', operator: true };
    const record = { endpoint: { encoding: { type: 'uint16', path: 'p' } }, response: { data: { p: 1 } } };
    const steps = await runRecorded({ choice, record, encoder, credentials, log, patience: 10_000 });
    assert.deepEqual(
      steps.map(({ name, text }) => [name, text]),
      [['onHttpRequest', 'passed']],
    );
    assert.deepEqual(told, [
      ['resolve', 'answered'],
      ['onHttpRequest'],
      ['onHttpRequest', 'silent'],
      ['authenticate', 'answered'],
      ['validate', 'answered'],
      ['prepare', 'answered'],
      ['callApi', 'answered'],
      ['onAfterApiCall', 'answered'],
      ['encode', 'answered'],
      ['encrypt', 'answered'],
      ['sign', 'answered'],
      ['present', 'answered'],
    ]);
  });

  describe('a plugin at every stage', () => {
    const full: Behaviour = {
      vary: ({ headers }) => headers['x-tenant'],
      hooks: {
        admit: () => true,
        parseBody: () => ({}),
        authenticate: {
          tenant: (_, { headers }) => {
            if (headers['x-tenant'] === undefined) throw new Refusal(401, 'Which tenant?');
            return true;
          },
        },
        validate: (parameters) => ({ ...parameters, via: 'p' }),
        present: { slow: async (run) => ({ status: 200, body: await run() }) },
        answer: (_question, _exchange, { next }) => next(),
        callApi: async (_request, _exchange, { next }) => {
          const { status, request } = await next();
          return { status, request, data: { price: 2 } };
        },
        encode: () => undefined,
        encrypt: (data) => `${data}ff`,
        attest: () => {
          throw new TypeError('no prover');
        },
        approve: () => undefined,
        concluded: () => undefined,
        respond: (headers) => ({ ...headers, 'X-Served': 'p' }),
      },
    };
    const endpoint = {
      mode: 'slow',
      auth: [{ type: 'tenant' }],
      encoding: { type: 'uint8', path: '$.price' },
    };
    const response = { data: { price: 1 } };

    it('runs in the order of the service', async () => {
      assert.deepEqual(await stepsOf(full, { endpoint, response, headers: { 'X-Tenant': 'ada' } }), [
        ['admit', 'allowed'],
        ['parseBody', 'not run: parameters are recorded as they were read'],
        ['authenticate', 'allowed'],
        ['validate', 'changed via: added "p"'],
        ['vary', 'varies by "ada"'],
        ['present', 'answered'],
        ['answer', 'answered'],
        ['callApi', 'answered'],
        ['encode', 'passed'],
        ['encrypt', `changed data: "0x${'2'.padStart(64, '0')}" → "0x${'2'.padStart(64, '0')}ff"`],
        ['attest', 'FAULT failed: TypeError: no prover (at …)'],
        ['approve', 'passed'],
        ['concluded', 'done'],
        ['respond', 'changed X-Served: added "p"'],
      ]);
    });

    it('runs no further than a refusal', async () => {
      const refused = await stepsOf(full, { endpoint, response });
      assert.deepEqual(refused.slice(0, 5), [
        ['admit', 'allowed'],
        ['parseBody', 'not run: parameters are recorded as they were read'],
        ['authenticate', 'refused: 401 Which tenant?'],
        ['validate', 'not reached'],
        ['vary', 'not reached'],
      ]);
    });
  });

  it('finds bytes that are no answer', async () => {
    const wrong: Behaviour = { hooks: { encode: () => ({ bytes: '01', field: 'data', value: '01' }) as never } };
    const [[stage, text = ''] = []] = await stepsOf(wrong, {});
    assert.equal(stage, 'encode');
    assert.match(text, /^FAULT failed: plugin "p": .*bytes/);
  });

  it('starts and stops a plugin, and leaves bytes out of a raw answer', async () => {
    const calls: string[] = [];
    const definition = definePlugin({
      name: 'full',
      setup: (_, config) => ({
        start: () => void calls.push(`start ${config}`),
        stop: () => void calls.push('stop'),
        hooks: { onHttpRequest: () => void calls.push('hook'), encrypt: () => void calls.push('encrypt') },
      }),
    });
    const choice = { definition, budget: 10_000, config: 'configured', source: './p.ts', operator: true };
    const steps = await runRecorded({ choice, record: {}, encoder, credentials, log, patience: 10_000 });
    assert.deepEqual(calls, ['start configured', 'hook', 'stop']);
    assert.deepEqual(
      steps.map(({ name, text }) => [name, text]),
      [
        ['onHttpRequest', 'passed'],
        ['encrypt', 'not run: a raw answer skips it; record endpoint.encoding, or data'],
      ],
    );
  });
});

describe('a difference', () => {
  const cases: [string, unknown, unknown, string][] = [
    ['nothing', { a: [1, { b: null }] }, { a: [1, { b: null }] }, ''],
    ['values, by path', { a: [1, 2], 'b c': 'x' }, { a: [1, 3], 'b c': null }, 'a[1]: 2 → 3, ["b c"]: "x" → null'],
    ['members that come and go', { a: 1, c: [1] }, { b: {}, c: [] }, 'a: removed, c[0]: removed, b: added {}'],
    ['another kind', { a: [1] }, { a: { 0: 1 } }, 'a: [1] → {"0":1}'],
    ['names that every object has', {}, { constructor: 1 }, 'constructor: added 1'],
    [
      'more than a line can hold',
      [1, 2, 3, 4, 5, 6, 7],
      [2, 3, 4, 5, 6, 7, 8],
      '[0]: 1 → 2, [1]: 2 → 3, [2]: 3 → 4, [3]: 4 → 5, [4]: 5 → 6, and 2 more',
    ],
    ['long values', { a: 'x'.repeat(99) }, { a: 1 }, `a: "${'x'.repeat(71)}… → 1`],
  ];
  for (const [what, before, after, expected] of cases) {
    it(what, () => assert.equal(difference(before, after), expected));
  }
});
