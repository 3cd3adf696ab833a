/** Each parameter goes to its place in the request, encoded for that place. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { askableService } from '../support/askable.ts';
import { assertRefused } from '../support/http.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, type RecordedRequest, upstreamFor } from '../support/upstream.ts';

const path = (name: string) => ({ name, in: 'path', required: true });
const at = (place: string, ...names: string[]) => names.map((name) => ({ name, in: place }));
const endpoints = {
  query: { parameters: at('query', 'q', 'a b&c=d', 'ünï') },
  'query-in-path': { path: '/query-in-path?fixed=1', parameters: [{ name: 'q' }] },
  placeholder: { path: '/tail?x={x}&y=1', parameters: [{ name: 'x', in: 'path' }, { name: 'q' }] },
  path: { path: '/path/{id}/end', parameters: [path('id')] },
  parts: { path: '/parts/{a}{b}.json/{c}-x', parameters: [path('a'), path('b'), path('c')] },
  dots: { path: '/dots/{a}{b}', parameters: at('path', 'a', 'b').map((parameter) => ({ ...parameter, default: '' })) },
  encoded: { path: '/encoded/%2E{a}/x', parameters: [path('a')] },
  repeated: { path: '/repeated/{id}/{id}', parameters: [path('id')] },
  header: { parameters: at('header', 'X-Value', '__proto__') },
  cookie: { parameters: [...at('cookie', 'one', 'two'), { name: 'three', in: 'cookie', default: '3' }] },
  body: { method: 'POST', parameters: at('body', 'b', 'a', '__proto__') },
  all: {
    path: '/all/{p}',
    method: 'PUT',
    parameters: [path('p'), { name: 'q' }, ...at('header', 'X-H'), ...at('cookie', 'c'), ...at('body', 'b')],
  },
};

/** Header names and values exactly as sent, without those of the HTTP client. */
function sent({ rawHeaders }: RecordedRequest): string[] {
  const lines: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return lines.filter((line) => !/^(host|connection|accept|user-agent|accept-encoding|content-length): /i.test(line));
}

