import type { Json } from '../kernel/values.ts';
import type { Services, Status } from '../plugins-sdk/services.ts';
import { type MeterSet, UNBOUNDED } from './meter-registry.ts';
import { packageVersion } from './surroundings.ts';
import type { WorkerLink } from './workers/link.ts';

/** The status of one set of plugins, made of the parts that they show. */
export class StatusParts implements Status {
  readonly #parts: (readonly [part: string, read: () => Json])[] = [];

  show(part: string, read: () => Json): void {
    this.#parts.push([part, read]);
  }

  read(): ReturnType<Status['read']> {
    const shown = new Map<string, Json>();
    for (const [part, read] of this.#parts) {
      const before = shown.get(part);
      shown.set(part, before === undefined ? readable(read) : [before, readable(read)].flat());
    }
    return Object.fromEntries(shown);
  }
}

/** Returns a part's value, or a text if it cannot be read: operators then need the other parts all the more. */
function readable(read: () => Json): Json {
  try {
    const value = read();
    return JSON.stringify(value) === undefined ? null : value;
  } catch {
    return 'cannot be shown';
  }
}

/** The result of the last reload. */
export interface LastReload {
  readonly succeeded: boolean;
  /** Unix seconds at which a config last came into force. */
  readonly inForceSince: number;
  /** The number of configs that have been in force: 1 until the first reload. */
  readonly generation: number;
}

interface ShownService extends Pick<Services, 'phase' | 'node'> {
  /** The path of the config file. */
  readonly config: string;
  lastReload(): LastReload;
  readonly workers?: WorkerLink | undefined;
}

const isoOf = (milliseconds: number) => new Date(milliseconds).toISOString();

/** Adds the process's config, phase and uptime to the status, and gauges of the last reload, named like Prometheus's own. */
export function tellOfService(
  parts: StatusParts,
  meters: MeterSet,
  { config, node, lastReload, phase, workers }: ShownService,
): void {
  const startedAt = isoOf(performance.timeOrigin);
  parts.show('service', () => {
    const { generation, inForceSince, succeeded } = lastReload();
    return {
      ...{ config, generation, inForceSince: isoOf(inForceSince * 1000) },
      ...{ lastReload: succeeded ? 'succeeded' : 'failed', phase: phase(), node, version: packageVersion() },
      ...{ pid: process.pid, startedAt, uptime: Math.floor(process.uptime()) },
    };
  });
  workers?.measure(meters.of('workers', UNBOUNDED));
  const gauge = (name: string, help: string, read: () => number) =>
    meters.of('service', UNBOUNDED).gauge({ name, help, across: 'min' }, read);
  const [isSuccessful, since] = ['config_last_reload_successful', 'config_last_reload_success_timestamp_seconds'];
  gauge(isSuccessful, 'Whether the last reload succeeded: 1 or 0', () => Number(lastReload().succeeded));
  gauge(since, 'Unix time at which a config last came into force', () => lastReload().inForceSince);
}
