/** A connection that is refused costs no look at those that stay. */

import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { it } from 'node:test';
import { listen, urlOf } from '../../lib/http/listen.ts';
import { limitConnections } from '../../plugins-sdk/connection-limits.ts';
import { eventOf } from '../support/wait.ts';

it('a connection that is refused costs no look at each of those that stay', async (t) => {
  let looks = 0;
  let refused = 0;
  const accepted: Socket[] = [];
  const server = createServer((socket) => {
    accepted.push(socket);
    // As if each of them had sent something.
    Object.defineProperty(socket, 'bytesRead', {
      get: () => {
        looks += 1;
        return 1;
      },
    });
  });
  limitConnections(
    server,
    () => ({ max: 1000, perAddress: 20 }),
    () => {
      refused += 1;
    },
  );
  await listen(server, { host: '127.0.0.1', port: 0 });
  const port = Number(new URL(urlOf(server)).port);
  const open = async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    t.after(() => socket.destroy());
    await eventOf(socket, 'connect');
    return socket;
  };
  t.after(() => {
    for (const socket of accepted) socket.destroy();
    server.close();
  });
  for (let i = 0; i < 20; i++) await open();
  for (let i = 0; i < 30; i++) {
    const socket = await open();
    await eventOf(socket.resume(), 'close');
  }
  assert.deepEqual([refused, looks], [30, 20]);
});
