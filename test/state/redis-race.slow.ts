/** Swaps that race from several processes have one winner. */

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { after, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { suite } from '../support/lifetime.ts';
import { eventOf } from '../support/wait.ts';
import { describeServers, redisFor } from './redis-server.ts';

const PROCESSES = 4;
const CALLERS = 16;
const RACES = 400;

interface Result {
  readonly name: string;
  /** What the swap found; none: it has won. */
  readonly standing?: string;
}

describeServers('swaps that race from several processes', async (program) => {
  const answers = async () => {
    const messages = await Promise.all(children.map((child): Promise<Result[][]> => eventOf(child, 'message')));
    return messages.flatMap(([results = []]) => results);
  };

  const server = await redisFor(suite, program, { appendfsync: 'no' });
  const racer = fileURLToPath(new URL('redis-racer.ts', import.meta.url));
  const options = { execArgv: ['--import', 'tsx'] };
  const children = Array.from({ length: PROCESSES }, () => fork(racer, [server.url, String(CALLERS)], options));
  after(async () => {
    for (const child of children) child.disconnect();
    await Promise.all(children.map((child) => eventOf(child, 'exit')));
  });
  await answers();

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
