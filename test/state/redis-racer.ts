import { openEngine } from './redis-server.ts';

/** A process that races against others, told by its parent when. */

const [, , url = '', callers = ''] = process.argv;
const { engine } = openEngine({ url });
await engine.start();
const area = engine.area('races');

process.on('message', async (race: string) => {
  const names = Array.from({ length: Number(callers) }, (_, index) => `${process.pid}/${index}`);
  const swaps = names.map((name) => area.compareAndSet(race, undefined, name, { durable: true }));
  const standing = await Promise.all(swaps);
  process.send?.(names.map((name, index) => ({ name, standing: standing[index]?.value })));
});
process.on('disconnect', () => engine.close());
process.send?.([]);
