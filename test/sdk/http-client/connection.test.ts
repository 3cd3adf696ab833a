/** A connection that cannot be begun fails the call. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Connection } from '../../../lib/http/client/connection.ts';
import { HostNames } from '../../../lib/http/host-names/index.ts';

it('a connection that cannot even be begun fails the call, however long its name took to be looked up', async () => {
  const names = new HostNames({
    resolve: async () => ({ addresses: [{ address: '192.0.2.1', family: 4 }], ttl: 60_000 }),
  });
  const connector = () => {
    throw new Error('no socket');
  };
  for (const when of ['looked up', 'known']) {
    const connection = new Connection('http://a.test', { names, connector, proxyConnector: connector }, 1000);
    const call = connection.client.request({ method: 'GET', path: '/', signal: AbortSignal.timeout(5000) });
    await assert.rejects(call, { message: 'no socket' }, when);
    await connection.destroy();
  }
});
