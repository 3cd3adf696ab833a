import type { LoadedConfig } from '../config/index.ts';
import type { Endpoint } from '../plugins-sdk/kernel.ts';
import type { Address } from '../plugins-sdk/listen.ts';
import { addressOf, workersOf } from './listener.ts';
import { isSameState } from './shared-state.ts';

/** What a reload changes and what it cannot change, a line each. */
export interface Differences {
  /** `+` an endpoint that appeared, `-` one that is gone, `=` one that stays, each with its name and ID. */
  readonly endpoints: readonly string[];
  /** What needs a restart. */
  readonly warnings: readonly string[];
}

function lineOf({ api, name, id }: Endpoint): string {
  return `${api}/${name} ${id}`;
}

/** Compares two configs of one service. @param was where it listens. */
export function compare(before: LoadedConfig, after: LoadedConfig, was: Address): Differences {
  const had = new Set(before.endpoints.map(({ id }) => id));
  const has = new Set(after.endpoints.map(({ id }) => id));
  const is = addressOf(after.config);
  const changed = (key: 'port' | 'host') =>
    was[key] === is[key] ? [] : [`server.${key}: stays ${was[key]} until the service is restarted`];
  const processes =
    workersOf(before.config) === workersOf(after.config)
      ? []
      : ['server.workers: stays as it is until the service is restarted'];
  const state = isSameState(before, after) ? [] : ['settings.state: stays as it is until the service is restarted'];
  return {
    endpoints: [
      ...after.endpoints.map((endpoint) => `${had.has(endpoint.id) ? '=' : '+'} ${lineOf(endpoint)}`),
      ...before.endpoints.filter(({ id }) => !has.has(id)).map((endpoint) => `- ${lineOf(endpoint)}`),
    ],
    warnings: [...changed('port'), ...changed('host'), ...processes, ...state],
  };
}
