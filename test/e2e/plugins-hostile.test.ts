/** Whatever a plugin throws, keeps or returns, each request ends in a response. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { notes } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { encoding, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

/** Fails in the stage, and with what, the headers of the request name; async endpoints send no headers to later stages. */
const branded = `
import { Refusal } from 'signed-data-proxy/plugins-sdk';
const brand = { [Symbol.for('signed-data-proxy.refusal')]: true };
const raise = (error) => { throw error; };
const thrown = {
  'a refusal with another status': () => Object.assign(new Refusal(418, 't'), { status: 200 }),
  'a brand and nothing else': () => ({ ...brand }),
  'a brand and no status': () => ({ ...brand, message: 'LEAK', body: { error: 'LEAK' } }),
  'a status that is a text': () => ({ ...brand, status: '503', message: 'LEAK' }),
  'a status that throws': () => Object.defineProperty({ ...brand }, 'status', { get: () => raise(new Error('LEAK')) }),
  'a status that changes': () => {
    let reads = 0;
    return Object.defineProperty({ ...brand, message: 'LEAK' }, 'status', { get: () => (reads++ === 0 ? 418 : 200) });
  },
  'a body in a cycle': () => { const body = {}; body.body = body; return new Refusal(418, 't', { body }); },
  'a body that changes its mind': () => {
    let reads = 0;
    return new Refusal(418, 't', { body: { toJSON: () => (reads++ === 0 ? undefined : { error: 'LEAK' }) } });
  },
  'a message that throws': () => Object.assign(new Refusal(418, 't'), { message: { toString: () => raise(1) } }),
};
const fail = (stage, { headers }) => {
  const how = headers['x-how'];
  if (headers['x-stage'] !== stage || how === undefined) return undefined;
  return headers['x-late'] === undefined ? raise(thrown[how]()) : Promise.reject(thrown[how]());
};
export const cases = Object.keys(thrown);
globalThis.testNote('cases', cases);
const inner = ['validate', 'answer', 'encrypt', 'attest', 'concluded', 'respond'];
const hooks = Object.fromEntries(inner.map((stage) => [stage, (_, exchange) => fail(stage, exchange)]));
export default { name: 'branded', setup: () => ({ hooks: { ...hooks, admit: (exchange) => fail('admit', exchange) } }) };
`;

const answers = { '*': faults.json({ price: 7 }) };

describe('whatever a plugin throws ends in a response', async () => {
  const cache = { maxAge: 60_000 };
  const endpoints = {
    sync: { encoding },
    cached: { encoding, cache, parameters: [{ name: 'q' }] },
    async: { encoding, mode: 'async' },
  };
  const { service } = await served(suite, endpoints, { answers, sources: { branded } });

  const cases = () => notes.of('cases').flat().map(String);

  for (const late of [false, true]) {
    const how = late ? 'rejects with' : 'throws';
    for (const stage of ['admit', 'validate', 'answer', 'encrypt']) {
      it(`an inner stage, ${stage}, ${how} it: 500, and the next request is served`, async () => {
        assert.ok(cases().length > 5);
        for (const name of cases()) {
          const headers = { 'x-stage': stage, 'x-how': name, ...(late && { 'x-late': '1' }) };
          const response = await service.post('api/sync', {}, headers);
          if (name === 'a status that changes') assert.equal(response.status, 418);
          else await assertRefused(response, 500, 'Internal server error');
        }
      });
    }

    for (const stage of ['attest', 'concluded', 'respond']) {
      it(`a stage that may fail, ${stage}, ${how} it: the answer comes without it`, async () => {
        for (const name of cases()) {
          const headers = { 'x-stage': stage, 'x-how': name, ...(late && { 'x-late': '1' }) };
          await verifyEncoded(await service.post('api/sync', {}, headers), TEST_ADDRESS);
        }
      });
    }
  }

  it('an async request fails, and can be polled', async () => {
    for (const name of cases()) {
      const headers = { 'x-stage': 'encrypt', 'x-how': name, 'x-late': '1' };
      const record = await finished(service, await submitted(await service.post('api/async', {}, headers)));
      assert.equal(record.status, 'failed');
      if (name !== 'a status that changes') assert.equal(record.error, 'Internal server error');
    }
  });

  it('those who miss the cache with it share what it comes to, and the next one is served', async () => {
    for (const q of cases()) {
      const failing = service.post('api/cached', { q }, { 'x-stage': 'encrypt', 'x-how': q, 'x-late': '1' });
      const others = [1, 2, 3].map(() => service.post('api/cached', { q }));
      const { status } = await failing;
      for (const other of others) assert.ok([200, status].includes((await other).status));
      assert.equal((await service.post('api/cached', { q })).status, 200);
    }
  });
});

