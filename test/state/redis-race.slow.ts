/** Swaps that race from several processes have one winner. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { after, before, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeServers, RedisServer } from './redis-server.ts';

const PROCESSES = 4;
const CALLERS = 16;
const RACES = 400;

interface Result {
  readonly name: string;
  /** What the swap found; none: it has won. */
  readonly standing?: string;
}

describeServers('swaps that race from several processes', (program) => {
  let server: RedisServer;
  let children: ChildProcess[];

  const answers = async () => {
    const messages = await Promise.all(children.map((child): Promise<Result[][]> => once(child, 'message')));
    return messages.flatMap(([results = []]) => results);
  };

  before(async () => {
    server = await RedisServer.start(program, { appendfsync: 'no' });
    const racer = fileURLToPath(new URL('redis-racer.ts', import.meta.url));
    const options = { execArgv: ['--import', 'tsx'] };
    children = Array.from({ length: PROCESSES }, () => fork(racer, [server.url, String(CALLERS)], options));
    await answers();
  });
  after(async () => {
    for (const child of children) child.disconnect();
    await Promise.all(children.map((child) => once(child, 'exit')));
    await server.stop();
  });

  it('have one winner each, whom all others see', async () => {
    for (let race = 0; race < RACES; race++) {
      const ended = answers();
      for (const child of children) child.send(`race ${race}`);
      const results = await ended;
      const winners = results.filter(({ standing }) => standing === undefined).map(({ name }) => name);
      assert.equal(winners.length, 1);
      const seen = results.flatMap(({ standing = [] }) => standing);
      assert.deepEqual(
        seen,
        Array.from({ length: PROCESSES * CALLERS - 1 }, () => winners[0]),
      );
    }
  });
});
