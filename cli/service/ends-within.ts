import { within } from '../../plugins-sdk/lib/time/within.ts';

/** @returns whether the work ended in time. */
export function endsWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  const ended = work.then(() => true);
  return within(milliseconds, ended, () => false);
}
