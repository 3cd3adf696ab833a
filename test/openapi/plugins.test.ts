/** Plugins describe themselves in the OpenAPI document. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { type RunningService, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { assertValid, describedAt, describedBy } from './document.ts';

const entry = (name: string) => JSON.stringify(new URL(`../../plugins-sdk/${name}.ts`, import.meta.url).href);
const SDK = entry('index');
const OPENAPI = entry('openapi');

/** Checks tickets, sells them at a route, answers in a mode of its own, and has an upper limit. */
const tickets = `
import { Refusal, Type } from ${SDK};
import { refTo } from ${OPENAPI};
const scheme = { type: 'apiKey', in: 'header', name: 'X-Ticket', description: 'A ticket' };
export default {
  name: 'tickets',
  auth: { ticket: Type.Object({ valid: Type.String() }) },
  modes: ['push'],
  openapi: ({ endpoints, own }) => ({
    schemas: { Sale: { type: 'object', required: ['price'], properties: { price: { const: own.price } } } },
    auth: {
      ticket: {
        scheme,
        responses: {
          401: { description: 'No ticket', errors: ['Ticket, please'] },
          429: { description: 'The ticket is used up', errors: ['Used up'] },
        },
        title: 'ticket',
      },
    },
    modes: { push: { responses: (kind, text) => ({ 203: { description: text, schema: refTo('schemas', kind + 'Answer') } }) } },
    routes: [
      {
        method: 'GET',
        path: '/tickets/{kind}',
        admit: true,
        operation: {
          operationId: 'buyTicket',
          summary: endpoints.length + ' endpoints take it',
          parameters: [{ name: 'kind', in: 'path', required: true, schema: { type: 'string' } }],
        },
        responses: {
          200: { description: 'The price', schema: refTo('schemas', 'Sale') },
          404: { errors: ['Sold out'] },
        },
      },
    ],
    operation: ({ name }) =>
      name === 'pushed'
        ? { parameters: { seat: { type: 'integer' } }, required: ['seat'], responses: { 400: { errors: ['No seat'] } } }
        : undefined,
  }),
  configSchema: Type.Object({ price: Type.Number() }),
  setup: (_, { price }) => ({
    hooks: {
      authenticate: {
        ticket: ({ valid }, { headers }) => {
          if (headers['x-ticket'] === 'old') throw new Refusal(429, 'Used up');
          if (headers['x-ticket'] !== valid) throw new Refusal(401, 'Ticket, please');
          return true;
        },
      },
      present: { push: async (run) => ({ status: 203, body: await run() }) },
      validate: (_, { parameters, endpoint }) => {
        if (endpoint.name === 'pushed' && parameters.seat === undefined) throw new Refusal(400, 'No seat');
      },
    },
    routes: [
      {
        method: 'GET',
        path: '/tickets/:kind',
        admit: true,
        handle: ({ params: { kind } }) => {
          if (kind !== 'day') throw new Refusal(404, 'Sold out');
          return { status: 200, body: JSON.stringify({ price }) };
        },
      },
    ],
  }),
};`;

const settings = { openapi: true, explorer: true, plugins: [{ source: './tickets.mjs', config: { price: 3 } }] };
const files = { 'tickets.mjs': tickets };

