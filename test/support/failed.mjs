import { appendFileSync } from 'node:fs';

/**
 * A reporter that says nothing: it notes the files whose tests failed in `.cache/tests/failed`, a line each, and `test:again` runs
 * them by themselves. It writes at once, since `--test-force-exit` waits for nothing.
 */
// biome-ignore lint/correctness/useYield: reporters are generators.
export default async function* failed(events) {
  for await (const { type, data } of events) {
    // Suites of this name are made by `together`; a process that ended before them is named with its own file.
    if (type === 'test:fail' && data.nesting === 0) appendFileSync('.cache/tests/failed', `${data.name}\n`);
  }
}
