/** The memo, the answer and the credentials of a simple plugin are what it may see. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HookContext } from '../../plugins-sdk/hooks/contexts.ts';
import { type SimplePlugin, Type } from '../../plugins-sdk/index.ts';
import { testEndpoint, testPlugin } from '../../service/testing.ts';
import { block } from '../support/fuzz/situation.ts';
import { HOOKS } from '../support/plugin-files.ts';

type Memo = HookContext['memo'];

/** A plugin whose hooks all do the same. */
function everywhere(hook: (context: Pick<HookContext, 'memo' | 'signal'>) => unknown): SimplePlugin {
  return { name: 'p', hooks: Object.fromEntries(HOOKS.map((name) => [name, hook])) };
}

const DROPPED = { refused: { status: 403, message: 'Request dropped by plugin "p"' } };

describe('the memo of a request (`context.memo`)', () => {
  it('is a copy of what was left, and what is not JSON in it is none', async () => {
    const seen: unknown[] = [];
    const shared = { list: [1] };
    const harness = await testPlugin({
      name: 'p',
      hooks: {
        onHttpRequest: ({ memo }) => void Object.assign(memo, { shared, none: undefined }),
        onBeforeSign: ({ memo }) => void seen.push(memo, memo.shared === shared),
      },
    });
    const request = harness.request();
    await request.run('onHttpRequest');
    shared.list.push(2);
    await request.run('onBeforeSign');
    assert.deepEqual(seen, [{ shared: { list: [1] } }, false]);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic.a = cyclic;
  const bad: Readonly<Record<string, readonly [left: () => unknown, message: string]>> = {
    'a function': [() => () => 1, '"memo" is no plain JSON: it holds a function, which JSON cannot carry'],
    NaN: [() => Number.NaN, '"memo" is no plain JSON: it holds a number, which JSON cannot carry'],
    'a date': [() => new Date(), '"memo" is no plain JSON: it holds a class instance'],
    'a cycle': [() => cyclic, '"memo" is no plain JSON: it is too deep, too large or in a cycle'],
    'one byte too many': [() => 'x'.repeat(4089), '"memo" is longer than 4096 bytes'],
    'one byte too many, in fewer characters': [() => 'ä'.repeat(2045), '"memo" is longer than 4096 bytes'],
    'a mebibyte': [() => 'x'.repeat(1 << 20), '"memo" is longer than 4096 bytes'],
  };
  for (const [what, [left, message]] of Object.entries(bad)) {
    it(`has a hook fail that left ${what}`, async () => {
      const harness = await testPlugin(everywhere(({ memo }) => void Object.assign(memo, { a: left() })));
      for (const hook of HOOKS) {
        const outcome = await harness.run(hook);
        assert.deepEqual(outcome, ['onResponseSent', 'onError'].includes(hook) ? { passed: true } : DROPPED, hook);
      }
      const complaints = harness.complaints.map(({ hook, message }) => [hook, message]);
      assert.deepEqual(
        complaints,
        HOOKS.map((hook) => [hook, `Error: ${message}`]),
      );
    });
  }

  it('holds 4096 bytes', async () => {
    const harness = await testPlugin(everywhere(({ memo }) => void Object.assign(memo, { a: 'x'.repeat(4088) })));
    assert.deepEqual(await harness.run('onBeforeSign'), { passed: true });
  });

  it('stays as it was when a hook throws or returns what is refused, and when its time is over', async () => {
    const seen: Memo[] = [];
    let late: Promise<void> | undefined;
    const harness = await testPlugin(
      {
        name: 'p',
        hooks: {
          onHttpRequest: ({ memo }) => void Object.assign(memo, { by: 'onHttpRequest' }),
          onBeforeApiCall({ memo }) {
            memo.by = 'onBeforeApiCall';
            throw new Error('no');
          },
          onAfterApiCall({ memo }) {
            memo.by = 'onAfterApiCall';
            return { data: undefined };
          },
          onBeforeSign({ memo, signal }) {
            late = new Promise((resolve) => {
              signal.addEventListener('abort', () => {
                memo.by = 'onBeforeSign';
                resolve();
              });
            });
            return late.then(() => undefined);
          },
          onError: ({ memo }) => void seen.push(memo),
        },
      },
      { budget: 50 },
    );
    const request = harness.request();
    await request.run('onHttpRequest');
    assert.deepEqual(await request.run('onBeforeApiCall'), DROPPED);
    assert.deepEqual(await request.run('onAfterApiCall'), DROPPED);
    assert.deepEqual(await request.run('onBeforeSign'), {
      refused: { status: 403, message: 'Plugin "p" budget exhausted' },
    });
    await late;
    await request.run('onError');
    assert.deepEqual(seen, [{ by: 'onHttpRequest' }]);
  });

  it('stays as it was when a hook blocks for longer than its budget', async () => {
    const seen: Memo[] = [];
    const harness = await testPlugin(
      {
        name: 'p',
        hooks: {
          onBeforeSign({ memo }) {
            memo.by = 'onBeforeSign';
            block(60);
          },
          onError: ({ memo }) => void seen.push(memo),
        },
      },
      { budget: 50 },
    );
    const request = harness.request();
    await request.run('onBeforeSign');
    await request.run('onError');
    assert.deepEqual(seen, [{}]);
  });

  it('takes nothing that is written after the hook has ended', async () => {
    const held: Memo[] = [];
    const seen: Memo[] = [];
    const harness = await testPlugin({
      name: 'p',
      hooks: {
        onHttpRequest: ({ memo }) => {
          memo.at = 'the end';
          held.push(memo);
        },
        onBeforeSign: ({ memo }) => void seen.push(memo),
      },
    });
    const request = harness.request();
    await request.run('onHttpRequest');
    for (const memo of held) memo.at = 'too late';
    await request.run('onBeforeSign');
    assert.deepEqual(seen, [{ at: 'the end' }]);
  });

  it('is there beside the keys of the plugin', async () => {
    const keys = { limit: Type.Number() };
    const seen: unknown[] = [];
    const plugin = {
      name: 'p',
      hooks: {
        onHttpRequest: ({ memo, keys: { limit } }) => void Object.assign(memo, { limit }),
        onError: ({ memo, signal }) => void seen.push(memo, signal.aborted),
      },
    } satisfies SimplePlugin<typeof keys>;
    const harness = await testPlugin(plugin, { keys });
    const request = harness.request({ endpoint: testEndpoint({ block: { limit: 5 } }) });
    await request.run('onHttpRequest');
    await request.run('onError');
    assert.deepEqual(seen, [{ limit: 5 }, false]);
  });

  it('cannot be replaced', async () => {
    const harness = await testPlugin(
      everywhere((context) => {
        Object.assign(context, { memo: {} });
      }),
    );
    assert.deepEqual(await harness.run('onBeforeSign'), DROPPED);
  });
});

describe('the answer in onResponseSent (`context.answer`)', () => {
  it('is what was sent, parsed once and frozen', async () => {
    const seen: unknown[] = [];
    const harness = await testPlugin({
      name: 'p',
      hooks: {
        onResponseSent(context) {
          const { answer } = context;
          seen.push(answer, answer === context.answer, Object.isFrozen(answer) && Object.isFrozen(answer.rawData));
        },
      },
    });
    await harness.run('onResponseSent', { answer: { rawData: { price: [1] } } });
    assert.deepEqual(seen, [
      {
        node: `0x${'11'.repeat(20)}`,
        timestamp: 1_700_000_000,
        data: `0x${'00'.repeat(32)}`,
        signature: `0x${'22'.repeat(65)}`,
        endpointId: `0x${'11'.repeat(32)}`,
        rawData: { price: [1] },
      },
      true,
      true,
    ]);
  });
});

describe('credentials of a simple plugin', () => {
  const plugin = (credentials?: readonly string[]) => {
    const seen: unknown[] = [];
    const hooks: SimplePlugin['hooks'] = { onHttpRequest: ({ headers }) => void seen.push(headers) };
    return { seen, plugin: credentials === undefined ? { name: 'p', hooks } : { name: 'p', hooks, credentials } };
  };
  const headers = { Authorization: 'Bearer x', 'X-Api-Key': 'secret' };
  const services = { credentials: ['X-Api-Key', 'Authorization'] };

  it('are in the headers that its own hook gets', async () => {
    const own = plugin(['authorization']);
    await (await testPlugin(own.plugin, { services })).run('onHttpRequest', { headers });
    const other = plugin();
    await (await testPlugin(other.plugin, { services })).run('onHttpRequest', { headers });
    assert.deepEqual([own.seen, other.seen], [[{ authorization: 'Bearer x' }], [{}]]);
  });

  it('are a list of header names', async () => {
    for (const credentials of ['Authorization', [1], [''], {}]) {
      const bad = { name: 'p', hooks: {}, credentials } as unknown as SimplePlugin;
      await assert.rejects(testPlugin(bad), { message: 'its "credentials" must be a list of header names' });
    }
  });
});