describe('an operator’s plugin in the OpenAPI document', async () => {
  const post = (parameters: object, ticket?: string) =>
    service.post('a/pushed', parameters, ticket === undefined ? {} : { 'X-Ticket': ticket });

  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 1 }) });
  const service = await serviceFor(
    suite,
    {
      settings,
      apis: [
        {
          name: 'a',
          url: upstream.url,
          endpoints: [
            { name: 'pushed', path: '/p', mode: 'push', auth: { type: 'ticket', valid: 'mine' } },
            { name: 'usual', path: '/u' },
          ],
        },
      ],
    },
    { files },
  );
  const described = await describedAt(service);
  const path = `/endpoints/${service.ids['a/pushed']}`;

  it('is valid, and has its auth type, its schema and its route', async () => {
    await assertValid(described);
    assert.deepEqual(described.at('paths', path, 'post', 'security'), [{ ticket: [] }]);
    assert.deepEqual(described.at('components', 'securitySchemes', 'ticket'), {
      type: 'apiKey',
      in: 'header',
      name: 'X-Ticket',
      description: 'A ticket',
    });
    assert.equal(described.at('paths', '/tickets/{kind}', 'get', 'summary'), '2 endpoints take it');
    assert.equal(described.at('components', 'schemas', 'Sale', 'properties', 'price', 'const'), 3);
  });

  it('describes what the endpoint answers, and refuses', async () => {
    const answers: [number, Response][] = [
      [203, await post({ seat: 1 }, 'mine')],
      [400, await post({}, 'mine')],
      [401, await post({ seat: 1 })],
      [429, await post({ seat: 1 }, 'old')],
    ];
    for (const [status, response] of answers) {
      assert.equal(response.status, status);
      await described.assertDescribed(path, 'post', response);
    }
    assert.equal(described.requestFaults(path, { parameters: { seat: 1 } }), '');
    assert.notEqual(described.requestFaults(path, { parameters: {} }), '');
  });

  it('shares a status with others who refuse with it', () => {
    const responses = (status: string) => described.at('paths', path, 'post', 'responses', status);
    const { description, headers } = responses('429') as Record<string, object>;
    assert.equal(description, 'Too many requests from this address; The ticket is used up');
    // The limiter alone says when to come again.
    assert.deepEqual(Object.keys(headers ?? {}), ['X-Request-Id']);
    const examples = described.at('paths', path, 'post', 'responses', '400', 'content', 'application/json', 'examples');
    assert.ok(Object.hasOwn(examples as object, 'No_seat'));
    assert.ok(Object.hasOwn(examples as object, 'Request_body_must_be_valid_JSON'));
  });

  it('describes its route, which is behind the rate limit', async () => {
    for (const [kind, status] of [
      ['day', 200],
      ['week', 404],
    ] as const) {
      const response = await fetch(`${service.url}/tickets/${kind}`);
      assert.equal(response.status, status);
      await described.assertDescribed('/tickets/{kind}', 'get', response);
    }
    const responses = described.at('paths', '/tickets/{kind}', 'get', 'responses');
    assert.deepEqual(Object.keys(responses as object), ['200', '404', '429']);
  });

  it('tells the explorer which header its credentials are in', async () => {
    const page = await (await fetch(`${service.url}/`)).text();
    const [, text = ''] = /<script type="application\/json" id="data">(.*?)<\/script>/.exec(page) ?? [];
    const { endpoints } = JSON.parse(text);
    const [pushed, usual] = endpoints;
    assert.deepEqual(pushed.auth, [{ title: 'ticket', header: 'X-Ticket', hints: [] }]);
    // A mode without a title is just its name.
    assert.deepEqual([pushed.modeTitle, usual.modeTitle], [undefined, 'the answer comes at once']);
  });

  it('adds nothing to endpoints that are not its own', () => {
    const usual = ['paths', `/endpoints/${service.ids['a/usual']}`, 'post'];
    assert.deepEqual(described.at(...usual, 'security'), []);
    assert.deepEqual(Object.keys(described.at(...usual, 'responses') as object), [
      ...['200', '400', '403', '404', '413', '415', '429', '500', '502', '503'],
    ]);
  });
});

const apis = [{ name: 'a', url: 'https://a.example', endpoints: [{ name: 'e', path: '/e' }] }];

/** Starts a service with plugins of these sources and describes it. */
async function startWith(t: TestContext, config: object, ...sources: string[]): Promise<RunningService> {
  const named = sources.map((text, index) => [`p${index}.mjs`, text] as const);
  const plugins = named.map(([name]) => ({ source: `./${name}` }));
  const all = { settings: { openapi: true, plugins }, apis, ...config };
  return await serviceFor(t, all, { files: Object.fromEntries(named) });
}

