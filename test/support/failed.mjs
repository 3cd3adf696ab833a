/** A reporter that names the files whose tests failed, a line each: `test:again` runs them by themselves. */
export default async function* failed(events) {
  const files = new Set();
  for await (const { type, data } of events) {
    // Suites of this name are made by `together`; a process that ended before them is named with its own file.
    if (type === 'test:fail' && data.nesting === 0) files.add(data.name);
  }
  yield* Array.from(files, (file) => `${file}\n`);
}
