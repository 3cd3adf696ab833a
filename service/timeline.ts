/** The duration and the end of one stage of a request. */
export interface StageTime {
  readonly stage: string;
  readonly milliseconds: number;
  /** Milliseconds of `performance.now()`. */
  readonly end: number;
}

/**
 * Splits a request's time between its stages. A stage does not count the time of stages inside it.
 * @param times in the order in which the stages ended, so a stage comes after those inside it.
 * @returns milliseconds by stage, and `rest` for the time outside all stages; values below 1 are left out.
 */
export function spentIn(times: readonly StageTime[], total: number): Readonly<Record<string, number>> {
  const spent: Record<string, number> = {};
  const outer: StageTime[] = [];
  for (const time of times) {
    let own = time.milliseconds;
    // Earlier entries that began after this stage were inside it.
    while ((outer.at(-1)?.end ?? 0) - (outer.at(-1)?.milliseconds ?? 0) > time.end - time.milliseconds)
      own -= outer.pop()?.milliseconds ?? 0;
    outer.push(time);
    spent[time.stage] = (spent[time.stage] ?? 0) + Math.max(own, 0);
  }
  spent.rest = Math.max(total - outer.reduce((sum, { milliseconds }) => sum + milliseconds, 0), 0);
  const shown = Object.entries(spent).filter(([, milliseconds]) => milliseconds >= 1);
  return Object.fromEntries(shown.map(([stage, milliseconds]) => [stage, round(milliseconds)]));
}

/** Rounds milliseconds to two decimals. */
export function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