describe('a plugin that is left out', () => {
  it('is not described: no 429 where nothing limits, no payment where nobody pays', async () => {
    const left = ['rate-limit', 'auth-x402', 'mode-async', 'mode-stream', 'tls-proof', 'health'];
    const plugins = left.map((name) => ({ source: `builtin:${name}`, enabled: false }));
    const described = await describedBy({ settings: { plugins }, apis });
    await assertValid(described);
    assert.match(Object.keys(described.at('paths') as object).join(), /^\/endpoints\/0x[0-9a-f]{64}$/);
    const words = /"429"|Too Many Requests|Payment|x402|Async|Frame|Proof/;
    assert.doesNotMatch(JSON.stringify(described.at('paths')), words);
    assert.doesNotMatch(JSON.stringify(described.at('components')), words);
  });
});

describe('plugins that describe nothing', () => {
  it('leave an auth type and a mode of their own to be described as far as that can be', async (t) => {
    const source = `export default {
      name: 'p', auth: { bearer: { type: 'object' } }, modes: ['push'],
      setup: () => ({ hooks: { authenticate: { bearer: () => true }, present: { push: async (run) => ({ status: 200, body: await run() }) } } }),
    };`;
    const endpoints = [{ name: 'e', path: '/e', mode: 'push', auth: { type: 'bearer' } }];
    const service = await startWith(t, { apis: [{ ...apis[0], endpoints }] }, source);
    const described = await describedAt(service);
    await assertValid(described);
    const path = `/endpoints/${service.ids['a/e']}`;
    assert.deepEqual(described.at('paths', path, 'post', 'security'), [{ plugin_bearer: [] }]);
    assert.equal(described.at('components', 'securitySchemes', 'plugin_bearer', 'scheme'), 'bearer');
    assert.equal(typeof described.at('paths', path, 'post', 'responses', '2XX', 'description'), 'string');
    assert.equal(typeof described.at('paths', path, 'post', 'responses', '401', 'description'), 'string');
  });
});

describe('plugins that describe the same name', () => {
  const plugin = (name: string, part: string) =>
    `export default { name: '${name}', openapi: () => (${part}), setup: () => ({}) };`;

  it('have what the later one says published', async (t) => {
    const part = (type: string) =>
      `{ schemas: { S: { type: '${type}' } }, operation: () => ({ responses: { 418: { schema: { type: '${type}' } } } }) }`;
    const service = await startWith(t, {}, plugin('first', part('string')), plugin('second', part('null')));
    const described = await describedAt(service);
    assert.deepEqual(described.at('components', 'schemas', 'S'), { type: 'null' });
    const [path = ''] = Object.keys(Object(described.at('paths')));
    const content = described.at('paths', path, 'post', 'responses', '418', 'content');
    assert.deepEqual(content, { 'application/json': { schema: { type: 'null' } } });
  });

  it('a description that is no function is an error of the config', async (t) => {
    await assert.rejects(startWith(t, {}, "export default { name: 'p', openapi: {}, setup: () => ({}) };"), {
      message:
        'settings.plugins[0].source: plugin "./p0.mjs": the default export: openapi: expected a function, found a mapping',
    });
  });
});

describe('settings.openapi', () => {
  const documentOf = async (openapi: unknown) => Object((await describedBy({ settings: { openapi }, apis })).at());

  it('may say what the service is called, what it is about, and where it is', async () => {
    const servers = ['https://a.example/v1/', 'https://b.example'];
    const document = await documentOf({ title: 'Prices', description: 'Of assets.', servers });
    assert.deepEqual(document.info, { title: 'Prices', version: '1.2.3', description: 'Of assets.' });
    assert.deepEqual(document.servers, [{ url: 'https://a.example/v1' }, { url: 'https://b.example' }]);
  });

  it('says so in the words of the service where it is only switched on', async () => {
    const { info, servers } = await documentOf(true);
    const { title, version } = Object(info);
    assert.deepEqual([title, version, servers], ['Signed-data proxy', '1.2.3', [{ url: '/' }]]);
  });
});