describe('parameter placement', async () => {
  const { ask, refuse: refused } = await askableService(endpoints);
  const refuse = (endpoint: string, parameters: unknown, name: string) =>
    refused(endpoint, parameters, `Invalid parameter: ${name}`);

  it('query values and names are percent-encoded and cannot leave their place', async () => {
    const { path } = await ask('query', { q: 'a b&x=1#y?z/ü€\u{1f600}+%' });
    assert.equal(path, '/query?q=a%20b%26x%3D1%23y%3Fz%2F%C3%BC%E2%82%AC%F0%9F%98%80%2B%25');
    assert.equal((await ask('query', { 'a b&c=d': 1, ünï: 2 })).path, '/query?a%20b%26c%3Dd=1&%C3%BCn%C3%AF=2');
    assert.equal((await ask('query', { q: '\0\r\n' })).path, '/query?q=%00%0D%0A');
  });

  it('query parameters follow a query of the configured path', async () => {
    assert.equal((await ask('query-in-path', {})).path, '/query-in-path?fixed=1');
    assert.equal((await ask('query-in-path', { q: 'x' })).path, '/query-in-path?fixed=1&q=x');
  });

  it('a placeholder may stand in the query of the path and takes any text there', async () => {
    assert.equal((await ask('placeholder', { x: '../&y=2', q: 'z' })).path, '/tail?x=..%2F%26y%3D2&y=1&q=z');
    assert.equal((await ask('placeholder', { x: '..' })).path, '/tail?x=..&y=1');
  });

  it('numbers and booleans travel as text', async () => {
    const texts: [unknown, string][] = [
      [1, '1'],
      [-0.5, '-0.5'],
      [1e21, '1000000000000000000000'],
      [1e-7, '0.0000001'],
      [true, 'true'],
      [false, 'false'],
      [0, '0'],
    ];
    for (const [value, text] of texts) {
      assert.equal((await ask('query', { q: value })).path, `/query?q=${text}`);
      assert.equal((await ask('path', { id: value })).path, `/path/${text}/end`);
      assert.equal((await ask('header', { 'X-Value': value })).headers['x-value'], decodeURIComponent(text));
      assert.equal((await ask('cookie', { one: value })).headers.cookie, `one=${decodeURIComponent(text)}; three=3`);
    }
  });

  it('objects and arrays become what String() makes of them, but in a body', async () => {
    const texts: [unknown, string][] = [
      [{ a: 1 }, '[object Object]'],
      [{}, '[object Object]'],
      [{ toString: 'x', valueOf: null }, '[object Object]'],
      [[1, 2], '1,2'],
      [['BTC', ['ETH', null, true]], 'BTC,ETH,,true'],
      [[{ a: 1 }, 1e21], '[object Object],1e+21'],
    ];
    for (const [value, text] of texts) {
      const encoded = encodeURIComponent(text);
      assert.equal((await ask('query', { q: value })).path, `/query?q=${encoded}`);
      assert.equal((await ask('placeholder', { x: value })).path, `/tail?x=${encoded}&y=1`);
      assert.equal((await ask('path', { id: value })).path, `/path/${encoded}/end`);
      assert.equal((await ask('header', { 'X-Value': value })).headers['x-value'], text);
      assert.equal((await ask('cookie', { one: value })).headers.cookie, `one=${text}; three=3`);
    }
    assert.equal((await ask('query', { q: [] })).path, '/query?q=');
    assert.equal((await ask('body', { a: [1], b: {} })).body, '{"b":{},"a":[1]}');
  });

  it('the text of a list passes the checks of its place', async () => {
    for (const id of [[], ['..'], [['.']], ['a/../b']]) await refuse('path', { id }, 'id');
    await refuse('header', { 'X-Value': ['a\nb'] }, 'X-Value');
    await refuse('cookie', { one: [';'] }, 'one');
    await refuse('query', { q: ['\ud800'] }, 'q');
  });

  it('path values are percent-encoded: none of them changes the structure of the URL', async () => {
    const paths: [string, string][] = [
      ['a/b', 'a%2Fb'],
      ['%2F', '%252F'],
      ['?x=1', '%3Fx%3D1'],
      ['#x', '%23x'],
      ['a\\b', 'a%5Cb'],
      ['\0', '%00'],
      ['a\r\nb', 'a%0D%0Ab'],
      [' ', '%20'],
      ['...', '...'],
      ['.x', '.x'],
      ['http://evil.example', 'http%3A%2F%2Fevil.example'],
      ['@evil.example', '%40evil.example'],
      [';a=b', '%3Ba%3Db'],
      ['ü', '%C3%BC'],
      ["a!'()*~b", "a!'()*~b"],
    ];
    for (const [value, encoded] of paths) assert.equal((await ask('path', { id: value })).path, `/path/${encoded}/end`);
  });

  it('a path value that is `.`, `..` or empty as a whole segment is 400', async () => {
    for (const id of ['.', '..', '']) await refuse('path', { id }, 'id');
    await refuse('dots', {}, 'a');
    for (const parts of [{ a: '.' }, { a: '.', b: '.' }]) await refuse('dots', parts, 'a');
    await refuse('dots', { b: '..' }, 'b');
    assert.equal((await ask('dots', { a: '.', b: 'x' })).path, '/dots/.x');
    assert.equal((await ask('parts', { a: '.', b: '.', c: '' })).path, '/parts/...json/-x');
  });

  it('a dot that the configured path holds percent-encoded counts as one', async () => {
    await refuse('encoded', { a: '.' }, 'a');
    await refuse('encoded', { a: '' }, 'a');
    assert.equal((await ask('encoded', { a: 'x' })).path, '/encoded/%2Ex/x');
  });

  it('lone surrogates have no UTF-8 and are 400', async () => {
    await refuse('path', { id: '\ud800' }, 'id');
    await refuse('query', { q: 'a\udc00' }, 'q');
    await refuse('header', { 'X-Value': '\ud83d' }, 'X-Value');
    await refuse('cookie', { one: '\ud83d' }, 'one');
  });

  it('every occurrence of a placeholder is replaced', async () => {
    assert.equal((await ask('repeated', { id: '$&' })).path, '/repeated/%24%26/%24%26');
    assert.equal((await ask('parts', { a: '{b}', b: '{c}', c: '{a}' })).path, '/parts/%7Bb%7D%7Bc%7D.json/%7Ba%7D-x');
  });

  it('header values are sent as they are', async () => {
    assert.deepEqual(sent(await ask('header', { 'X-Value': 'a, b;c="d"\té' })), ['X-Value: a, b;c="d"\té']);
    assert.deepEqual(sent(await ask('header', { 'X-Value': '' })), ['X-Value: ']);
    assert.deepEqual(sent(await ask('header', {})), []);
    assert.deepEqual(sent(await ask('header', JSON.parse('{"__proto__":"x"}'))), ['__proto__: x']);
  });

  it('CR, LF or NUL in a header value is 400 before any call, and so is what no header can carry', async () => {
    for (const value of ['a\rb', 'a\nb', 'a\r\nX-Injected: 1', '\0', 'a\u0001', '\u007f', '€', '\u2028'])
      await refuse('header', { 'X-Value': value }, 'X-Value');
  });

  it('white space at the ends of a header or cookie value, which would get lost, is 400', async () => {
    for (const value of [' a', 'a ', '\ta', 'a\t', ' ', ' \t ']) {
      await refuse('header', { 'X-Value': value }, 'X-Value');
      await refuse('cookie', { one: value }, 'one');
    }
    assert.deepEqual(sent(await ask('header', { 'X-Value': 'a \tb' })), ['X-Value: a \tb']);
    assert.deepEqual(sent(await ask('cookie', { one: 'a b' })), ['cookie: one=a b; three=3']);
    assert.deepEqual(sent(await ask('header', { 'X-Value': '\u00a0a\u00a0' })), ['X-Value: \u00a0a\u00a0']);
  });

  it('cookies are joined into one Cookie header in the order of the config', async () => {
    assert.deepEqual(sent(await ask('cookie', { two: 'b', one: 'a' })), ['cookie: one=a; two=b; three=3']);
    assert.deepEqual(sent(await ask('cookie', { two: 'x=y, "z"' })), ['cookie: two=x=y, "z"; three=3']);
  });

  it('a cookie value with `;`, CR or LF is 400 (rule 6)', async () => {
    for (const value of ['a;b', ';', 'a\rb', 'a\nb', 'a\0b']) await refuse('cookie', { one: value }, 'one');
  });

  it('body parameters make one flat JSON object in the order of the config, nested values as they are', async () => {
    const nested = JSON.parse('{"x":[1,{"y":null}],"__proto__":{"z":"\\ud800"},"":true}');
    const asked = await ask('body', { a: nested, b: 'text' });
    assert.equal(asked.body, '{"b":"text","a":{"x":[1,{"y":null}],"__proto__":{"z":"\\ud800"},"":true}}');
    assert.deepEqual(sent(asked), ['content-type: application/json']);
    assert.equal(asked.headers['content-length'], String(asked.body.length));
    assert.equal((await ask('body', JSON.parse('{"__proto__":[1]}'))).body, '{"__proto__":[1]}');
    assert.equal((await ask('body', {})).body, '{}');
  });

  it('each kind goes to its own place', async () => {
    const asked = await ask('all', { p: 1, q: 2, 'X-H': 3, c: 4, b: 5 });
    assert.deepEqual([asked.method, asked.path, asked.body], ['PUT', '/all/1?q=2', '{"b":5}']);
    assert.deepEqual(sent(asked), ['content-type: application/json', 'X-H: 3', 'cookie: c=4']);
  });
});

