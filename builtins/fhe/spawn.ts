import { OwnedProcess } from '../../lib/process/child-process.ts';
import type { Connection } from './protocol.ts';

/** Megabytes of JavaScript objects; the SDK needs a tenth of it. The memory of its WebAssembly does not count. */
const HEAP = 256;

/** Signals to all processes of the service are the service's business; SIGUSR1 would open node's inspector. */
const PROLOGUE = `
process.title = 'signed-data-proxy fhe';
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1']) process.on(signal, () => undefined);
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.on('uncaughtException', (error) =>
  process.send({ kind: 'failed', reason: \`the worker crashed: \${error?.message ?? error}\` }, () => process.exit(1)));
`;

/**
 * Starts the process in which the SDK is loaded. It gets no other variable (the environment may hold secrets of other
 * plugins), and has nowhere to write to. The SDK and its libraries write what they see fit, URLs included.
 */
export function spawnWorker(connection: Connection, program = loadWorker()): OwnedProcess {
  // Whom the service trusts by its start, its worker trusts too.
  const { NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SSL_CERT_DIR, NODE_OPTIONS = '' } = process.env;
  const trust = [...process.execArgv, ...NODE_OPTIONS.split(' ')].filter((flag) => /^--use-\w+-ca$/.test(flag));
  const worker = new OwnedProcess([...trust, `--max-old-space-size=${HEAP}`, '-e', PROLOGUE + program], {
    env: { NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, SSL_CERT_DIR },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    serialization: 'advanced',
  });
  // Arguments and variables can be read by others.
  tell(worker, connection);
  return worker;
}

/** Whether a process that cannot be told anything has ended is said elsewhere. */
export function tell({ child }: OwnedProcess, message: object): void {
  if (child.connected) child.send(message, () => undefined);
}

/** The entry lies beside this file and is written in the same language. */
function loadWorker(): string {
  const entry = (file: string) => `import(${JSON.stringify(new URL(file, import.meta.url).href)})`;
  if (!import.meta.url.endsWith('.ts')) return entry('./worker.js');
  // Node 20 runs no TypeScript.
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  return `import(${tsx}).then(({ register }) => (register(), ${entry('./worker.ts')}))`;
}
