import { acts, notes } from './plugin-files.ts';
import type { RunningService } from './service.ts';
import type { Upstream } from './upstream.ts';

/** Forgets what the test before has left in plugin files, in the log and at the upstream. */
export function tidy(service: RunningService, upstream: Upstream): void {
  acts.clear();
  notes.clear();
  service.logs.length = 0;
  upstream.requests.length = 0;
}
