import { randomUUID } from 'node:crypto';
import { contract } from './contract.ts';
import { describeServers, openEngine, RedisServer } from './redis-server.ts';

describeServers('state in a server', (program) => {
  contract(async () => {
    const server = await RedisServer.start(program);
    const { engine } = openEngine({ url: server.url });
    await engine.start();
    return {
      area: () => engine.area(randomUUID()),
      close: async () => {
        await engine.close();
        await server.stop();
      },
    };
  });
});
