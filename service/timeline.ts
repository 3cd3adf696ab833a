interface Entry {
  readonly stage: string;
  readonly milliseconds: number;
  /** By the process's clock. */
  readonly end: number;
}

/** What the stages of a request took, in the order in which they ended: a stage ends after those inside it. */
export class Timeline {
  readonly #entries: Entry[] = [];

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  add(stage: string, milliseconds: number): void {
    this.#entries.push({ stage, milliseconds, end: performance.now() });
  }

  /** Stages with durations. */
  get text(): string {
    return this.#entries.map(({ stage, milliseconds }) => `${stage} ${round(milliseconds)}`).join(', ');
  }

  /** @returns the milliseconds that each stage took by itself, from 1 up, and under `rest` those outside all stages. */
  spent(total: number): Readonly<Record<string, number>> {
    const spent: Record<string, number> = {};
    const outer: Entry[] = [];
    for (const entry of this.#entries) {
      let own = entry.milliseconds;
      // Those that began after it and have ended before it were inside.
      while ((outer.at(-1)?.end ?? 0) - (outer.at(-1)?.milliseconds ?? 0) > entry.end - entry.milliseconds)
        own -= outer.pop()?.milliseconds ?? 0;
      outer.push(entry);
      spent[entry.stage] = (spent[entry.stage] ?? 0) + Math.max(own, 0);
    }
    spent.rest = Math.max(total - outer.reduce((sum, { milliseconds }) => sum + milliseconds, 0), 0);
    return Object.fromEntries(
      Object.entries(spent).flatMap(([stage, milliseconds]) =>
        milliseconds < 1 ? [] : [[stage, round(milliseconds)]],
      ),
    );
  }
}

/** Milliseconds with two digits. */
export function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
