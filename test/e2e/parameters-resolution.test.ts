/** A parameter is fixed, sent, or its default; a required one that is missing is 400. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { askableService } from '../support/askable.ts';
import { notes, pluginFile } from '../support/plugin-files.ts';

/** Notes the parameters that hooks get; answers what the test left for `onBeforeApiCall`. */
const spy = pluginFile(
  'spy',
  `onHttpRequest({ parameters }) { note('onHttpRequest', parameters); },
   onBeforeApiCall({ parameters }) { note('onBeforeApiCall', parameters); return globalThis.testAnswer?.(parameters); },
   onAfterApiCall({ parameters }) { note('onAfterApiCall', parameters); }`,
);

function answerBeforeApiCall(answer: ((parameters: object) => unknown) | undefined): void {
  Reflect.set(globalThis, 'testAnswer', answer);
}

const endpoints = {
  order: {
    parameters: [
      { name: 'fixed', fixed: 'f' },
      { name: 'given', default: 'd' },
      { name: 'both', fixed: 1, default: 2 },
      { name: 'flag', default: false },
      { name: 'zero', fixed: 0 },
      { name: 'optional' },
    ],
  },
  required: {
    path: '/required/{id}',
    parameters: [
      { name: 'zeta', required: true },
      { name: 'id', in: 'path', required: true },
      { name: 'token', in: 'header', required: true, secret: true },
      { name: 'alpha', in: 'body', required: true },
      { name: 'pinned', fixed: 'p' },
      { name: 'sid', in: 'cookie', required: true },
    ],
  },
  segments: {
    path: '/segments/{id}/v{n}?x={id}',
    parameters: [
      { name: 'id', in: 'path' },
      { name: 'n', in: 'path' },
    ],
  },
  body: {
    method: 'POST',
    parameters: [
      { name: 'note', in: 'body', required: true },
      { name: 'extra', in: 'body', default: 'd' },
    ],
  },
  twice: {
    parameters: [
      { name: 'id', required: true },
      { name: 'id', in: 'header', required: true },
    ],
  },
  inherited: { parameters: [{ name: 'constructor' }, { name: '__proto__' }, { name: 'toString' }] },
  hidden: {
    parameters: [
      { name: 'shown', default: 'd' },
      { name: 'pinned', fixed: 'p' },
      { name: 'secret', secret: true },
      { name: 'password', secret: true, default: 'pw' },
    ],
  },
  wildcard: { parameters: [{ name: 'q', required: true }], encoding: { type: '*', path: '*', times: '*' } },
  pinned: { encoding: { type: 'int256', path: '$.value' } },
  changeable: {
    path: '/changeable/{id}',
    method: 'POST',
    parameters: [
      { name: 'id', in: 'path', required: true },
      { name: 'q' },
      { name: 'h', in: 'header' },
      { name: 'c', in: 'cookie' },
      { name: 'b', in: 'body' },
      { name: 'pinned', fixed: 'p' },
      { name: 'secret', in: 'header', secret: true },
    ],
  },
};

