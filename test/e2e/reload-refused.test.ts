/** A reload that cannot take the new config leaves everything as it was. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginTools } from '../support/plugin-files.ts';
import { answered, idOf, postTo, reload, reloadable, rewrite, tagged, withTag } from '../support/reload.ts';
import { serviceFor } from '../support/service.ts';

const IN_FORCE = 'error the config was not reloaded: the one before stays in force';
const WARNING = 'warn plugin "tagged" can change what gets signed (onAfterApiCall)';

beforeEach(() => notes.clear());

describe('a config that cannot be used leaves everything as it was', async () => {
  const definition = (name: string, behaviour: string) =>
    `${pluginTools} export default { name: '${name}', setup() { ${behaviour} } };`;
  const files = {
    'tagged.mjs': tagged,
    'setup.mjs': definition('setup', `throw new Error('no\\nway');`),
    'late.mjs': definition('late', `return { start() { throw new Error('not today'); }, stop: () => note('late') };`),
    'promise.mjs': definition('promise', `return Promise.resolve({});`),
    'budget.mjs': 'export default { name: "budget", budget: () => "none at all", setup: () => ({}) };',
    'route.mjs': definition(
      'route',
      `return { routes: [{ method: 'GET', path: '/health', admit: false, handle() {} }] };`,
    ),
    'unread.mjs': `throw new Error('unread');`,
  };

  const { upstream, config } = await reloadable();
  const B = idOf(upstream.url, '/b');
  const service = await serviceFor(suite, config({ a: {} }, withTag('old')), { files });

  const plugin = (...sources: string[]) => {
    const { plugins } = withTag('new').settings;
    return { settings: { plugins: [...plugins, ...sources.map((name) => ({ source: `./${name}.mjs` }))] } };
  };
  const refused = async (...expected: (string | RegExp)[]) => {
    const { done, lines } = await reload(service);
    assert.equal(done, false);
    assert.equal(lines.length, expected.length + 1, lines.join('\n'));
    for (const [index, line] of [...expected, IN_FORCE].entries()) {
      if (typeof line === 'string') assert.equal(lines[index], line);
      else assert.match(String(lines[index]), line);
    }
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'old' });
    await assertRefused(await postTo(service, B), 404, 'Endpoint not found');
  };

  it('no YAML', async () => {
    await writeFile(join(service.folder, 'config.yaml'), 'version: "1.0"\napis: [');
    await refused(/^error (line|.*config\.yaml).*/);
  });

  it('an empty file', async () => {
    await writeFile(join(service.folder, 'config.yaml'), '');
    await refused(/^error /);
  });

  it('two wrong keys', async () => {
    await rewrite(service, config({ a: { encodign: {} }, b: { mode: 'synk' } }));
    await refused(
      /^error apis\[0\]\.endpoints\[0\]\.encodign: .*"encoding"/,
      /^error apis\[0\]\.endpoints\[1\]\.mode: /,
    );
  });

  it('a variable that is not set', async () => {
    await rewrite(service, config({ a: {} }, { api: { headers: { 'X-Key': `\${UNSET_KEY}` } } }));
    await refused('error apis[0].headers.X-Key: the variable UNSET_KEY is not set (api, line 8)');
  });

  it('the same endpoint twice', async () => {
    await rewrite(service, config({ a: {}, again: { path: '/a' } }));
    await refused(
      'error apis[0].endpoints[1]: "api/again" and "api/a" (apis[0].endpoints[0]) have the same endpoint ID: they are the same request. To have both, give one a parameter that the upstream ignores, such as {name: via, fixed: stream} (api/again, line 10)',
    );
  });

  const at = 'error settings.plugins[1] (line 7): plugin';
  /** What is wrong, the name of the plugin, and the lines of the log. */
  const faulty: [string, string, ...(string | RegExp)[]][] = [
    ['a plugin that is not there', 'nowhere', /^error settings\.plugins\[1\]\.source: plugin "\.\/nowhere\.mjs": /],
    [
      'a plugin that cannot be loaded',
      'unread',
      /^error settings\.plugins\[1\]\.source: plugin "\.\/unread\.mjs": cannot be loaded: .*unread/,
    ],
    ['a plugin that cannot be set up', 'setup', WARNING, `${at} "setup" of ./setup.mjs cannot be set up: no way`],
    [
      'a plugin whose setup is a promise',
      'promise',
      WARNING,
      `${at} "promise" of ./promise.mjs cannot be set up: "setup" must return {hooks, routes, operations, dependencies, observe, vary, start, stop} at once`,
    ],
    [
      'a plugin with a wrong budget',
      'budget',
      'error settings.plugins[1]: plugin "budget": its "budget" fails: what "budget" returned: expected "none" or a number, found a string (line 7)',
    ],
    ['two plugins that serve one route', 'route', WARNING, 'error plugins "health" and "route" both serve GET /health'],
    ['a plugin that cannot start', 'late', WARNING, 'error plugin "late" cannot start: not today'],
  ];
  for (const [what, name, ...expected] of faulty) {
    it(what, async () => {
      await rewrite(service, config({ b: {} }, plugin(name)));
      await refused(...expected);
    });
  }

  it('stops again what was started beside one that could not start', async () => {
    await reload(service, config({ b: {} }, plugin('late')));
    const [started] = notes.of('start');
    assert.match(String(started), /^new \d+$/);
    assert.deepEqual([notes.of('stop'), notes.of('late').length], [[started], 1]);
  });

  it('variables that cannot be read', async () => {
    const from = service.logs.length;
    const unreadable = 'secrets.env: cannot be read: it is a folder';
    assert.equal(await service.reload(() => Promise.reject(new Error(unreadable))), false);
    const lines = service.logs.slice(from).map(({ level, message }) => `${level} ${message}`);
    assert.deepEqual(lines, [`error ${unreadable}`, IN_FORCE]);
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'old' });
  });

  it('a file that is gone', async () => {
    const file = join(service.folder, 'config.yaml');
    await rm(file);
    assert.deepEqual(await reload(service), { done: false, lines: [`error ${file}: file not found`, IN_FORCE] });
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'old' });
  });

  it('and does not stand in the way of a good one', async () => {
    const { done } = await reload(service, config({ b: {} }, withTag('new')));
    assert.equal(done, true);
    assert.deepEqual(await answered(await postTo(service, B)), { from: 'b', tag: 'new' });
  });
});
