/** MiB that node itself takes, and the least that a plugin gets beside it. */
const OWN = 48;
const LEAST_HEAP = 12;

/** The options of node for the process of a plugin that may take `memory` MiB. */
export function nodeOptions(memory: number, version = process.versions.node): string[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const heap = Math.max(LEAST_HEAP, Math.floor((memory - OWN) * 0.8));
  const young = Math.min(16, Math.max(1, Math.floor(memory / 32)));
  return [
    major < 22 ? '--experimental-permission' : '--permission',
    // The module is read from stdin: it needs no file.
    ...(major >= 25 ? ['--allow-net'] : []),
    // It writes files in spite of the permissions.
    ...(major > 22 || (major === 22 && minor >= 5) ? ['--no-experimental-sqlite'] : []),
    '--disable-warning=ExperimentalWarning',
    // Traces are written in spite of the permissions.
    '--trace-event-file-pattern=/dev/null',
    `--max-old-space-size=${heap}`,
    `--max-semi-space-size=${young}`,
    '--input-type=module',
    '-',
  ];
}
