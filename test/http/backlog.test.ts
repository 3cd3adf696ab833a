/** Connections that wait to be accepted are counted, those of this server alone. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces, platform } from 'node:os';
import { describe, it, type TestContext } from 'node:test';
import { queueOf } from '../../http/close.ts';

/** Connects to an address from another process, while this one stands still and accepts nothing. */
function connectWhileStill(port: number, host: string, count: number): void {
  const code = `let open = 0;
    for (let i = 0; i < ${count}; i++) require('node:net').connect(${port}, '${host}', () => ++open === ${count} && process.exit());`;
  assert.equal(spawnSync(process.execPath, ['-e', code]).status, 0);
}

async function startServer(t: TestContext, host: string, port = 0) {
  const server = createServer((socket) => socket.on('error', () => undefined).destroy());
  server.listen(port, host);
  await once(server, 'listening');
  t.after(() => server.close());
  return { server, port: (server.address() as AddressInfo).port };
}

const hasIpv6 = Object.values(networkInterfaces()).some((some) => some?.some(({ address }) => address === '::1'));

describe('connections that wait to be accepted', { skip: platform() !== 'linux' && 'only Linux tells' }, () => {
  for (const [host, target] of [
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.3'],
    ['::1', '::1'],
    ['::', '::1'],
    ['::', '127.0.0.1'],
    ['::ffff:127.0.0.4', '127.0.0.4'],
  ] as const) {
    it(`are counted: at ${host}, to ${target}`, { skip: host.includes(':') && !hasIpv6 }, async (t) => {
      const { server, port } = await startServer(t, host);
      assert.equal(queueOf(server)?.waiting, 0);
      connectWhileStill(port, target, 7);
      assert.equal(queueOf(server)?.waiting, 7);
    });
  }

  it('are those of the server, and not of another one with its port', async (t) => {
    const { server, port } = await startServer(t, '127.0.0.1');
    const { server: other } = await startServer(t, '127.0.0.2', port);
    connectWhileStill(port, '127.0.0.2', 3);
    assert.deepEqual([queueOf(server)?.waiting, queueOf(other)?.waiting], [0, 3]);
  });

  it('are none of a server that listens no more', async (t) => {
    const { server } = await startServer(t, '127.0.0.1');
    server.close();
    await once(server, 'close');
    assert.equal(queueOf(server), undefined);
  });
});
