/** A path value stays in its place, also behind a proxy that decodes paths. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { freePort } from '../state/redis-server.ts';
import { askableService } from '../support/askable.ts';
import { suite } from '../support/lifetime.ts';
import { startNginx, withoutNginx } from '../support/nginx.ts';
import { pluginFile } from '../support/plugin-files.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';

const PREFIX = '/api/items/';

const path = (name: string, more: object = {}) => ({ name, in: 'path', ...more });
const endpoints = {
  item: { path: `${PREFIX}{id}`, parameters: [path('id', { required: true })] },
  inner: { path: `${PREFIX}{id}/detail`, parameters: [path('id', { required: true })] },
  beside: { path: `${PREFIX}.{a}{b}.x`, parameters: [path('a', { default: '' }), path('b', { default: '' })] },
  broken: { path: `${PREFIX}x%2{a}/y`, parameters: [path('a', { required: true })] },
};

/** Asks for what stands behind the word "ask:". */
const changer = pluginFile(
  'changer',
  `onBeforeApiCall({ parameters }) {
    if (parameters.id?.startsWith('ask:')) return { parameters: { id: JSON.parse('"' + parameters.id.slice(4) + '"') } };
  }`,
);

const encoded = (text: string) => text.replace(/./gs, (c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
const times = (count: number, text: string) => Array.from({ length: count }).reduce<string>(encodeOnce, text);
const encodeOnce = (text: string) => text.replaceAll('%', '%25').replaceAll('.', '%2e').replaceAll('/', '%2f');

/** Values that lead out of their place once somebody on the way decodes them, as often as it takes. */
const escapes = [
  ...['.', '..', '../', './x', '/..', 'a/../../../b', '../../../internal/users', 'a/..', 'a/./b', '..\\..\\x', '\\..'],
  ...['a\\../b', 'a/..\\b', '..//', '//..', '/./'],
  ...[
    '%2e',
    '%2E%2e',
    '%2e%2e%2f',
    '.%2e/',
    '%2e.',
    '..%2fx',
    '..%5cx',
    'a%2f..',
    '%252e%252e',
    '%25252e.',
    '..%252fx',
  ],
  ...['%%32e', '%2%65%2e', '%%32%65.', `${times(5, '../x')}`, encoded('../../x'), encoded(encoded('../x'))],
  ...['%c0%ae%c0%ae/x', '%c0%ae.', '..%c0%afx', '..%c1%9cx', '%e0%80%ae%e0%80%ae', '%f0%80%80%ae.', '%25c0%25ae.'],
  ...['%u002e%u002e/x', '..%u002fx', '%u002E.'],
  ...['..;/x', '..;a=b', 'a/..;x/y', '.;', '..%3b/x', '..%253bx'],
  ...['\t..', '..\0', '.\n.', '.. ', ' ./x', '..%00', '..%20', '%0a..', '.%09./x'],
];

const harmless: [string, string][] = [
  ['BTC/USD', 'BTC%2FUSD'],
  ['/a/', '%2Fa%2F'],
  ['a\\b', 'a%5Cb'],
  ['...', '...'],
  ['.../....', '...%2F....'],
  ['.x/..y/z.', '.x%2F..y%2Fz.'],
  ['a..b', 'a..b'],
  ['1.5', '1.5'],
  ['file.json', 'file.json'],
  ['100%', '100%25'],
  ['%', '%25'],
  ['%2F', '%252F'],
  ['%zz..', '%25zz..'],
  ['a%2e%2eb', 'a%252e%252eb'],
  ['À®À®', '%C3%80%C2%AE%C3%80%C2%AE'],
  ['ü/€', '%C3%BC%2F%E2%82%AC'],
  ['a;b=..', 'a%3Bb%3D..'],
  ['..a;b', '..a%3Bb'],
  [' ', '%20'],
];

describe('a path value stays in its place', async () => {
  const { ask, refuse } = await askableService(endpoints, { sources: { changer } });
  const refused = (endpoint: string, parameters: object, name = 'id') =>
    refuse(endpoint, parameters, `Invalid parameter: ${name}`);
  const sent = async (endpoint: string, parameters: object) => (await ask(endpoint, parameters)).path;

  it('a segment `.` or `..`, after any number of decodings, is 400 Invalid parameter', async () => {
    for (const id of escapes) {
      await refused('item', { id });
      await refused('inner', { id });
    }
  });

  it('what is harmless stays, encoded', async () => {
    for (const [id, text] of harmless) {
      assert.equal(await sent('item', { id }), PREFIX + text);
      assert.equal(await sent('inner', { id }), `${PREFIX}${text}/detail`);
    }
  });

  it('what stands beside the placeholder counts; the parameter that is to blame is named', async () => {
    assert.equal(await sent('beside', {}), `${PREFIX}..x`);
    assert.equal(await sent('beside', { a: 'x' }), `${PREFIX}.x.x`);
    assert.equal(await sent('beside', { a: '.' }), `${PREFIX}...x`);
    await refused('beside', { a: '/' }, 'a');
    await refused('beside', { a: '.', b: '/' }, 'a');
    await refused('beside', { a: 'x', b: '/../y' }, 'b');
    await refused('beside', { b: 'x/../y' }, 'b');
    await refused('beside', { a: '%2', b: 'e/' }, 'a');
    assert.equal(await sent('broken', { a: '1' }), `${PREFIX}x%21/y`);
    await refused('broken', { a: 'f../z' }, 'a');
  });

  it('so do values that a plugin made', async () => {
    const hidden = (text: string) =>
      `ask:${text.replace(/./gs, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)}`;
    assert.equal(await sent('item', { id: hidden('a/b') }), `${PREFIX}a%2Fb`);
    for (const id of escapes) await refused('item', { id: hidden(id) });
  });

  it('a value that takes long to decode takes no long time', async () => {
    const room = 60_000;
    await refused('item', { id: `%${'25'.repeat(room / 2)}2e` });
    await refused('item', { id: `${'a/'.repeat(room / 2)}..` });
    await refused('item', { id: `%2%6${'%3'.repeat(room / 2 - 2)}5` });
    assert.equal(await sent('item', { id: '.'.repeat(2000) }), PREFIX + '.'.repeat(2000));
  });
});

describe('behind nginx, which decodes paths', { skip: withoutNginx }, async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ value: 7 }) });
  const url = `http://127.0.0.1:${await freePort()}`;
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path /tmp/${name};`);
  const config = `pid /tmp/pid; error_log stderr; events {}
    http {
      access_log off; ${places.join(' ')} merge_slashes on;
      upstream backend { server ${new URL(upstream.url).host}; }
      server {
        listen ${new URL(url).host};
        large_client_header_buffers 4 128k;
        location / { proxy_pass http://backend/; }
      }
    }`;
  await startNginx(suite, config);
  await retried(() => fetch(`${url}/up`));
  const service = await serviceFor(suite, oneApi(url, endpoints));

  /** Asks, and asserts that what reached the backend is where it belongs. */
  const stays = async (endpoint: string, parameters: object) => {
    upstream.requests.length = 0;
    const { status } = await service.post(`api/${endpoint}`, parameters);
    for (const { path } of upstream.requests) {
      assert.ok(path.startsWith(PREFIX), `${JSON.stringify(parameters)} reached ${path}`);
      assert.ok(new URL(`http://x${decodeURI(path)}`).pathname.startsWith(PREFIX), path);
    }
    return status;
  };

  it('decodes what goes through it, so that there is something to be seen', async () => {
    await fetch(`${new URL(upstream.url).origin}/direct`);
    upstream.requests.length = 0;
    assert.equal(await stays('item', { id: 'BTC/USD' }), 200);
    assert.equal(upstream.requests.at(-1)?.path, `${PREFIX}BTC/USD`);
  });

  it('no value reaches another prefix', async () => {
    for (const id of escapes) assert.equal(await stays('item', { id }), 400, id);
    for (const [id] of harmless) await stays('inner', { id });
  });

  it('nor does any made of what means something to it', async () => {
    const meaning = ['.', '..', '/', '\\', '%', '%2e', '%2F', '%252e', '2e', '25', ';', 'a', '%c0%ae', '\t'];
    const text = fc.array(fc.constantFrom(...meaning), { maxLength: 8 }).map((parts) => parts.join(''));
    let arrived = 0;
    const endpoint = fc.constantFrom('item', 'inner', 'beside');
    const claim = fc.asyncProperty(endpoint, text, text, async (name, a, b) => {
      await stays(name, { id: a, a, b });
      arrived += upstream.requests.length;
    });
    await fc.assert(claim, { numRuns: 150 });
    assert.ok(arrived > 3, `only ${arrived} of 150 reached the backend`);
  });
});
