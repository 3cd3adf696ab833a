/** A broken answer or an invalid request is an error that says so. */
import assert from 'node:assert/strict';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { createHttpClient, RequestFailure } from '../../../plugins-sdk/index.ts';
import { hostOf } from '../../support/https.ts';
import { faults, startUpstream } from '../../support/upstream.ts';
import { fails, getFails, renewed, send, text, upstream } from './setup.ts';

renewed();

describe('a broken answer', () => {
  it('closed half-way is a failure after "connection: close" too, chunked or with a length', async () => {
    const head = 'HTTP/1.1 200 OK\r\nConnection: close\r\n';
    upstream.on('/chunked', faults.raw(`${head}Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n`));
    upstream.on('/length', faults.raw(`${head}Content-Length: 2\r\n\r\n1`));
    const cut = 'the connection was closed before the answer was complete';
    await getFails('/chunked', 'network', cut);
    await getFails('/length', 'network', 'the body is not as long as announced (UND_ERR_RES_CONTENT_LENGTH_MISMATCH)');
  });

  it('longer than announced is a failure when more arrives with it', async () => {
    upstream.on('/', faults.lieAboutLength('12345', 3));
    await getFails('/', 'network', 'it went on after the end of the answer');
    for (const head of ['HTTP/1.1 200 OK\r\nConnection: close', 'HTTP/1.0 200 OK']) {
      upstream.on('/', faults.raw(`${head}\r\nContent-Length: 1\r\n\r\n12`));
      await getFails('/', 'network', 'it went on after the end of the answer');
      upstream.on('/', faults.raw(`${head}\r\nContent-Length: 1\r\n\r\n1\r\n`));
      assert.equal(await text('/'), '1');
    }
  });

  it('reset at once is a failure, and is not asked for again on a new connection', async () => {
    upstream.on('/', faults.reset());
    await getFails('/', 'network', 'the connection was reset (ECONNRESET)');
    assert.equal(upstream.requests.length, 1);
  });

  it('without length is whole when the connection was closed in order, and a failure when it was reset', async () => {
    upstream.on('/closed', faults.raw('HTTP/1.0 200 OK\r\n\r\n{"v":1}'));
    upstream.on('/reset', (req) => {
      req.socket.write('HTTP/1.0 200 OK\r\n\r\n{"v":1');
      setTimeout(() => req.socket.resetAndDestroy(), 50);
    });
    assert.equal(await text('/closed'), '{"v":1}');
    await getFails('/reset', 'network', 'the connection was reset (ECONNRESET)');
  });

  it('in frames of HTTP/2 is named by that', async (t) => {
    const server = createHttp2Server();
    const url = `http://${await hostOf(t, server)}`;
    const said = 'it speaks HTTP/2 only, which this service does not';
    await fails(send('', { url }), 'network', `GET ${url} failed: ${said}`);
    const goAway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    upstream.on('/', faults.raw(String.fromCharCode(...goAway)));
    await getFails('/', 'network', said);
  });

  it('that the request has not asked for is named by that', async () => {
    const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7';
    upstream.on('/101', faults.raw('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'));
    upstream.on('/103', faults.raw(`HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n${answer}`));
    await getFails('/101', 'network', 'it turned to another protocol unasked');
    assert.equal(await text('/103'), '7');
  });

  it('from nobody is a failure', async () => {
    const gone = await startUpstream();
    await gone.close();
    const call = send('', { url: `${gone.url}/path?query` });
    await fails(call, 'network', `GET ${gone.url} failed: the connection was refused (ECONNREFUSED)`);
  });

  it('from whom every connection is reset before anything was sent is asked for three times', async (t) => {
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      // The first bytes are those of the TLS handshake.
      socket.on('error', () => {}).once('data', () => socket.resetAndDestroy());
    });
    const url = `https://${await hostOf(t, server)}`;
    const call = send('', { url, method: 'POST', body: '{}' });
    await fails(call, 'network', `POST ${url} failed: the connection was reset (ECONNRESET)`);
    assert.equal(connections, 3);
  });

  it('that goes on after its end is not taken for the answer to the next call', async () => {
    const whole = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    upstream.on('/two', (req) => {
      req.socket.write(whole('1'));
      setTimeout(() => req.socket.write(whole('poison')), 30);
    });
    upstream.text('/', '2');
    assert.equal(await text('/two'), '1');
    await upstream.until(() => upstream.sockets === 0);
    assert.equal(await text('/'), '2');
  });

  it('does not spoil the next call', async () => {
    upstream.on('/bad', faults.closeHalfWay());
    upstream.json('/good', 1);
    for (let round = 0; round < 3; round += 1) {
      await assert.rejects(send('/bad'), { kind: 'network' });
      assert.equal(await text('/good'), '1');
    }
  });
});

describe('an invalid request', () => {
  const REFUSED = 'the request is not valid HTTP (UND_ERR_INVALID_ARG)';

  it('fails without quoting a header, the path or the query', async () => {
    await getFails('/?q=secret', 'network', REFUSED, { headers: { 'x-key': 'secret\r\nx: y' } });
    await getFails('/?q=secret', 'network', REFUSED, { headers: { 'x key': 'secret' } });
    await getFails('/?q=secret', 'network', REFUSED, { headers: { 'x-key': 'secret\u{1f600}' } });
    await getFails('/?q=secret', 'network', REFUSED, { headers: { 'transfer-encoding': 'chunked' } });
    assert.equal(upstream.requests.length, 0);
  });

  it('fails by its URL', async () => {
    await fails(send('', { url: 'no url secret' }), 'network', 'GET failed: the URL is not valid');
    const scheme = 'GET failed: the URL must start with http:// or https://';
    await fails(send('', { url: 'file:///etc/passwd' }), 'network', scheme);
    await fails(
      send('', { url: 'http://user:secret@host.invalid/' }),
      'network',
      'GET http://host.invalid failed: the URL must not contain a user name or password',
    );
  });

  it('is a wrong number of connections', () => {
    for (const connections of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.throws(() => createHttpClient({ connections }), RangeError);
    }
  });
});

it('a plugin, or its test, makes the failure of a request itself, of its kind and its message', () => {
  const { kind, message, phase, status } = new RequestFailure('timeout', 'no answer in time', 'answer', 200);
  assert.deepEqual(
    { kind, message, phase, status },
    { kind: 'timeout', message: 'no answer in time', phase: 'answer', status: 200 },
  );
});