/** Tries to do with a request what only the service may do, wherever it sees one. */
const grabbing = `
const note = globalThis.testNote;
let other;
const attempts = (exchange, call) => ({
  resolveTo: () => exchange.resolveTo(other),
  endpoint: () => { exchange.endpoint = other; },
  resolved: () => { exchange.resolved = other; },
  'endpoint id': () => { exchange.endpoint.id = other.id; },
  parameters: () => { exchange.parameters = { symbol: 'EVIL' }; },
  'a parameter': () => { exchange.parameters.symbol = 'EVIL'; },
  disconnect: () => exchange.disconnect(),
  detach: () => exchange.detach(),
  'resolveTo of the class': () => exchange.constructor.control.resolveTo(exchange, other),
  'detach of the class': () => exchange.constructor.control.detach(exchange),
  budgets: () => exchange.budgets.clear(),
  clientSignal: () => exchange.clientSignal.abort(),
  ...Object.fromEntries(
    Object.entries({ endpoint: other, parameters: { symbol: 'EVIL' }, abandoned: true, requestId: '0x00' }).map(
      ([name, value]) => ['own ' + name, () => Object.defineProperty(exchange, name, { value })],
    ),
  ),
  'own aborted': () => Object.defineProperty(exchange.clientSignal, 'aborted', { value: true }),
  'own class': () => Object.setPrototypeOf(exchange, { endpoint: other }),
  headers: () => { exchange.headers['x-api-key'] = 'k'; },
  'request id': () => { exchange.requestId = '0x00'; },
  refill: () => call.charge(-1e9),
  budget: () => { call.budget = 1e9; },
  remaining: () => { call.remaining = 1e9; },
  exhaust: () => call.exhaust(),
  spent: () => { call.spent.push({ stage: 'x', milliseconds: -1e9 }); call.spent[0].milliseconds = -1e9; },
});
const grab = (exchange, call = {}) => {
  for (const [name, attempt] of Object.entries(attempts(exchange, call))) {
    try { attempt(); } catch { note('refused', name); }
  }
};
export default {
  name: 'grabbing',
  budget: 10000,
  setup: ({ endpoints, credentials }) => {
    for (const list of [endpoints, credentials]) {
      try { list.push(list[0]); } catch { note('fixed', 'list'); }
    }
    other = endpoints.find(({ name }) => name === 'other');
    return {
      observe: {
        stage: ({ exchange }) => grab(exchange),
        call: ({ exchange, charge }) => grab(exchange, charge),
        response: (exchange) => grab(exchange),
      },
      hooks: {
        validate: (_, exchange, call) => grab(exchange, call),
        concluded: (outcome, exchange, call) => {
          grab(exchange, call);
          try { outcome.kind = 'abandoned'; } catch { note('refused', 'outcome'); }
        },
      },
    };
  },
};
`;

describe('what plugins see of a request', async () => {
  const slow = `export default { name: 'slow', hooks: { onBeforeSign: () => new Promise(() => {}) } };`;
  const parameters = [{ name: 'symbol' }];
  const endpoints = { own: { encoding, parameters }, other: { parameters } };
  const more = { answers, sources: { grabbing, slow }, entries: { slow: { timeout: 50 } } };
  const { upstream, service } = await served(suite, endpoints, more);

  it('cannot change what is asked, whose budget is spent or whether anybody waits', async () => {
    await assertRefused(await service.post('api/own', { symbol: 'ETH' }), 403, 'Plugin "slow" budget exhausted');
    assert.equal(upstream.requests.map(({ path }) => path).join(), '/own?symbol=ETH');
    const { endpointId } = await verifyRaw(await service.post('api/other', { symbol: 'BTC' }), TEST_ADDRESS);
    assert.equal(endpointId, service.ids['api/other']);
    assert.equal(upstream.requests.at(-1)?.path, '/other?symbol=BTC');
    assert.equal(notes.of('fixed').length, 2);
    const refused = new Set(notes.of('refused').flat());
    for (const name of ['own endpoint', 'own abandoned', 'own aborted', 'outcome']) {
      assert.ok(refused.has(name), name);
    }
  });
});

/** Leaves something else where another plugin has left who asks. */
const replacing = `
import { clientAddress } from 'signed-data-proxy/plugins-sdk';
export default {
  name: 'replacing',
  setup: () => ({
    hooks: {},
    observe: {
      stage: ({ exchange, stage }) => {
        if (stage !== 'admit') return;
        try { clientAddress.set(exchange, '10.0.0.1'); } catch (error) { globalThis.testNote('refused', error.message); }
      },
    },
  }),
};
`;

