import assert from 'node:assert/strict';
import type { Services } from '../../plugins-sdk/services.ts';
import { Debts } from '../../plugins-sdk/state/debts.ts';
import { StateStore } from '../../plugins-sdk/state/store.ts';
import { MeterRegistry } from '../../service/meter-registry.ts';
import { StatusParts } from '../../service/status.ts';
import { TEST_ADDRESS } from './service.ts';

const nothing = () => undefined;

/** A log of which nobody reads. */
export const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** What a plugin's `setup` gets from a service that asks nobody. */
export function idleServices(more: Partial<Services> = {}): Services {
  return {
    config: {},
    endpoints: [],
    node: TEST_ADDRESS,
    credentials: [],
    exposed: [],
    answerConfig: {},
    version: '0.0.0',
    hide: (text) => text,
    log: silent,
    path: (relative) => relative,
    now: Date.now,
    states: new StateStore(),
    debts: new Debts(),
    meters: new MeterRegistry().draft().of('p'),
    status: new StatusParts(),
    budget: 'none',
    ask: () => assert.fail('asked'),
    admit: () => assert.fail('asked'),
    prices: { providers: () => new Map(), priceOf: () => assert.fail('asked') },
    dependencies: () => [],
    background: nothing,
    phase: () => 'starting',
    describe: () => assert.fail('nobody asks'),
    ...more,
  };
}
