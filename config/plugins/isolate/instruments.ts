import type { Meters } from '../../../plugins-sdk/meters.ts';
import type { HostOptions, PluginHost } from './host.ts';

/** Plugins that run, in all generations of the config. */
export const running = new Set<PluginHost>();

/** Counts what happens to an isolated plugin. All of them have the same instruments. */
export function counting(meters: Meters, plugin: string): HostOptions['count'] {
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
  return (what) => {
    // A series that begins with its first event shows no increase.
    if (!isKnown) for (const counter of Object.values(counters)) counter({ plugin }, 0);
    isKnown = true;
    counters[what]({ plugin }, 1);
  };
}
