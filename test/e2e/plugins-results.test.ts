/** What a hook returns takes effect as documented, and whatever it throws drops the request. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hostileThrows, notes, raise, thenable, throwingProxy, withGetter } from '../support/plugin-files.ts';
import { DROPPED, MUTATIONS, on, outcome, withPuppet } from '../support/puppet.ts';

const { upstream, service, encoded, raw, verified, assertDropped } = await withPuppet();

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
      await verified();
    }
  });

  it('on requests that authentication or validation would refuse too', async () => {
    on('onHttpRequest', ({ parameters }) => notes.add('seen', parameters));
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
      assert.equal(JSON.stringify(await raw()), JSON.stringify(data));
    }
    on('onAfterApiCall', () => ({ data: { kept: 1, gone: undefined, list: [undefined] } }));
    assert.deepEqual(await raw(), { kept: 1, list: [null] });
  });

  it('a status that is not 2xx is never signed', async () => {
    for (const status of [100, 199, 300, 304, 404, 500, 599]) {
      on('onAfterApiCall', () => ({ data: { price: 1 }, status }));
      assert.deepEqual(await outcome(await encoded()), [502, { error: 'API call failed' }], String(status));
    }
    for (const status of [200, 204, 299]) {
      on('onAfterApiCall', () => ({ data: { price: 1 }, status }));
      assert.equal(BigInt(await verified()), 1n);
    }
  });
});

describe('onBeforeSign changes what is signed', () => {
  it('to any whole number of hex bytes', async () => {
    for (const data of ['0x', '0xab', '0xAbCd', `0x${'11'.repeat(1000)}`]) {
      on('onBeforeSign', () => ({ data }));
      assert.equal(await verified(), data);
    }
  });

  it('or leaves it with undefined', async () => {
    on('onBeforeSign', async () => undefined);
    assert.equal(BigInt(await verified()), 7n);
  });
});

for (const hook of MUTATIONS) {
  describe(`${hook}: whatever it throws is 403 \`Request dropped by plugin "<name>"\` and never reaches the client`, () => {
    for (const [what, make] of Object.entries(hostileThrows)) {
      it(what, async () => {
        on(hook, () => raise(make()));
        await assertDropped(hook, 'thrown');
        on(hook, () => Promise.reject(make()));
        await assertDropped(hook, 'rejected');
      });
    }

    it('a promise of another make that fails on its way', async () => {
      const thenables: Readonly<Record<string, () => object>> = {
        'then throws': () => thenable(() => raise(throwingProxy())),
        'then is a getter that throws': () => withGetter('then', () => raise(throwingProxy())),
        'then rejects with nothing': () => thenable((_: unknown, reject: (error?: unknown) => void) => reject()),
        'then answers twice and throws': () =>
          thenable((resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
            resolve(throwingProxy());
            reject(new Error('LEAK'));
            throw new Error('LEAK');
          }),
      };
      for (const [what, make] of Object.entries(thenables)) {
        on(hook, make);
        await assertDropped(hook, what);
      }
    });

    it('and the next request is served', async () => {
      await verified();
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
  const seen = service.logs.filter(({ level }) => level === 'warn' || level === 'error');
  const line = seen.find(({ message, fields }) => `${message}${JSON.stringify(fields)}`.includes('the oracle is out'));
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
  assert.deepEqual(await raw(), { price: 1, list: [1] });
});
