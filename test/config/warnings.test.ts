/** A config that works and is dangerous is warned of. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, runCli } from '../cli/run.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

type Block = Readonly<Record<string, unknown>>;

/** A config of one API, open to everyone, with one endpoint; blocks are merged in. */
function config(api: Block = {}, ...endpoints: readonly Block[]) {
  const list = (endpoints.length === 0 ? [{}] : endpoints).map((endpoint, i) => ({
    name: `e${i}`,
    path: `/${i}`,
    ...endpoint,
  }));
  return { apis: [{ name: 'a', url: 'https://api.example.com', auth: { type: 'free' }, ...api, endpoints: list }] };
}

/** What is said of the only endpoint, which is raw. */
const raw = (name: string) =>
  `recommendation: encoding for ${name}: raw answers carry numbers as doubles, an encoding signs every digit\n`;

describe('a line of the variables file that does not say what it seems to', () => {
  it('is warned of with file and line, and never with the value; the value stays', async (t) => {
    const upstream = await upstreamFor(t, { '/0': faults.json({ price: 1 }) });
    const given = { version: '1.0', ...config({ url: upstream.url, headers: { 'X-Key': `\${KEY}` } }) };
    const files = { 'c.yaml': stringify(given), '.env': 'KEY=secret#1\nKEY hunter2\n' };
    const cwd = await folderWith(t, files);
    const warned = [
      [`${cwd}/.env:1`, 'the value of KEY ends before the #: write it in quotes to keep the rest'],
      [`${cwd}/.env:2`, 'this line is ignored: write NAME=value'],
    ];
    const { stdout, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.match(stdout, /^a\/e0 0x[0-9a-f]{64}\n$/);
    assert.equal(stderr, warned.map(([at, message]) => `warning: ${at}: ${message}\n`).join('') + raw('a/e0'));
    const json = await runCli(t, ['config', 'validate', '-c', 'c.yaml', '--json'], { cwd });
    assert.deepEqual(
      JSON.parse(json.stdout).warnings.map((one: Block) => [one.path, one.message]),
      warned,
    );
    const tried = await runCli(t, ['try', 'a/e0', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([tried.code, upstream.requests[0]?.headers['x-key']], [0, 'secret']);
  });
});

describe('keys that can be guessed', () => {
  const message = 'has fewer than 16 characters and can be guessed: use a random one, such as 32 hex digits';

  it('are not judged while their variable is unset, and never shown', async (t) => {
    const keys = `['hunter2', '\${UNSET}', '\${SECRET}']`;
    const text = `version: '1.0'
apis:
  - name: a
    url: https://api.example.com
    auth: { type: apiKey, keys: ${keys} }
    endpoints: [{ name: e, path: / }]
`;
    const cwd = await folderWith(t, { 'c.yaml': text });
    const args = ['config', 'validate', '-c', 'c.yaml'];
    const { code, stdout, stderr } = await runCli(t, args, { cwd, env: { SECRET: 'hunter3' } });
    assert.equal(code, 0);
    assert.match(stdout, /^a\/e 0x[0-9a-f]{64}\n$/);
    assert.equal(
      stderr,
      `warning: apis[0].auth.keys[0]: ${message} (a, line 5)
warning: apis[0].auth.keys[1]: the variable UNSET is not set (a, line 5)
warning: apis[0].auth.keys[2]: ${message} (a, line 5)
${raw('a/e')}`,
    );
  });
});

describe('a number that is sent otherwise than it is written', () => {
  const written = (parameters: string) => `version: '1.0'
apis:
  - name: a
    url: https://api.example.com
    auth: { type: free }
    endpoints:
      - name: e
        path: /
        method: POST
        parameters: ${parameters}
`;
  const linesOf = async (t: TestContext, parameters: string) => {
    const cwd = await folderWith(t, { 'c.yaml': written(parameters) });
    const { code, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.equal(code, 0, stderr);
    return stderr.split('\n').filter((text) => text.startsWith('warning: '));
  };
  const line = (place: string, said: string) =>
    `warning: apis[0].endpoints[0].parameters${place}: ${said}: write it in quotes to send that text (a/e, line 10)`;

  it('is warned of, fixed or default, in any place, also behind an alias', async (t) => {
    const numbers = ['1.10', '1e3', '0x1F', '.5', '+5', '1.0', '0o17', '-0', '007'];
    const sent = ['1.1', '1000', '31', '0.5', '5', '1', '15', '0', '7'];
    const list = numbers.map((number, i) => `{ name: p${i}, fixed: ${number} }`).join(', ');
    assert.deepEqual(
      await linesOf(t, `[${list}]`),
      numbers.map((number, i) => line(`[${i}].fixed`, `${number} is sent as ${sent[i]}`)),
    );
    const aliases =
      '[{ name: a, default: &n 1.10 }, { name: b, in: body, fixed: *n }, { name: c, in: body, fixed: 1e21 }]';
    assert.deepEqual(await linesOf(t, aliases), [
      line('[0].default', '1.10 is sent as 1.1'),
      line('[1].fixed', '1.10 is sent as 1.1'),
      line('[2].fixed', '1e21 is sent as 1e+21'),
    ]);
    const inside =
      '[{ name: a, fixed: [1.10, 2, 007], style: comma }, { name: b, in: body, default: { c: [1e2], d: 3 } }]';
    assert.deepEqual(await linesOf(t, inside), [
      line('[0].fixed[0]', '1.10 is sent as 1.1'),
      line('[0].fixed[2]', '007 is sent as 7'),
      line('[1].default.c[0]', '1e2 is sent as 100'),
    ]);
  });

  it('is not shown where it is secret, and not warned of where it is sent as written', async (t) => {
    assert.deepEqual(
      await linesOf(t, '[{ name: a, fixed: 1.10, secret: true }, { name: b, in: body, fixed: [1.10], secret: true }]'),
      [
        line('[0].fixed', 'the number is not sent as written'),
        line('[1].fixed[0]', 'the number is not sent as written'),
      ],
    );
    const list = `[{ name: a, fixed: '1.10' }, { name: b, default: 1.1 }, { name: c, fixed: -5 }, { name: d, fixed: true }]`;
    assert.deepEqual(await linesOf(t, list), []);
  });

  it('loses leading zeros elsewhere, with a warning', async (t) => {
    assert.deepEqual(await linesOf(t, '[{ name: a, schema: { enum: [007, -01.5, 0.5, 0] } }]'), [
      'warning: apis[0].endpoints[0].parameters[0].schema.enum[0]: 007 is read as 7: write it so, or in quotes (a/e, line 10)',
      'warning: apis[0].endpoints[0].parameters[0].schema.enum[1]: -01.5 is read as -1.5: write it so, or in quotes (a/e, line 10)',
    ]);
  });

  it('is sent as JavaScript writes it', async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json(1) });
    const parameters =
      '[{ name: a, fixed: 1.10 }, { name: b, default: 1e3 }, { name: c, fixed: 0x1F }, { name: d, fixed: .5 }]';
    const cwd = await folderWith(t, { 'c.yaml': written(parameters).replace('https://api.example.com', upstream.url) });
    const { stderr } = await runCli(t, ['try', 'a/e', '-c', 'c.yaml'], { cwd });
    assert.equal(upstream.requests[0]?.path, '/?a=1.1&b=1000&c=31&d=0.5', stderr);
  });
});