describe('parameter resolution', async () => {
  const { ask, refuse } = await askableService(endpoints, { sources: { spy } });

  beforeEach(() => {
    notes.clear();
    answerBeforeApiCall(undefined);
  });

  it('fixed, else the client, else default; falsy values count', async () => {
    assert.equal((await ask('order')).path, '/order?fixed=f&given=d&both=1&flag=false&zero=0');
    const asked = await ask('order', { fixed: 'x', given: 'c', both: 'x', flag: true, zero: 9, optional: 0 });
    assert.equal(asked.path, '/order?fixed=f&given=c&both=1&flag=true&zero=0&optional=0');
  });

  it('`null` counts as not given, `""` as given', async () => {
    const { path } = await ask('order', { given: null, optional: null });
    assert.equal(path, '/order?fixed=f&given=d&both=1&flag=false&zero=0');
    const empty = await ask('order', { given: '', optional: '' });
    assert.equal(empty.path, '/order?fixed=f&given=&both=1&flag=false&zero=0&optional=');
  });

  it('`null` is a value for body parameters, also for required ones', async () => {
    assert.equal((await ask('body', { note: null, extra: null })).body, '{"note":null,"extra":null}');
    assert.equal((await ask('body', { note: null })).body, '{"note":null,"extra":"d"}');
  });

  it('missing names are joined with ", " in the order of the config, secret ones too', async () => {
    for (const none of [undefined, {}])
      await refuse('required', none, 'Missing required parameter(s): zeta, id, token, alpha, sid');
    const some = { alpha: 1, zeta: null, id: 'x', token: 't', sid: null };
    await refuse('required', some, 'Missing required parameter(s): zeta, sid');
  });

  it('what fills a whole segment of the path is required, a part of one is not', async () => {
    await refuse('segments', { n: 1 }, 'Missing required parameter(s): id');
    await refuse('segments', { id: '' }, 'Invalid parameter: id');
    assert.equal((await ask('segments', { id: 'a' })).path, '/segments/a/v?x=a');
  });

  it('`""` satisfies `required`', async () => {
    const asked = await ask('required', { zeta: '', id: 'i', token: '', alpha: '', sid: '' });
    assert.equal(asked.path, '/required/i?zeta=&pinned=p');
    assert.deepEqual([asked.headers.token, asked.headers.cookie, asked.body], ['', 'sid=', '{"alpha":""}']);
  });

  it('one name in two places takes one value, and is missing once', async () => {
    const asked = await ask('twice', { id: 5 });
    assert.deepEqual([asked.path, asked.headers.id], ['/twice?id=5', '5']);
    await refuse('twice', undefined, 'Missing required parameter(s): id');
  });

  it('undeclared parameters reach neither the upstream nor any hook but onHttpRequest', async () => {
    const given = JSON.parse(
      '{"given":"c","extra":1,"__proto__":{"polluted":1},"constructor":2,"toString":3,"hasOwnProperty":4}',
    );
    assert.equal((await ask('order', given)).path, '/order?fixed=f&given=c&both=1&flag=false&zero=0');
    const declared = { given: 'c', flag: false };
    assert.deepEqual(notes.of('onBeforeApiCall'), [declared]);
    assert.deepEqual(notes.of('onAfterApiCall'), [declared]);
    assert.deepEqual(notes.of('onHttpRequest'), [given]);
  });

  it('what every object inherits is no value of a parameter', async () => {
    assert.equal((await ask('inherited')).path, '/inherited');
    const given = JSON.parse('{"__proto__":"p","constructor":"c"}');
    assert.equal((await ask('inherited', given)).path, '/inherited?constructor=c&__proto__=p');
  });

  it('hooks see client and default values, never fixed or secret ones', async () => {
    const asked = await ask('hidden', { shown: 'c', pinned: 'x', secret: 's', password: 'mine' });
    assert.equal(asked.path, '/hidden?shown=c&pinned=p&secret=s&password=mine');
    assert.deepEqual(notes.of('onBeforeApiCall'), [{ shown: 'c' }]);
    assert.deepEqual(notes.of('onAfterApiCall'), [{ shown: 'c' }]);
    assert.equal((await ask('hidden')).path, '/hidden?shown=d&pinned=p&password=pw');
  });

  it('what onBeforeApiCall returns replaces what it saw; fixed values and secrets stay', async () => {
    answerBeforeApiCall((seen) => ({
      parameters: { ...seen, shown: 'hook', pinned: 'x', secret: 'x', password: 'x', undeclared: 'x' },
    }));
    const asked = await ask('hidden', { shown: 'c', secret: 's' });
    assert.equal(asked.path, '/hidden?shown=hook&pinned=p&secret=s&password=pw');
    answerBeforeApiCall(() => ({ parameters: {} }));
    const { path } = await ask('hidden', { shown: 'c', secret: 's' });
    assert.equal(path, '/hidden?shown=d&pinned=p&secret=s&password=pw');
  });

  it('what onBeforeApiCall returns passes the same checks', async () => {
    const ok = { id: 'i', secret: 's', b: { deep: [1] } };
    answerBeforeApiCall((seen) => ({ parameters: { ...seen, id: 'a/b', q: true, h: 1.5, c: 'v', b: [null] } }));
    const { path, headers, body } = await ask('changeable', ok);
    assert.equal(path, '/changeable/a%2Fb?q=true&pinned=p');
    assert.deepEqual([headers.h, headers.secret, headers.cookie, body], ['1.5', 's', 'c=v', '{"b":[null]}']);
    const bad: [object, string][] = [
      [{ id: '..' }, 'Invalid parameter: id'],
      [{ id: '' }, 'Invalid parameter: id'],
      [{ id: null }, 'Missing required parameter(s): id'],
      [{ id: undefined }, 'Missing required parameter(s): id'],
      [{ q: '\ud800' }, 'Invalid parameter: q'],
      [{ h: 'a\r\nInjected: 1' }, 'Invalid parameter: h'],
      [{ h: '\0' }, 'Invalid parameter: h'],
      [{ c: 'a; admin=1' }, 'Invalid parameter: c'],
      [{ id: ['..'] }, 'Invalid parameter: id'],
    ];
    for (const [change, text] of bad) {
      answerBeforeApiCall((seen) => ({ parameters: { ...seen, ...change } }));
      await refuse('changeable', ok, text);
    }
  });

  it('`_type`, `_path` and `_times` never go upstream, consumed or not', async () => {
    const reserved = { _type: 'int256', _path: '$.value', _times: '10' };
    assert.equal((await ask('wildcard', { q: 'x', ...reserved })).path, '/wildcard?q=x');
    assert.equal((await ask('pinned', reserved)).path, '/pinned');
    const asked = await ask('body', { note: 1, ...reserved });
    assert.deepEqual([asked.path, asked.body], ['/body', '{"note":1,"extra":"d"}']);
    const seen = [...notes.of('onBeforeApiCall'), ...notes.of('onAfterApiCall')];
    assert.ok(!seen.some((given) => Object.keys(given ?? {}).some((name) => name.startsWith('_'))));
  });

  it('required parameters are missed before reserved ones, and neither reaches the upstream', async () => {
    await refuse('wildcard', undefined, 'Missing required parameter(s): q');
    await refuse('wildcard', { q: 1 }, 'Endpoint requires `_type` request parameter');
  });
});