describe('what plugins leave for each other', () => {
  it('cannot be replaced by a plugin that only looks', async (t) => {
    notes.clear();
    const { raw } = await served(t, { own: {} }, { answers, sources: { replacing } });
    assert.deepEqual(await raw('own'), { price: 7 });
    assert.deepEqual(notes.of('refused').flat(), ['context key "clientAddress" has a value already']);
  });
});

/** Returns what the header names from the stage it names. */
const returning = `
const changing = () => { let reads = 0; return { toJSON: () => (reads++ === 0 ? { a: 1 } : undefined) }; };
const twice = (first, then) => { let reads = 0; return () => (reads++ === 0 ? first : then); };
const flip = (object, name, first, then) => Object.defineProperty(object, name, { get: twice(first, then), enumerable: true });
const values = {
  'answer spaced': async (next) => ({ json: '\\n' + JSON.stringify(JSON.parse((await next()).json), null, 2) }),
  'answer no json': () => ({ json: 'not json' }),
  'answer no answer': () => ({ json: '{"a":1}' }),
  'answer a text': () => ({ json: '"0x"' }),
  'answer flips': () => flip({}, 'json', '{}', 'not json'),
  'attest flips': () => changing(),
  'attest a text': () => ({ toJSON: () => 'text' }),
  'attest nothing': () => ({ toJSON: () => undefined }),
  'validate a list': () => [],
};
const at = (stage, { headers }, next) => {
  const name = headers['x-value'] ?? '';
  return name.startsWith(stage + ' ') ? values[name](next) : undefined;
};
const route = (path, body, headers = {}, status = 200) =>
  ({ method: 'GET', path, admit: false, handle: () => ({ status, headers, body }) });
export default {
  name: 'returning',
  setup: () => ({
    hooks: {
      validate: (_, exchange) => at('validate', exchange),
      answer: (_, exchange, { next }) => at('answer', exchange, next),
      attest: (_, exchange) => at('attest', exchange),
    },
    routes: [
      route('/broken', 'not json'),
      route('/json', '{"a":1}'),
      route('/text', 'text', { 'content-type': 'text/plain' }),
      route('/problem', '{', { 'content-type': 'application/problem+json' }),
      route('/empty', 'surplus', {}, 204),
    ],
  }),
};
`;

describe('what plugins return is JSON, or no answer', async () => {
  const endpoints = { raw: {}, stream: { mode: 'stream' } };
  const { service } = await served(suite, endpoints, { answers, sources: { returning } });

  const ask = (value: string) => service.post('api/raw', {}, { 'x-value': value });

  it('answer spaced: one line, whatever it was', async () => {
    const text = await (await ask('answer spaced')).text();
    assert.match(text, /^\{ {3}"node": "0x.{40}",.* "rawData": \{ {5}"price": 7 {3}\},.* "signature": "0x.{130}" \}$/);
    const stream = await (await service.post('api/stream', {}, { 'x-value': 'answer spaced' })).text();
    const [, data] = /^(?:event: \w+\n)?data: (.*)\n\n$/.exec(stream) ?? [];
    assert.deepEqual((JSON.parse(data ?? '') as { rawData: unknown }).rawData, { price: 7 });
  });

  it('attest flips: the proof is what it was at first', async () => {
    const { proof } = await verifyRaw(await ask('attest flips'), TEST_ADDRESS);
    assert.deepEqual(proof, { a: 1 });
  });

  for (const value of ['attest a text', 'attest nothing']) {
    it(`${value}: no proof`, async () => {
      assert.equal('proof' in (await verifyRaw(await ask(value), TEST_ADDRESS)), false);
    });
  }

  for (const value of ['validate a list', 'answer no json', 'answer no answer', 'answer a text', 'answer flips']) {
    it(`${value}: 500`, async () => assertRefused(await ask(value), 500, 'Internal server error'));
  }

  it('a route’s body that is sent as JSON must be JSON', async () => {
    await assertRefused(await fetch(`${service.url}/broken`), 500, 'Internal server error');
    await assertRefused(await fetch(`${service.url}/problem`), 500, 'Internal server error');
    assert.deepEqual(await (await fetch(`${service.url}/json`)).json(), { a: 1 });
    assert.equal(await (await fetch(`${service.url}/text`)).text(), 'text');
  });

  it('a response without content has no length', async () => {
    const response = await fetch(`${service.url}/empty`);
    const names = ['content-length', 'content-type'];
    assert.deepEqual([response.status, ...names.map((name) => response.headers.get(name))], [204, null, null]);
    assert.equal(await response.text(), '');
  });
});
