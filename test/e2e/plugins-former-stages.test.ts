/** Plugins may use the former names of stages, and are told the new ones. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { notes, pluginFiles } from '../support/plugin-files.ts';
import { serviceFor, startTestService } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

// A plugin may use the names that stages had before for one release, and is told the present ones.

/** A class whose methods work on itself only, with a function at each renamed stage. */
const old = `class Behaviour {
  #note = globalThis.testNote;
  hooks = {
    read: (request, exchange) => { this.#note('ran', 'read'); return undefined; },
    deliver: { mine: async (run) => { this.#note('ran', 'deliver'); return { status: 200, body: await run() }; } },
    prove: () => { this.#note('ran', 'prove'); return { by: 'old' }; },
    release: () => { this.#note('ran', 'release'); },
    settle: ({ kind }) => { this.#note('ran', 'settle ' + kind); },
  };
  start() { this.#note('ran', 'start'); }
}
export default { name: 'old', modes: ['mine'], setup: () => new Behaviour() };`;

const PLACE = 'settings.plugins[0] (line 4): plugin "old"';

async function refusal(t: TestContext, plugin: string, entry: object = {}): Promise<string> {
  const { files, plugins } = pluginFiles({ old: plugin }, { old: entry });
  const starting = startTestService(oneApi('http://a.invalid', { e: {} }, { settings: { plugins } }), { files });
  return starting.then(
    (service) => {
      t.after(() => service.stop());
      return 'started';
    },
    (error: Error) => error.message,
  );
}

describe('a plugin with the former names of stages', () => {
  it('is asked at the stages of today, and the log names these', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.json('/e', { a: 1 });
    const { files, plugins } = pluginFiles({ old });
    const config = oneApi(upstream.url, { e: { mode: 'mine' } }, { settings: { plugins } });
    const service = await serviceFor(t, config, { files });
    const response = await service.post('api/e');
    const { rawData, proof } = (await response.json()) as { rawData: unknown; proof: unknown };
    assert.deepEqual([response.status, rawData, proof], [200, { a: 1 }, { by: 'old' }]);
    assert.deepEqual(notes.of('ran'), ['start', 'read', 'deliver', 'prove', 'release', 'settle signed']);
    const told = service.logs.filter(({ message }) => message.startsWith(PLACE));
    const renamed = { read: 'parseBody', deliver: 'present', prove: 'attest', release: 'approve', settle: 'concluded' };
    const line = ([before, now]: [string, string]) => ({
      level: 'warn',
      message: `${PLACE}: the hook "${before}" is called "${now}" now: rename it, since the next release will not know "${before}"`,
      fields: {},
    });
    assert.deepEqual(told, Object.entries(renamed).map(line));
    assert.deepEqual(
      service.logs.flatMap(({ message }) => (message.startsWith('plugin "old"') ? [message] : [])),
      ['plugin "old" can change what gets signed (parseBody, present)'],
    );
  });

  it('does not start with both names of a stage', async (t) => {
    const both = "export default { name: 'old', setup: () => ({ hooks: { settle() {}, concluded() {} } }) };";
    assert.equal(
      await refusal(t, both),
      'settings.plugins[0] (line 4): plugin "old" of ./old.mjs cannot be set up: "hooks" has "settle" and "concluded", which are one stage: leave "settle" out',
    );
  });

  for (const isolate of [false, true]) {
    it(`is told the present name where it has no setup, isolated: ${isolate}`, async (t) => {
      const simple = "export default { name: 'old', hooks: { release() {} } };";
      const expected =
        'plugin "./old.mjs": the hook "release" is called "approve" now, and needs a plugin with "setup"';
      assert.ok((await refusal(t, simple, { isolate })).includes(expected));
    });
  }
});
