import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { suite } from './lifetime.ts';
import { acts, notes, puppetFile, revokedProxy, throwingProxy } from './plugin-files.ts';
import { served } from './served.ts';
import { TEST_ADDRESS } from './service.ts';
import { tidy } from './tidy.ts';
import { faults } from './upstream.ts';
import { verifyEncoded, verifyRaw } from './verify.ts';

export const DROPPED = [403, { error: 'Request dropped by plugin "puppet"' }];
export const MUTATIONS = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign'] as const;
export type Mutation = (typeof MUTATIONS)[number];

/** Asserts what an answer is, which never shows what a plugin threw. */
export async function outcome(response: Response): Promise<[number, unknown]> {
  assert.equal(response.headers.get('content-type'), 'application/json');
  const text = await response.text();
  assert.ok(!text.includes('LEAK'), text);
  return [response.status, JSON.parse(text)];
}

/** Has the plugin called `puppet` do this at the hook. */
export const on = (hook: string, act: (context: Readonly<Record<string, unknown>>) => unknown) => {
  acts.set(`puppet ${hook}`, act);
};

/** A service with a plugin called `puppet`, which does nothing before each test, and its upstream; both end with the suite. */
export async function withPuppet() {
  const parameters = [{ name: 'q', in: 'query', required: true }];
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
  const encoded = (asked: unknown = { q: 'a' }) => service.post('api/encoded', asked, { 'X-Api-Key': 'k' });

  /** The request is dropped, with the plugin's name and nothing else, and observers learn the stage. */
  async function assertDropped(hook: Mutation, what: string): Promise<void> {
    on('onError', ({ stage, status, error }) => notes.add('error', [stage, status, (error as Error).message]));
    assert.deepEqual(await outcome(await encoded()), DROPPED, what);
    assert.deepEqual(await notes.until('error'), [[hook, 403, 'Request dropped by plugin "puppet"']], what);
    assert.equal(upstream.requests.length, hook === 'onHttpRequest' || hook === 'onBeforeApiCall' ? 0 : 1, what);
    acts.clear();
    notes.clear();
    upstream.requests.length = 0;
  }

  return {
    ...{ upstream, service, encoded, assertDropped },
    raw: async () => (await verifyRaw(await service.post('api/raw', {}, { 'X-Api-Key': 'k' }), TEST_ADDRESS)).rawData,
    verified: async () => (await verifyEncoded(await encoded(), TEST_ADDRESS)).data,
  };
}

export type Values = Readonly<Record<string, () => unknown>>;
/** Values, by what the log says of them. */
export type Said = Readonly<Record<string, Values>>;

/** What is said of a proxy is said by JavaScript. */
export const ANYTHING = '';
export const proxies: Values = { 'a proxy that throws': throwingProxy, 'a revoked proxy': revokedProxy };

/** Values that stand elsewhere: in a member, for example. */
export const wrapped = (where: string, wrap: (value: unknown) => unknown, values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).map(([what, make]) => [`${what} in ${where}`, () => wrap(make())] as const),
  );
export const at = (key: string, values: Values) => wrapped(`"${key}"`, (value) => ({ [key]: value }), values);

type Puppet = Pick<Awaited<ReturnType<typeof withPuppet>>, 'service' | 'assertDropped'>;

/** The log names the reason of each failure, with its class and the place behind it. */
function assertLogged({ service }: Puppet, reason: string, what: string): void {
  const details = service.logs.flatMap(({ fields: { detail } }) => (detail === undefined ? [] : [String(detail)]));
  assert.ok(details.length > 0, what);
  for (const detail of details)
    if (reason !== ANYTHING) assert.equal(detail.split('\n', 1)[0], `Error: ${reason}`, what);
}

/** Each of these results of the hook drops the request. */
export function itDrops(puppet: Puppet, hook: Mutation, ...wrong: readonly Said[]): void {
  describe(`${hook}: a result of the wrong shape is 403 \`Request dropped by plugin "<name>"\``, () => {
    for (const [reason, values] of wrong.flatMap(Object.entries<Values>))
      for (const [what, make] of Object.entries(values)) {
        it(`${what}: ${reason || 'its own words'}`, async () => {
          on(hook, make);
          await puppet.assertDropped(hook, 'returned');
          on(hook, async () => make());
          await puppet.assertDropped(hook, 'resolved');
          assertLogged(puppet, reason, what);
        });
      }
  });
}
