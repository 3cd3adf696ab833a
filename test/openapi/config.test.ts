/** The OpenAPI document of a config: who asks gets it from the service, if that is wanted, or from the command line. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { verifyResponse } from '../../verify/index.ts';
import { folderWith, PACKAGE_ROOT, runCli } from '../cli/run.ts';
import { assertRefused } from '../support/http.ts';
import { serviceFor } from '../support/service.ts';
import { payment } from './apis.ts';
import { assertValid, Described, describedAt, describedBy } from './document.ts';

const endpoints = [{ name: 'raw', path: '/raw', auth: { type: 'free' } }];
const apis = [{ name: 'open', url: 'https://api.example', endpoints }];

describe('GET /openapi.json', () => {
  it('is not there unless it is asked for', async (t) => {
    for (const settings of [{}, { openapi: false }]) {
      const { url } = await serviceFor(t, { settings, apis });
      await assertRefused(await fetch(`${url}/openapi.json`), 404, 'Not Found');
    }
  });

  it('has the version that the operator gives, and else the one of the program', async () => {
    const versionIn = async (openapi: unknown) => {
      const described = await describedBy({ settings: { openapi }, apis });
      return described.at('info', 'version');
    };
    assert.deepEqual([await versionIn({ version: '2026-11' }), await versionIn(true)], ['2026-11', '1.2.3']);
  });

  it('counts against the rate limit, whose refusal is described', async (t) => {
    const server = { rateLimit: { max: 1 } };
    const service = await serviceFor(t, { settings: { openapi: true }, server, apis });
    const described = await describedAt(service);
    assert.equal((await fetch(`${service.url}/openapi.json`)).status, 429);
    const refused = await service.post('open/raw');
    assert.equal(refused.status, 429);
    await described.assertDescribed(`/endpoints/${service.ids['open/raw']}`, 'post', refused);
    // What does not count is not refused.
    for (const path of ['/health', '/ready'])
      assert.equal(described.at('paths', path, 'get', 'responses', '429'), undefined);
  });
});

describe('the OpenAPI document of a config', () => {
  it('of the complete example, whose variables are not set: valid, with every endpoint', async (t) => {
    const file = join(PACKAGE_ROOT, 'examples/configs/complete.yaml');
    const { code, stdout, stderr } = await runCli(t, ['openapi', '-c', file]);
    assert.equal(code, 0, stderr);
    const warned =
      /^warning: apis\[0\]\.headers\.Authorization: the variable PRICE_API_KEY is not set \(prices, line \d+\)$/m;
    assert.match(stderr, warned);
    const document: { paths: Record<string, { post?: { summary: string } }> } = JSON.parse(stdout);
    await assertValid(new Described(document));
    const posts = Object.values(document.paths).flatMap(({ post }) => post?.summary ?? []);
    assert.deepEqual(posts, [
      'prices/pinned',
      'prices/several-values',
      'prices/any-pair',
      'prices/middle',
      'prices/requester-chosen',
      'prices/proven',
      'prices/encrypted',
      'reports/raw',
      'reports/slow',
      'reports/priced',
      'reports/streamed',
      'The question of a contract (ERC-3668), of any length',
      'The endpoints as tools of agents (Model Context Protocol)',
    ]);
    assert.equal(stdout.includes('unset'), false, 'no stand-in for a variable');
  });

  it('leaves out an endpoint whose ID depends on a variable that is not set, and says so', async (t) => {
    const cwd = await folderWith(t, {
      'c.yaml': `version: '1.0'
apis:
  - { name: a, url: 'https://\${HOST}', endpoints: [{ name: e, path: /e }] }
  - { name: b, url: 'https://\${OTHER}', endpoints: [{ name: e, path: /e }] }
`,
      'some.env': 'OTHER=api.example\n',
    });
    const { stdout, stderr } = await runCli(t, ['openapi', '-c', 'c.yaml', '--env', 'some.env'], { cwd });
    const warned =
      /^warning: apis\[0\]\.endpoints\[0\]: no endpoint ID: it depends on the variable HOST \(a\/e, line 3\)$/m;
    assert.match(stderr, warned);
    const { paths, tags }: { paths: object; tags: readonly { name: string }[] } = JSON.parse(stdout);
    assert.deepEqual([Object.keys(paths).length, tags.map(({ name }) => name)], [3, ['b', 'service']]);
  });

  it('says nothing of upstreams, headers, fixed values, secrets, keys and nodes', async () => {
    const encoding = { type: 'uint256', path: '$.v' };
    const described = await describedBy(
      {
        settings: {
          openapi: true,
          proof: { type: 'reclaim', gatewayUrl: 'https://leak.example/gateway' },
          fhe: {
            network: 'sepolia',
            rpcUrl: 'https://leak.example/rpc',
            verifier: payment.recipient,
            apiKey: '${SECRET}',
          },
        },
        apis: [
          {
            name: 'api',
            url: 'https://leak.example/leak',
            headers: { Authorization: 'Bearer ${SECRET}', 'X-Leak': 'leak' },
            auth: [
              { type: 'apiKey', keys: ['${SECRET}', 'leak-key'] },
              { ...payment, rpc: 'https://leak.example/${SECRET}' },
            ],
            endpoints: [
              {
                name: 'one',
                path: '/leak/{id}',
                parameters: [
                  { name: 'id', in: 'path', required: true },
                  { name: 'leaked-name', fixed: 'leak' },
                  { name: 'token', in: 'cookie', fixed: '${SECRET}' },
                  { name: 'realm', default: 'leak', secret: true },
                ],
                encoding,
              },
              { name: 'two', path: '/two', encoding, responseMatches: [{ type: 'regex', value: 'leak' }] },
            ],
          },
        ],
      },
      { SECRET: 'leak-from-a-variable' },
    );
    const text = JSON.stringify(described.at());
    assert.ok(text.includes('"realm"') && text.includes('"id"'), 'parameters are described');
    assert.doesNotMatch(text, /leak/i);
    await assertValid(described);
  });

  it('has a whole answer of each kind as an example, whose signature is real', async () => {
    const encoding = { type: 'int256', path: '$.a' };
    const endpoints = [
      { name: 'e', path: '/e', encoding },
      { name: 'r', path: '/r' },
    ];
    const described = await describedBy({ apis: [{ name: 'a', url: 'https://a.example', endpoints }] });
    for (const [kind, value] of [
      ['Encoded', new AbiCoder().encode(['int256'], [15n * 10n ** 17n])],
      ['Raw', { asset: 'ETH', price: 3000.5 }],
    ] as const) {
      const schema = described.at('components', 'schemas', `${kind}Answer`) as {
        examples: [{ node: string; endpointId: string; rawData?: unknown }];
      };
      const [example] = schema.examples;
      assert.equal(described.faults(schema, example), '');
      const { node, endpointId } = example;
      const verified = verifyResponse(example, { node, endpointId });
      assert.ok(verified.ok, kind);
      assert.deepEqual(verified.kind === 'raw' ? example.rawData : verified.data, value);
    }
  });

  it('requires what fills a whole segment of the path', async () => {
    const parameters = ['id', 'n'].map((name) => ({ name, in: 'path' }));
    const endpoints = [{ name: 'e', path: '/{id}/v{n}', parameters }];
    const described = await describedBy({ apis: [{ name: 'a', url: 'https://a.example', endpoints }] });
    const [path = ''] = Object.keys(described.at('paths') as object);
    assert.match(described.requestFaults(path, { parameters: { n: 1 } }), /id/);
    assert.equal(described.requestFaults(path, { parameters: { id: 'x' } }), '');
  });

  it('says what the means against failing upstreams do to answers', async () => {
    const api = {
      name: 'a',
      url: 'https://a.example',
      mirrors: ['https://b.example'],
      breaker: true,
      endpoints: [{ name: 'e', path: '/e', description: 'A price', cache: { maxAge: '10s', staleIfError: '10m' } }],
    };
    const described = await describedBy({ apis: [api] });
    const [path = ''] = Object.keys(described.at('paths') as object).filter((each) => each.startsWith('/endpoints/'));
    const responses = (...keys: string[]) => described.at('paths', path, 'post', 'responses', ...keys);
    assert.equal(
      responses('200', 'description'),
      'The answer: signed JSON; where the upstream fails an older one, of at most 610 s; perhaps of a mirror of the upstream, which the endpoint ID does not name',
    );
    assert.match(String(responses('503', 'description')), /^The upstream has failed too often/);
    assert.deepEqual(responses('503', 'headers', 'Retry-After'), {
      description: 'Seconds until it is asked again',
      required: false,
      schema: { type: 'integer' },
    });
  });

  it('has the refusals of a signer outside the process, the present or the next one', async () => {
    const apis = [{ name: 'a', url: 'https://a.example', endpoints: [{ name: 'e', path: '/e' }] }];
    const outside = { type: 'json-rpc', url: 'https://s.example', address: payment.recipient };
    const inside = { type: 'environment' };
    const refuses = async (signer: object) => {
      const described = await describedBy({ settings: { signer }, apis });
      return JSON.stringify(described.at()).includes('Signing failed');
    };
    assert.equal(await refuses(inside), false);
    assert.equal(await refuses(outside), true);
    assert.equal(await refuses({ ...inside, next: outside }), true);
  });

  it('tells operations apart whose names look alike', async () => {
    const endpoints = ['c', 'c!', 'é'].map((name, index) => ({ name, path: `/${index}` }));
    const described = await describedBy({ apis: [{ name: 'a b', url: 'https://a.example', endpoints }] });
    const posts = Object.values(described.at('paths') as Record<string, { post?: { operationId: string } }>);
    const ids = posts.flatMap(({ post }) => post?.operationId ?? []);
    assert.match(ids.join(' '), /^a_b_c_0x[0-9a-f]{64} a_b_c_0x[0-9a-f]{64} a_b_$/);
    assert.equal(new Set(ids).size, 3);
    await assertValid(described);
  });
});
