import type { Services } from '../plugins-sdk/services.ts';
import { type MeterSet, UNBOUNDED } from './meter-registry.ts';
import type { StatusParts } from './status-parts.ts';
import { packageVersion } from './surroundings.ts';

/** How the last reload went. */
export interface LastReload {
  readonly succeeded: boolean;
  /** Unix seconds at which a config last came into force. */
  readonly inForceSince: number;
  /** How many configs have been in force: 1 until the first reload. */
  readonly generation: number;
}

interface ShownService extends Pick<Services, 'phase' | 'node'> {
  /** The path of the file. */
  readonly config: string;
  lastReload(): LastReload;
}

const isoOf = (milliseconds: number) => new Date(milliseconds).toISOString();

/** Shows what a process runs, and since when; measures how the last reload went. */
export function tellOfService(
  parts: StatusParts,
  meters: MeterSet,
  { config, node, lastReload, phase }: ShownService,
): void {
  measureReloads(meters, lastReload);
  const startedAt = isoOf(performance.timeOrigin);
  parts.show('service', () => {
    const { generation, inForceSince, succeeded } = lastReload();
    return {
      ...{ config, generation, inForceSince: isoOf(inForceSince * 1000) },
      ...{ lastReload: succeeded ? 'succeeded' : 'failed', phase: phase(), node, version: packageVersion() },
      ...{ pid: process.pid, startedAt, uptime: Math.floor(process.uptime()) },
    };
  });
}

/** Under the names that Prometheus has for its own. */
function measureReloads(meters: MeterSet, last: () => LastReload): void {
  const { gauge } = meters.of('service', UNBOUNDED);
  const help = {
    succeeded: 'Whether the last reload succeeded: 1 or 0',
    since: 'Unix time at which a config last came into force',
  };
  gauge({ name: 'config_last_reload_successful', help: help.succeeded, across: 'min' }, () => Number(last().succeeded));
  const name = 'config_last_reload_success_timestamp_seconds';
  gauge({ name, help: help.since, across: 'min' }, () => last().inForceSince);
}
