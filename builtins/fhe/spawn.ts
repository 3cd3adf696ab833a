import { OwnedProcess } from '../../lib/process/child-process.ts';
import type { Connection } from './protocol.ts';

/** Heap limit in megabytes; the SDK needs a tenth of it. The memory of its WebAssembly does not count. */
const HEAP = 256;

/** The worker ignores signals to the whole process group, which the service handles; SIGUSR1 would open Node.js' inspector. */
const PROLOGUE = `
process.title = 'signed-data-proxy fhe';
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1']) process.on(signal, () => undefined);
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.on('uncaughtException', (error) =>
  process.send({ kind: 'failed', reason: \`the worker crashed: \${error?.message ?? error}\` }, () => process.exit(1)));
`;

/**
 * Starts the process that loads the SDK. It gets only variables for certificates, since the environment may hold secrets of other
 * plugins. Its output is discarded, since the SDK and its libraries write anything, URLs included.
 */
export function spawnWorker(connection: Connection, program = loadWorker()): OwnedProcess {
  // The worker trusts the same certificate authorities as the service.
  const { NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SSL_CERT_DIR, NODE_OPTIONS = '' } = process.env;
  const trust = [...process.execArgv, ...NODE_OPTIONS.split(' ')].filter((flag) => /^--use-\w+-ca$/.test(flag));
  const worker = new OwnedProcess([...trust, `--max-old-space-size=${HEAP}`, '-e', PROLOGUE + program], {
    env: { NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SSL_CERT_DIR },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  });
  // Sent as a message, since other processes can read arguments and variables.
  tell(worker, connection);
  return worker;
}

/** Sends a message to a process. One that has ended gets none; `ended` reports its end. */
export function tell({ child }: OwnedProcess, message: object): void {
  if (child.connected) child.send(message, () => undefined);
}

/** Returns the program that loads the worker, which is beside this file, in TypeScript or built. */
function loadWorker(): string {
  const entry = (file: string) => `import(${JSON.stringify(new URL(file, import.meta.url).href)})`;
  if (!import.meta.url.endsWith('.ts')) return entry('./worker.js');
  // Node 20 runs no TypeScript.
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  return `import(${tsx}).then(({ register }) => (register(), ${entry('./worker.ts')}))`;
}
