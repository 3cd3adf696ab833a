/** A server that closes ends idle connections, and finishes requests. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, Server } from 'node:net';
import { platform } from 'node:os';
import { describe, it } from 'node:test';
import { closeWhenEmpty } from '../../http/close.ts';

/** How many of so many clients of another process get to connect, while this one stands still. */
function letIn(port: number, count: number): number | null {
  const code = `let open = 0;
    const connect = () => require('node:net').connect(${port}, '127.0.0.1', () => ++open === ${count} && process.exit(open));
    for (let i = 0; i < ${count}; i++) connect().on('error', () => process.exit(255));
    setTimeout(() => process.exit(open), 500);`;
  return spawnSync(process.execPath, ['-e', code]).status;
}

describe('a server that closes', { skip: platform() !== 'linux' && 'only Linux tells of its queue' }, () => {
  for (const host of ['127.0.0.1', '0.0.0.0', '::']) {
    it(`accepts all who wait, and lets nobody connect in the moment before: ${host}`, async (t) => {
      let accepted = 0;
      const server = createServer((socket) => {
        accepted += 1;
        socket.on('error', () => undefined).destroy();
      }).listen(0, host);
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      assert.equal(letIn(port, 5), 5);
      let isClosing = false;
      const holds: boolean[] = [];
      t.mock.method(Server.prototype, 'close', function (this: Server) {
        isClosing = true;
        assert.equal(letIn(port, 1), 0);
        t.mock.restoreAll();
        return this.close();
      });
      const closed = once(server, 'close');
      const closing = closeWhenEmpty(server, (isHeld) => void holds.push(isHeld));
      // Who comes while others wait is let in, too.
      assert.deepEqual([accepted, letIn(port, 30)], [0, 30]);
      await closing;
      await closed;
      assert.deepEqual([isClosing, accepted, holds], [true, 35, [true, false]]);
    });
  }
});
