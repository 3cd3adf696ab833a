import { after, beforeEach } from 'node:test';
import { acts, notes } from './plugin-files.ts';
import type { RunningService } from './service.ts';
import type { Upstream } from './upstream.ts';

/**
 * For a suite with one service and one upstream: stops both at its end, and forgets before each test what the one before
 * has left in plugin files, in the log and at the upstream.
 */
export function tidy(started: () => { readonly service: RunningService; readonly upstream: Upstream }): void {
  after(async () => {
    const { service, upstream } = started();
    await service.stop();
    await upstream.close();
  });
  beforeEach(() => {
    const { service, upstream } = started();
    acts.clear();
    notes.clear();
    service.logs.length = 0;
    upstream.requests.length = 0;
  });
}