it('cookie parameters join the cookies of the API in one header', async (t) => {
  const upstream = await upstreamFor(t, { '*': faults.json({}) });
  const e = { parameters: at('cookie', 'one', 'two') };
  for (const [COOKIE, ...expected] of [
    ['sid=x', 'COOKIE: sid=x', 'COOKIE: sid=x; one=1; two=2'],
    ['', 'COOKIE: ', 'COOKIE: one=1; two=2'],
  ]) {
    const service = await serviceFor(t, oneApi(upstream.url, { e }, { api: { headers: { COOKIE } } }));
    for (const parameters of [{}, { one: 1, two: '2' }])
      assert.equal((await service.post('api/e', parameters)).status, 200);
    assert.deepEqual(upstream.requests.splice(0).flatMap(sent), expected);
  }
});

describe('a list or an object outside a body', () => {
  const parameters = [{ name: 'q' }, { name: 'b', in: 'body' }];
  const warning =
    'a list or an object was given outside a body, where it counts as "1,2" or "[object Object]": strictParameters: true refuses it';

  it('is warned of once an endpoint, with the name of the parameter and not its value', async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json({ value: 7 }) });
    const service = await serviceFor(t, oneApi(upstream.url, { e: { parameters }, f: { parameters } }));
    const warned = () => service.logs.filter(({ message }) => message === warning).map(({ fields }) => fields);
    await service.post('api/e', { q: 'x', b: [{ a: 1 }] });
    assert.deepEqual(warned(), []);
    for (const q of [{ secret: 1 }, [1, 2]]) assert.equal((await service.post('api/e', { q })).status, 200);
    assert.deepEqual(warned(), [{ endpoint: 'api/e', parameter: 'q' }]);
    await service.post('api/f', { q: [] });
    assert.deepEqual(warned()[1], { endpoint: 'api/f', parameter: 'q' });
    assert.equal(upstream.requests[1]?.path, '/e?q=%5Bobject%20Object%5D');
  });

  it('is 400 before any call with strictParameters', async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json({ value: 7 }) });
    const places = [{ name: 'q' }, ...at('header', 'X-H'), ...at('cookie', 'c'), ...at('path', 'p')];
    const strict = { path: '/s/{p}', strictParameters: true, parameters: [...places, ...at('body', 'b')] };
    const service = await serviceFor(t, oneApi(upstream.url, { strict }));
    for (const { name } of places)
      for (const value of [{ a: 1 }, [], [1, 2]]) {
        const response = await service.post('api/strict', { p: 'x', [name]: value });
        await assertRefused(response, 400, `Invalid parameter: ${name}`);
      }
    assert.equal(upstream.requests.length, 0);
    assert.equal((await service.post('api/strict', { p: 'x', b: [{}] })).status, 200);
    assert.ok(!service.logs.some(({ message }) => message === warning));
  });
});
