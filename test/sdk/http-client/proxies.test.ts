/** The environment says which requests go through which proxy. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { proxiesIn } from '../../../lib/http/client/proxies.ts';

type Variables = Readonly<Record<string, string>>;

/** The proxy of a URL: its origin, by these variables. */
const originOf = (url: string, variables: Variables) => proxiesIn(variables).of(new URL(url))?.url.origin;

describe('which proxy a request goes through', () => {
  const both = { http_proxy: 'http://a.test:1', https_proxy: 'http://b.test:2' };

  it('is that of its protocol, and none where no variable says so', () => {
    assert.equal(originOf('http://x.test/', both), 'http://a.test:1');
    assert.equal(originOf('https://x.test/', both), 'http://b.test:2');
    assert.equal(originOf('https://x.test/', { HTTP_PROXY: 'http://a.test:1' }), undefined);
    assert.equal(originOf('http://x.test/', {}), undefined);
  });

  it('is read in small letters and in capitals; the small ones win, also where they are empty', () => {
    assert.equal(originOf('http://x.test/', { HTTP_PROXY: 'http://c.test:3' }), 'http://c.test:3');
    assert.equal(originOf('http://x.test/', { ...both, HTTP_PROXY: 'http://c.test:3' }), 'http://a.test:1');
    assert.equal(originOf('https://x.test/', { https_proxy: '', HTTPS_PROXY: 'http://c.test:3' }), undefined);
    assert.equal(originOf('http://x.test/', { ...both, NO_PROXY: 'x.test' }), undefined);
    assert.equal(originOf('http://x.test/', { ...both, NO_PROXY: 'x.test', no_proxy: '' }), 'http://a.test:1');
  });

  it('may be named without http://, be asked over TLS, and get a user name and password', () => {
    assert.equal(originOf('http://x.test/', { http_proxy: 'proxy.test:3128' }), 'http://proxy.test:3128');
    assert.equal(originOf('http://x.test/', { http_proxy: 'HTTPS://proxy.test' }), 'https://proxy.test');
    const proxy = proxiesIn({ http_proxy: 'http://us%40er:p%3Ass@proxy.test:3128/' }).of(new URL('http://x.test'));
    assert.deepEqual(proxy?.headers, { 'proxy-authorization': `Basic ${btoa('us@er:p:ss')}` });
    assert.equal(proxy?.url.href, 'http://proxy.test:3128/');
  });

  it('is an error that shows nothing where the variable names no HTTP proxy', () => {
    for (const value of [
      'socks5://user:secret@proxy.test:1080',
      'http://user:secret@',
      'user:secret@:x',
      'ftp://secret',
    ])
      assert.throws(() => proxiesIn({ HTTPS_PROXY: value }), {
        message: 'HTTPS_PROXY: must be the URL of an HTTP proxy, such as http://proxy.example:3128',
      });
  });

  it('is said in the log without user name and password', () => {
    assert.deepEqual(proxiesIn({ HTTP_PROXY: 'user:secret@proxy.test:3128', https_proxy: 'https://b.test' }).lines, [
      'http:// is asked for through the proxy http://proxy.test:3128 (HTTP_PROXY)',
      'https:// is asked for through the proxy https://b.test (https_proxy)',
    ]);
    assert.deepEqual(proxiesIn({}).lines, []);
  });
});

describe('what goes through no proxy', () => {
  const direct = (url: string, no_proxy: string) =>
    originOf(url, { http_proxy: 'p.test:1', https_proxy: 'p.test:1', no_proxy }) === undefined;

  it('is this machine, whatever the variables say', () => {
    for (const host of [
      'localhost',
      'LOCALHOST.',
      'a.localhost',
      '127.0.0.1',
      '127.9.9.9',
      '127.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
    ])
      assert.ok(direct(`http://${host}:4000/`, ''), host);
    for (const host of ['localhost.test', '128.0.0.1', '0.0.0.0', '[::2]'])
      assert.ok(!direct(`http://${host}/`, ''), host);
  });

  const rows: [entry: string, direct: readonly string[], proxied: readonly string[]][] = [
    ['x.test', ['http://x.test', 'https://a.b.x.test', 'http://X.TEST.:8080'], ['http://ax.test', 'http://x.test.org']],
    ['.x.test', ['http://x.test', 'http://a.x.test'], ['http://ax.test']],
    ['*.X.Test.', ['http://x.test', 'http://a.x.test'], ['http://ax.test']],
    ['x.test:8080', ['http://x.test:8080', 'https://a.x.test:8080'], ['http://x.test', 'http://x.test:80']],
    ['x.test:443', ['https://x.test'], ['http://x.test']],
    ['10.1.2.3', ['http://10.1.2.3', 'http://[::ffff:10.1.2.3]'], ['http://110.1.2.3', 'http://10.1.2.4']],
    ['2.3', [], ['http://10.1.2.3']],
    ['10.1.2.3:81', ['http://10.1.2.3:81'], ['http://10.1.2.3']],
    [
      '10.0.0.0/8',
      ['http://10.1.2.3', 'https://10.255.0.1:8443'],
      ['http://11.0.0.1', 'http://[2001:db8::1]', 'http://x.test'],
    ],
    ['2001:db8::/32', ['http://[2001:db8:1::1]'], ['http://[2001:db9::1]', 'http://10.1.2.3']],
    ['2001:DB8:0::1', ['http://[2001:db8::1]', 'http://[2001:db8::1]:81'], ['http://[2001:db8::2]']],
    ['[2001:db8::1]:81', ['http://[2001:db8::1]:81'], ['http://[2001:db8::1]']],
    ['*', ['http://x.test', 'https://10.1.2.3', 'http://[2001:db8::1]'], []],
    ['10.0.0.0/99', [], ['http://10.1.2.3']],
    [' , a.test\tb.test,,x.test ', ['http://a.test', 'http://b.test', 'http://x.test'], ['http://c.test']],
  ];
  for (const [entry, some, others] of rows)
    it(`is what NO_PROXY="${entry}" names`, () => {
      for (const url of some) assert.ok(direct(url, entry), url);
      for (const url of others) assert.ok(!direct(url, entry), url);
    });
});
