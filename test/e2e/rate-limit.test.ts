/** Each client has its bucket of tokens, and 429 when it is empty. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertRefused, assertRouteHeaders, endpointUrl, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const HOUR = 3_600_000;
const spy = pluginFile('spy', `onHttpRequest({ ip }) { note('ip', ip); }`);

describe('rate limit (limits: "token bucket per client IP"; error 429 Too Many Requests)', async () => {
  const upstream = await upstreamFor(suite, { '/p': faults.json(1) });

  const start = async (rateLimit: object, server: object = {}) => {
    const { files, plugins } = pluginFiles({ spy });
    const more = { server: { rateLimit, ...server }, settings: { plugins } };
    return serviceFor(suite, oneApi(upstream.url, { e: { path: '/p' } }, more), { files });
  };
  const post = (service: RunningService, forwarded?: string, url = endpointUrl(service, 'api/e')) =>
    postText(url, '{}', forwarded === undefined ? JSON_HEADERS : { ...JSON_HEADERS, 'X-Forwarded-For': forwarded });
  const isLimited = async (response: Response) => {
    await assertRefused(response, 429, 'Too Many Requests');
    return response.headers.get('retry-after');
  };
  /** Whether both addresses draw from one bucket of one token. */
  const share = async (service: RunningService, first: string | undefined, second: string | undefined) => {
    const one = await post(service, first);
    assert.equal(one.status, 200, `${first} has its token`);
    const two = await post(service, second);
    if (two.status === 429) await isLimited(two);
    else assert.equal(two.status, 200);
    return two.status === 429;
  };

  describe('the bucket', () => {
    it('holds max requests; then 429 with Retry-After in whole seconds, rounded up', async () => {
      const service = await start({ max: 3, window: HOUR });
      const began = performance.now();
      for (let count = 0; count < 3; count++) assert.equal((await post(service)).status, 200);
      const before = upstream.requests.length;
      const retryAfter = await isLimited(await post(service));
      // A third of the window brings one token; some of it may have passed.
      const least = Math.ceil(1200 - (performance.now() - began) / 1000);
      assert.match(String(retryAfter), /^\d+$/);
      assert.ok(Number(retryAfter) <= 1200 && Number(retryAfter) >= least, `${retryAfter}`);
      assert.equal(upstream.requests.length, before);
    });

    it('says at least one second', async () => {
      const service = await start({ max: 1, window: 400 });
      const retry: (string | null)[] = [];
      // Requests at once: not all can find the one token, however slow this machine is.
      for (const response of await Promise.all(Array.from({ length: 20 }, () => post(service)))) {
        if (response.status === 429) retry.push(response.headers.get('retry-after'));
        await response.arrayBuffer();
      }
      assert.deepEqual(new Set(retry), new Set(['1']));
    });

    it('fills again in its window', async () => {
      const service = await start({ max: 1, window: 100 });
      for (let answers = 0; answers < 3; ) {
        if ((await post(service)).status === 200) answers += 1;
      }
    });

    it('is 100 requests a minute unless configured', async () => {
      const service = await start({});
      const statuses = await Promise.all(Array.from({ length: 130 }, async () => (await post(service)).status));
      const answered = statuses.filter((status) => status === 200).length;
      assert.ok(answered >= 100 && answered < 130, `${answered} were answered`);
    });
  });

  describe('the order', async () => {
    const service = await start({ max: 1, window: HOUR });
    before(async () => assert.equal((await post(service)).status, 200));
    const url = endpointUrl(service, 'api/e');

    it('an unknown path is 404 and a wrong method 405 all the same', async () => {
      await assertRefused(await post(service, undefined, `${service.url}/nowhere`), 404, 'Not Found');
      await assertRefused(await fetch(url), 405, 'Method Not Allowed');
    });

    it('an unknown endpoint, another content type, a large and a malformed body are 429', async () => {
      await isLimited(await post(service, undefined, `${service.url}/endpoints/0x00`));
      await isLimited(await fetch(url, { method: 'POST', body: 'x' }));
      for (const body of ['x'.repeat(65_537), '{']) await isLimited(await postText(url, body));
    });

    it('the body of a limited request is not read: an endless one gets its 429', async () => {
      const connection = openRaw(service.url);
      const chunked = { ...JSON_HEADERS, 'Transfer-Encoding': 'chunked' };
      const head = requestHead(`POST ${new URL(url).pathname}`, chunked);
      connection.write(`${head}\r\n1\r\n{\r\n`);
      await connection.until((text) => text.endsWith('{"error":"Too Many Requests"}'));
      connection.destroy();
    });

    it('polling is limited too', async () => {
      await isLimited(await fetch(`${service.url}/requests/x`));
    });

    it('/health and OPTIONS are spared', async () => {
      assert.equal((await fetch(`${service.url}/health`)).status, 200);
      const response = await fetch(url, { method: 'OPTIONS' });
      assert.equal(response.status, 204);
      assertRouteHeaders(response);
    });
  });

  describe('whose request it is', () => {
    it('by default X-Forwarded-For is ignored', async () => {
      const service = await start({ max: 1, window: HOUR });
      assert.ok(await share(service, '192.0.2.1', '192.0.2.2'));
    });

    it('trustForwardedFor: false says the same', async () => {
      const service = await start({ max: 1, window: HOUR, trustForwardedFor: false });
      assert.ok(await share(service, '192.0.2.1', undefined));
    });

    describe('true: the left-most entry that parses as an IP address', async () => {
      const service = await start({ max: 1, window: HOUR, trustForwardedFor: true });

      const shared: [string, string, string][] = [
        ['what follows does not matter', '192.0.2.1, 10.0.0.1', '192.0.2.1, 10.0.0.2'],
        ['what does not parse is passed over', 'unknown, 192.0.2.2', '_hidden, ,256.1.1.1, 192.0.2.2'],
        ['a port is not part of the address', '192.0.2.3:1234', '192.0.2.3:4321'],
        ['quotes and white space neither', '"192.0.2.4"', ' \t192.0.2.4 '],
        ['an IPv4-mapped address is the IPv4 address', '192.0.2.5', '::ffff:192.0.2.5'],
        ['in hex too', '192.0.2.6', '::FFFF:c000:206'],
        ['IPv6 clients are keyed by their /64', '2001:db8:0:1::1', '2001:0db8:0000:0001:ffff:ffff:ffff:ffff'],
        ['in brackets with a port', '[2001:db8:0:2::1]:443', '2001:db8:0:2::2'],
        ['a zone is no part of it', 'fe80::1%eth0', 'fe80::2'],
      ];
      for (const [what, first, second] of shared) {
        it(`one client: ${what}`, async () => assert.ok(await share(service, first, second)));
      }

      const apart: [string, string, string][] = [
        ['addresses differ', '192.0.2.11', '192.0.2.12'],
        ['an IPv6 network each', '2001:db8:0:11::1', '2001:db8:0:12::1'],
        ['IPv4-mapped ones are no /64', '::ffff:192.0.2.13', '::ffff:192.0.2.14'],
        ['the first is another', '192.0.2.15, 192.0.2.17', '192.0.2.16, 192.0.2.17'],
      ];
      for (const [what, first, second] of apart) {
        it(`two clients: ${what}`, async () => assert.ok(!(await share(service, first, second))));
      }

      it('rubbish leaves the socket’s address, which all such requests share', async () => {
        const first = await post(service, 'rubbish');
        assert.equal(first.status, 200);
        const numbers = ['127.1', '010.0.0.1', '0x7f000001', '1.2.3', '1.2.3.4.5', '1.2.3.4/24', '1'.repeat(5000)];
        const signs = ['', ',', ',,,,', '::g', '[::1', '"', '<script>', '\xff\xfe', ','.repeat(8000)];
        for (const rubbish of [...numbers, ...signs, 'localhost', '::ffff:127.0.0.1'])
          await isLimited(await post(service, rubbish));
      });

      it('several headers are one list', async () => {
        const path = new URL(endpointUrl(service, 'api/e')).pathname;
        const own = requestHead(`POST ${path}`, { ...JSON_HEADERS, 'Content-Length': '2' });
        const head = (address: string) => `${own}X-Forwarded-For: nobody\r\nX-Forwarded-For: ${address}\r\n\r\n{}`;
        const statuses = [];
        for (const address of ['192.0.2.21', '192.0.2.21', '192.0.2.22']) {
          const connection = openRaw(service.url);
          connection.write(head(address));
          statuses.push((await connection.closed).split(' ')[1]);
        }
        assert.deepEqual(statuses, ['200', '429', '200']);
      });

      it('plugins get the same address in its canonical form', async () => {
        notes.clear();
        await post(service, '::ffff:198.51.100.7');
        await post(service, '2001:0DB8::00AB');
        assert.deepEqual(notes.of('ip'), ['198.51.100.7', '2001:db8::ab']);
      });
    });

    describe('a number n: the n-th from the right', () => {
      it('1: what the only proxy appended, whatever the client put in front', async () => {
        const service = await start({ max: 1, window: HOUR, trustForwardedFor: 1 });
        assert.ok(await share(service, '203.0.113.1, 192.0.2.1', '203.0.113.2, 203.0.113.3,192.0.2.1'));
        assert.ok(!(await share(service, '203.0.113.1, 192.0.2.2', '203.0.113.1, 192.0.2.3')));
      });

      it('2: too short a list, or no address there, is the socket’s', async () => {
        const service = await start({ max: 1, window: HOUR, trustForwardedFor: 2 });
        assert.ok(await share(service, '192.0.2.1, 10.0.0.1', '203.0.113.1, 192.0.2.1, 10.0.0.2'));
        assert.ok(await share(service, '192.0.2.9', undefined));
        await isLimited(await post(service, 'rubbish, 192.0.2.10'));
        await isLimited(await post(service, '192.0.2.11, rubbish, 192.0.2.10'));
      });
    });

    it('the socket’s address is IPv4 also where the server listens on IPv6', async () => {
      const service = await start({ max: 1, window: HOUR, trustForwardedFor: true }, { host: '::' });
      const { port } = new URL(service.url);
      notes.clear();
      const url = (host: string) => `http://${host}:${port}/endpoints/${service.ids['api/e']}`;
      assert.equal((await post(service, undefined, url('127.0.0.1'))).status, 200);
      await isLimited(await post(service, '127.0.0.1', url('127.0.0.1')));
      assert.equal((await post(service, undefined, url('[::1]'))).status, 200);
      assert.deepEqual(notes.of('ip'), ['127.0.0.1', '::1']);
    });
  });
});
