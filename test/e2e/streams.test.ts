/** A body that streams goes out as its client reads it. */
import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { stopAll, suite } from '../support/lifetime.ts';
import { notes, pluginFiles, pluginTools } from '../support/plugin-files.ts';
import { exchangeRaw, openRaw, parseResponse } from '../support/raw-http.ts';
import { oneApi, startTestService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

/** `GET /<name>` streams with one of these, and notes what is asked of the body. */
const streams = `${pluginTools}
const never = new Promise(() => undefined);
const left = (signal) => new Promise((resolve, reject) => signal.addEventListener('abort', () => reject(new Error('left'))));
const bodies = {
  async *count() { yield 'one,'; yield new TextEncoder().encode('two,'); yield ''; yield 'three'; },
  async *endless({ signal }) { for (;;) { yield 'tick;'; await left(signal); } },
  async *silent({ signal }) { await left(signal); },
  async *stuck() { yield 'tick;'; await never; },
  async *fails() { yield 'one,'; throw new Error('no more'); },
  async *failsAtOnce() { throw new Error('nothing'); },
  async *number() { yield 'one,'; yield 2; },
};
const headers = { 'Content-Type': 'text/plain' };
const watched = (name, exchange) => ({
  [Symbol.asyncIterator]: () => {
    const inner = bodies[name](exchange);
    return {
      next: () => (note(name, 'next'), inner.next()),
      return: () => (note(name, 'return'), inner.return()),
    };
  },
});
const route = (name, response = {}) => ({
  method: 'GET', path: '/' + name, admit: false,
  handle: (_, exchange) => ({ status: 200, headers, body: watched(response.as ?? name, exchange), ...response }),
});
export default {
  name: 'streams',
  modes: ['parts'],
  setup: ({ ask, endpoints }) => ({
    hooks: {
      present: {
        parts: async (run, exchange) => {
          await run();
          return { status: 200, headers, body: watched('endless', exchange) };
        },
      },
      onResponseSent: ({ status }) => note('sent', status),
    },
    observe: { response: ({ route }, status) => note('status ' + route, status) },
    routes: [
      ...Object.keys(bodies).map((name) => route(name)),
      route('json', { as: 'count', headers: { 'Content-Type': 'application/json' } }),
      {
        ...route('endless'), path: '/late',
        handle: async (_, exchange) => {
          note('late');
          await left(exchange.signal).catch(() => undefined);
          return { status: 200, headers, body: watched('endless', exchange) };
        },
      },
      route('empty', { as: 'count', status: 204 }),
      {
        method: 'GET', path: '/ask', admit: false,
        handle: async (_, exchange) => {
          const error = await ask(endpoints[0].id, {}, { as: exchange }).catch(({ message }) => message);
          return { status: 200, body: JSON.stringify({ error }) };
        },
      },
    ],
  }),
};
`;

describe('a body that streams', async () => {
  const get = (path: string, version = '1.1') => `GET /${path} HTTP/${version}\r\nHost: a\r\n\r\n`;
  const failures = () => {
    const lines = service.logs.filter(({ level, message }) => level === 'warn' && message === 'Internal server error');
    return lines.map(({ message, fields: { status, stage, detail } }) => {
      return [message, status, stage, String(detail).split('\n')[0]];
    });
  };
  const start = async () => {
    const { files, plugins } = pluginFiles({ streams });
    return startTestService(oneApi(upstream.url, { parts: { mode: 'parts' } }, { settings: { plugins } }), { files });
  };

  const upstream = await upstreamFor(suite, { '*': faults.json(7) });
  const service = await start();

  after(() => stopAll(service));
  beforeEach(() => {
    notes.clear();
    service.logs.length = 0;
  });

  it('is sent in chunks, texts and bytes, and its connection goes on', async () => {
    const client = openRaw(service.url);
    for (let times = 1; times <= 2; times++) {
      client.write(get('count'));
      await client.until((text) => text.split('\r\n0\r\n\r\n').length === times + 1);
    }
    client.destroy();
    const [first = ''] = client.text.split('\r\n0\r\n\r\n');
    const { status, headers, body } = parseResponse(first);
    const framing = [headers['content-type'], headers['transfer-encoding'], headers['content-length']];
    assert.deepEqual([status, ...framing], [200, 'text/plain', 'chunked', undefined]);
    assert.match(headers['x-request-id'] ?? '', /^0x[0-9a-f]{64}$/);
    assert.equal(body, '4\r\none,\r\n4\r\ntwo,\r\n5\r\nthree');
    assert.deepEqual(notes.of('count'), Array(10).fill('next'));
    assert.deepEqual(notes.of('status /count'), [200, 200]);
  });

  it('ends with the connection for HTTP/1.0', async () => {
    const { headers, body } = parseResponse(await exchangeRaw(service.url, get('count', '1.0')));
    assert.deepEqual([headers.connection, headers['transfer-encoding'], body], ['close', undefined, 'one,two,three']);
  });

  it('is not read for HEAD, but ended', async () => {
    const response = await fetch(`${service.url}/count`, { method: 'HEAD' });
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'text/plain']);
    assert.deepEqual(await notes.until('count'), ['return']);
  });

  for (const [name, noted] of Object.entries({ endless: ['next', 'next', 'return'], silent: ['next', 'return'] })) {
    for (const how of ['destroy', 'end'] as const) {
      it(`ends with its client, once: ${name}, ${how}`, async () => {
        const client = openRaw(service.url);
        client.write(get(name));
        await client.until((text) => text.endsWith(name === 'silent' ? '\r\n\r\n' : 'tick;\r\n'));
        await notes.until(name, noted.length - 1);
        client[how]();
        assert.deepEqual(await notes.until(name, noted.length), noted);
        // The head was an answer.
        assert.deepEqual(await notes.until(`status /${name}`), [200]);
        client.destroy();
      });
    }
  }

  it('ends with a client who left before its head', async () => {
    const client = openRaw(service.url);
    client.write(get('late'));
    await notes.until('late');
    client.destroy();
    assert.deepEqual(await notes.until('endless'), ['return']);
    assert.deepEqual(notes.of('status /late'), [499]);
  });

  it('ends with a client who left while it waited behind another', async () => {
    const client = openRaw(service.url);
    client.write(get('silent') + get('late'));
    await notes.until('late');
    client.destroy();
    assert.deepEqual(await notes.until('endless'), ['return']);
  });

  for (const [name, reason] of Object.entries({
    fails: 'plugin "streams": Error: no more',
    failsAtOnce: 'plugin "streams": Error: nothing',
    number: 'plugin "streams": TypeError: a chunk of a stream is text or bytes',
  })) {
    for (const version of ['1.0', '1.1']) {
      it(`that fails has its connection cut, and is logged once: ${name}, HTTP/${version}`, async () => {
        const text = await exchangeRaw(service.url, get(name, version));
        assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
        assert.equal(text.endsWith('0\r\n\r\n'), false);
        assert.deepEqual(await notes.until(`status /${name}`), [200]);
        assert.deepEqual(failures(), [['Internal server error', 500, 'route', reason]]);
        assert.equal(notes.of(name).includes('return'), name === 'number');
      });
    }
  }

  for (const [path, reason] of Object.entries({
    json: 'returned something of the wrong shape: a stream needs a media type other than JSON',
    empty: 'returned something of the wrong shape: 204 has no body, and none that streams',
  })) {
    it(`cannot be ${path}`, async () => {
      await assertRefused(await fetch(`${service.url}/${path}`), 500, 'Internal server error');
      assert.deepEqual(failures(), [['Internal server error', 500, 'route', `plugin "streams": Error: ${reason}`]]);
    });
  }

  it('lets observers hear of its answer once its head is out', async () => {
    const client = openRaw(service.url);
    const path = `endpoints/${service.ids['api/parts']}`;
    const lines = ['Host: a', 'Content-Type: application/json', 'Content-Length: 2'];
    client.write(`POST /${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{}`);
    assert.deepEqual(await notes.until('sent'), [200]);
    await client.until((text) => text.endsWith('tick;\r\n'));
    client.destroy();
    assert.deepEqual(await notes.until('endless', 3), ['next', 'next', 'return']);
  });

  it('is not for those who ask on behalf of a client', async () => {
    const error = 'the endpoint answers with a stream, which can only be sent to its client';
    assert.deepEqual(await (await fetch(`${service.url}/ask`)).json(), { error });
    assert.deepEqual(notes.of('endless'), ['return']);
  });

  for (const name of ['endless', 'silent', 'stuck']) {
    it(`ends with a service that stops, cleanly: ${name}`, async () => {
      const stopping = await start();
      const client = openRaw(stopping.url);
      client.write(get(name));
      await notes.until(name, name === 'silent' ? 1 : 2);
      await stopping.stop();
      assert.match(await client.closed, name === 'silent' ? /\r\n\r\n0\r\n\r\n$/ : /\r\ntick;\r\n0\r\n\r\n$/);
      assert.deepEqual(notes.of(name).slice(-2), ['next', 'return']);
    });
  }

  it('ends with its config, when another one comes into force', async () => {
    const client = openRaw(service.url);
    client.write(get('endless'));
    await notes.until('endless', 2);
    assert.equal(await service.reload(() => ({})), true);
    await client.until((text) => text.endsWith('tick;\r\n0\r\n\r\n'));
    client.destroy();
    assert.deepEqual(notes.of('endless'), ['next', 'next', 'return']);
  });
});
