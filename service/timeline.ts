/** What a stage of a request took. */
export interface StageTime {
  readonly stage: string;
  readonly milliseconds: number;
  /** By the process's clock. */
  readonly end: number;
}

/**
 * @param times in the order in which the stages ended: a stage ends after those inside it.
 * @returns the milliseconds that each took by itself, from 1 up, and under `rest` those outside all stages.
 */
export function spentIn(times: readonly StageTime[], total: number): Readonly<Record<string, number>> {
  const spent: Record<string, number> = {};
  const outer: StageTime[] = [];
  for (const time of times) {
    let own = time.milliseconds;
    // Those that began after it and have ended before it were inside.
    while ((outer.at(-1)?.end ?? 0) - (outer.at(-1)?.milliseconds ?? 0) > time.end - time.milliseconds)
      own -= outer.pop()?.milliseconds ?? 0;
    outer.push(time);
    spent[time.stage] = (spent[time.stage] ?? 0) + Math.max(own, 0);
  }
  spent.rest = Math.max(total - outer.reduce((sum, { milliseconds }) => sum + milliseconds, 0), 0);
  const shown = Object.entries(spent).filter(([, milliseconds]) => milliseconds >= 1);
  return Object.fromEntries(shown.map(([stage, milliseconds]) => [stage, round(milliseconds)]));
}

/** Milliseconds with two digits. */
export function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
