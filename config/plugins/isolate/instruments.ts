import type { Meters } from '../../../plugins-sdk/meters.ts';
import type { Isolate, IsolateOptions } from './isolate.ts';

/** Plugins that run, in all generations of the config. */
const running = new Set<Isolate>();

/** What is measured of an isolated plugin. All of them have the same instruments. */
export function instruments(meters: Meters, plugin: string) {
  const labels = ['plugin'] as const;
  const counters = {
    calls: meters.counter({ name: 'isolated_calls_total', help: 'Calls of isolated plugins', labels }),
    restarts: meters.counter({
      name: 'isolated_restarts_total',
      help: 'Processes of isolated plugins that were started after the start',
      labels,
    }),
    takeovers: meters.counter({
      name: 'isolated_takeovers_total',
      help: 'Processes of isolated plugins that did not answer and were replaced',
      labels,
    }),
  };
  meters.gauge(
    { name: 'isolated_resident_memory_bytes', help: 'Resident memory of all processes of isolated plugins' },
    () => [...running].reduce((sum, { resident }) => sum + resident, 0),
  );
  let isKnown = false;
  const count: IsolateOptions['count'] = (what) => {
    // A series that begins with its first event shows no increase.
    if (!isKnown) for (const counter of Object.values(counters)) counter({ plugin }, 0);
    isKnown = true;
    counters[what]({ plugin }, 1);
  };
  return {
    count,
    add: (isolate: Isolate) => void running.add(isolate),
    remove: (isolate: Isolate) => void running.delete(isolate),
  };
}
