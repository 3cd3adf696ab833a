import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import v8 from 'node:v8';

function refuse(): never {
  throw new Error('an isolated plugin cannot do that');
}

/** What node's permissions do not cover, and what would reach other processes of the same user. */
export function lock(): void {
  for (const name of ['kill', '_kill', '_debugProcess', '_debugEnd', 'setegid', 'seteuid', 'setgid', 'setuid'])
    if (name in process) Object.defineProperty(process, name, { value: refuse });
  Object.defineProperty(os, 'setPriority', { value: refuse });
  // By its flags, and where its heap is full, V8 writes files wherever it is told to.
  for (const name of ['setFlagsFromString', 'setHeapSnapshotNearHeapLimit'])
    Object.defineProperty(v8, name, { value: refuse });
  syncBuiltinESMExports();
  // What ends the service, such as Ctrl-C, is sent to its whole group: it is the service that ends its plugins, in the end.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
}
