/** Plugins of a service from source get the modules of the program that runs. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { upstreamFor } from '../support/upstream.ts';
import { folderWith, launchCli } from './run.ts';
import { configText } from './service-config.ts';
import { postTo, startIn, urlOf } from './started.ts';

/** Knows what a built-in has made with the SDK: with another copy of it nobody does. */
const SOURCE = `
import { AskedQuestion, definePlugin } from 'signed-data-proxy/plugins-sdk';
const answer = (question) => {
  console.error(AskedQuestion.is(question) ? question.parameters.q : 'another copy');
};
export default definePlugin({ name: 'p', setup: () => ({ hooks: { answer } }) });
`;

describe('a plugin of a service from source', () => {
  it('shares the SDK with it, by each of its names and in TypeScript, and is a module, too, when it is minified', async (t) => {
    const upstream = await upstreamFor(t, { '*': (_, res) => void res.end('{"price":1}') });
    const minified = (name: string) => `var p={name:"${name}",hooks:{onError(){}}};export{p as default};`;
    const sources = {
      'p.mjs': SOURCE,
      'q.mjs': SOURCE.replace('signed-data-proxy/plugins-sdk', 'signed-data-proxy-plugins-sdk').replace("'p'", "'q'"),
      'r.ts': SOURCE.replace('(question)', '(question: any)').replace("'p'", "'r'"),
      // Behind one in TypeScript.
      'a.ts': minified('a'),
      'b.js': minified('b'),
    };
    const plugins = Object.keys(sources).map((name) => `{ source: ./${name} }`);
    const config = configText(upstream.url, `settings: { plugins: [${plugins.join(', ')}] }`);
    const running = await startIn(t, { 'c.yaml': config, ...sources });
    const [, id] = await running.output(/prices\/all (0x\w+)/);
    const body = JSON.stringify({ parameters: { q: 'left' } });
    const { status } = await postTo(await urlOf(running), id, {}, body);
    assert.equal(status, 200);
    const { code, stderr } = await running.stop();
    assert.deepEqual([code, stderr], [0, 'left\n'.repeat(3)]);
  });

  it('gets from each module of the package the names of that module', async (t) => {
    const plugins = ['testing', 'state'].map((entry) => `{ source: ./${entry}.mjs }`);
    const cwd = await folderWith(t, {
      'c.yaml': configText('https://api.example', `settings: { plugins: [${plugins.join(', ')}] }`),
      'testing.mjs': SOURCE.replace('AskedQuestion', 'testPlugin'),
      'state.mjs': SOURCE.replace('plugins-sdk', 'plugins-sdk/state'),
    });
    const { stderr } = await launchCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd }).ended;
    const lacks = (module: string, name: string) =>
      `cannot be loaded: The requested module '${module}' does not provide an export named '${name}' (line 3)`;
    assert.deepEqual(stderr.trim().split('\n'), [
      `error: settings.plugins[0].source: plugin "./testing.mjs": ${lacks('signed-data-proxy/plugins-sdk', 'testPlugin')}`,
      `error: settings.plugins[1].source: plugin "./state.mjs": ${lacks('signed-data-proxy/plugins-sdk/state', 'AskedQuestion')}`,
    ]);
  });
});
