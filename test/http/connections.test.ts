/** Requests of a connection are answered in order, and each address gets its turn. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openRaw } from '../support/raw-http.ts';
import { deaf, GET, gets, MEBIBYTE, pipelined, reply, startTestServer, type TestServer } from './server.ts';

/** Resolves when requests of another connection have begun and were answered, ten in a row. */
async function untilOthersAreAnswered(server: TestServer): Promise<void> {
  const other = openRaw(server.url);
  for (let i = 0; i < 10; i++) {
    const count = server.arrived.length;
    other.write(gets('/other'));
    await server.until(() => server.arrived.length > count);
    const arrived = server.arrived.at(-1);
    assert.equal(arrived?.request.url, '/other');
    if (arrived !== undefined) reply(arrived);
    await other.until((text) => text.split('answer').length === i + 2);
  }
  other.destroy();
}

describe('the requests of a connection', () => {
  it('are answered a bounded number at a time, and the others are not even read', async (t) => {
    const server = await startTestServer(t, { requests: 4 });
    const client = openRaw(server.url);
    client.write(pipelined(10));
    await server.until(() => server.arrived.length === 4);
    await untilOthersAreAnswered(server);
    assert.equal(server.arrived.length, 14);
    // The next are read once all of these are answered.
    for (let i = 0; i < 10; i++) reply(await server.at(`/${i}`), `</${i}>`);
    await client.until((text) => text.endsWith('</9>'));
    const bodies = [...client.text.matchAll(/<\/(\d)>/g)].map(([, digit]) => digit);
    assert.deepEqual(bodies, ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    client.destroy();
  });

  it('are read on once there is room, bodies included', async (t) => {
    const server = await startTestServer(t, { requests: 2 }, async (arrived) => {
      let body = '';
      for await (const chunk of arrived.request) body += chunk;
      reply(arrived, `<${body.length}>`);
    });
    const client = openRaw(server.url);
    const post = (length: number) =>
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`;
    client.write([100_000, 1, 70_000, 0, 300_000, 5].map(post).join(''));
    await client.until((text) => text.endsWith('<5>'));
    const bodies = [...client.text.matchAll(/<(\d+)>/g)].map(([, digits]) => digits);
    assert.deepEqual(bodies, ['100000', '1', '70000', '0', '300000', '5']);
    client.destroy();
  });

  it('do not begin while the client leaves answers unread', async (t) => {
    // More than the system's buffers take.
    const big = MEBIBYTE.repeat(16);
    const server = await startTestServer(t, { unread: MEBIBYTE.length }, (arrived) => {
      if (arrived.request.url !== '/other') reply(arrived, big);
    });
    const client = deaf(t, server.url, pipelined(4));
    await server.at('/0');
    await untilOthersAreAnswered(server);
    assert.equal(server.arrived.length, 11);
    client.resume();
    await server.at('/3');
    assert.equal(server.arrived.length, 14);
  });

  it('of one that pipelines thousands are all answered, and others meanwhile', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived, `<${arrived.request.url}>`));
    const greedy = openRaw(server.url);
    greedy.write(pipelined(20_000));
    await greedy.until((text) => text.includes('</0>'));
    const other = openRaw(server.url);
    other.write(GET);
    await other.until((text) => text.endsWith('</>'));
    assert.equal(greedy.text.includes('</19999>'), false);
    await greedy.until((text) => text.endsWith('</19999>'));
    greedy.destroy();
    other.destroy();
  });

  it('begin a bounded number at a time in each turn of the event loop, those of all connections together', async (t) => {
    const inTurns: number[] = [0];
    const look = () => {
      inTurns.push(0);
      next = setImmediate(look);
    };
    let next = setImmediate(look);
    t.after(() => clearImmediate(next));
    const server = await startTestServer(t, { begun: 8 }, (arrived) => {
      inTurns.push((inTurns.pop() ?? 0) + 1);
      reply(arrived);
    });
    const clients = Array.from({ length: 40 }, () => openRaw(server.url));
    await server.until(() => server.connections.size === 40);
    for (const client of clients) client.write(pipelined(30));
    await server.until(() => server.arrived.length === 1200);
    assert.equal(Math.max(...inTurns), 8);
    for (const client of clients) client.destroy();
  });

  it('wait while the server is told to hold them', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    server.connections.hold(true);
    const client = openRaw(server.url);
    client.write(GET);
    await server.until(() => server.connections.size === 1);
    for (let turns = 0; turns < 100; turns++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(server.arrived.length, 0);
    server.connections.hold(false);
    await client.until((text) => text.endsWith('answer'));
    client.destroy();
  });

  it('are closed with it, those that have not begun as well', async (t) => {
    const server = await startTestServer(t, { requests: 3, probe: 5 });
    const client = openRaw(server.url);
    client.write(pipelined(8));
    await server.until(() => server.arrived.length === 3);
    client.destroy();
    await server.until(() => server.closed.size === 3);
    assert.equal(server.arrived.length, 3);
    await server.until(() => server.connections.size === 0);
  });
});

describe('a server with more to do than it can', () => {
  it('says so with each request beyond its bound', async (t) => {
    const server = await startTestServer(t, { underWay: 2 });
    const clients = [1, 2, 3].map(() => openRaw(server.url));
    for (const [index, client] of clients.entries()) {
      client.write(GET);
      await server.until(() => server.arrived.length === index + 1);
    }
    assert.deepEqual(
      server.arrived.map(({ overloaded }) => overloaded),
      [false, false, true],
    );
    for (const client of clients) client.destroy();
  });

  it('says so when requests wait too long for their turn', async (t) => {
    let now = 0;
    const server = await startTestServer(
      t,
      { begun: 2, delay: 100, requests: 100 },
      (arrived) => {
        now += 30;
        reply(arrived);
      },
      () => now,
    );
    const clients = Array.from({ length: 20 }, () => openRaw(server.url));
    await Promise.all(clients.map((client) => client.sent(GET.slice(0, 5))));
    await server.until(() => server.connections.size === 20);
    for (const client of clients) client.write(GET.slice(5));
    await server.until(() => server.arrived.length === 20);
    const outcomes = server.arrived.map(({ overloaded }) => overloaded);
    assert.deepEqual([outcomes[0], outcomes[1], outcomes.includes(true)], [false, false, true]);
    for (const client of clients) client.destroy();
  });

  it('does not say so where requests wait for the answers of their own connection', async (t) => {
    let now = 0;
    const server = await startTestServer(
      t,
      { begun: 2, delay: 1000, requests: 4 },
      () => undefined,
      () => now,
    );
    const client = openRaw(server.url);
    client.write(pipelined(20));
    for (let i = 0; i < 20; i++) {
      const arrived = await server.at(`/${i}`);
      assert.equal(arrived.overloaded, false);
      // All of them together are late, and what passes between two looks at the clock is not.
      now += 55;
      reply(arrived);
    }
    client.destroy();
  });

  it('says so while the event loop is late', async (t) => {
    let now = 0;
    const server = await startTestServer(
      t,
      { begun: 1, delay: 1000 },
      () => undefined,
      () => now,
    );
    const clients = [1, 2].map(() => openRaw(server.url));
    for (const [index, client] of clients.entries()) {
      client.write(GET);
      await server.until(() => server.arrived.length === index + 1);
    }
    const ask = async () => {
      const client = openRaw(server.url);
      t.after(() => client.destroy());
      client.write(GET);
      const count = server.arrived.length;
      await server.until(() => server.arrived.length > count);
      return server.arrived.at(-1)?.overloaded;
    };
    assert.equal(await ask(), false);
    now += 5000;
    while (!(await ask()));
    // It is not late any more at the next look.
    while (await ask());
    for (const client of clients) client.destroy();
  });

  it('closes who pipelines on too many connections, and nobody else', async (t) => {
    const server = await startTestServer(t, { requests: 2, held: 2 });
    const other = deaf(t, server.url, gets('/other', '/other', '/other'), '127.0.0.2');
    await server.until(() => server.arrived.length === 2);
    const modest = openRaw(server.url);
    modest.write(gets('/modest'));
    await server.at('/modest');
    const greedy = [1, 2].map(() => openRaw(server.url));
    for (const client of greedy) client.write(pipelined(500));
    await Promise.race(greedy.map(({ closed }) => closed));
    assert.equal(server.connections.size, 3);
    assert.equal(other.destroyed, false);
    reply(await server.at('/modest'));
    await modest.until((text) => text.endsWith('answer'));
    for (const client of greedy) client.destroy();
    modest.destroy();
  });
});

it('clients who each ask one after the other are all answered, however many ask at once', async (t) => {
  const server = await startTestServer(t, { begun: 8, held: 2 }, (arrived) => void reply(arrived));
  const clients = Array.from({ length: 60 }, () => openRaw(server.url));
  await Promise.all(
    clients.map(async (client) => {
      for (let asked = 1; asked <= 10; asked++) {
        client.write(GET);
        await client.until((text) => text.split('answer').length > asked);
      }
      client.destroy();
    }),
  );
  assert.equal(server.arrived.length, 600);
});

describe('a request for several hosts, or none', () => {
  for (const hosts of [['Host: a', 'Host: b'], ['Host: a', 'HOST: a'], []]) {
    const request = `${['GET / HTTP/1.1', ...hosts].join('\r\n')}\r\n\r\n`;
    const refused = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n';

    it(`is 400, and ends the connection: ${hosts.join(', ') || 'none'}`, async (t) => {
      const server = await startTestServer(t, {});
      const client = openRaw(server.url);
      client.write(request);
      assert.equal(await client.closed, refused);
      assert.equal(server.arrived.length, 0);
    });

    it(`waits for its turn like others: ${hosts.join(', ') || 'none'}`, async (t) => {
      const server = await startTestServer(t, {});
      const client = openRaw(server.url);
      client.write(gets('/slow') + request.repeat(500));
      reply(await server.at('/slow'));
      assert.match(await client.closed, new RegExp(`^HTTP/1.1 200 OK\r\n[^]*\r\n\r\nanswer${refused}$`));
      assert.equal(server.arrived.length, 1);
    });
  }

  it('is none of HTTP/1.0, which knows no hosts', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    const client = openRaw(server.url);
    client.write('GET / HTTP/1.0\r\n\r\n');
    assert.match(await client.closed, /^HTTP\/1\.1 200 OK\r\n[\s\S]*answer$/);
  });
});
