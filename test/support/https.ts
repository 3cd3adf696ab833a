import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo, Server } from 'node:net';
import type { Certificates } from './certificates.ts';
import type { Lifetime } from './lifetime.ts';

/** The texts of these files. */
export async function textsOf(files: Certificates): Promise<Certificates> {
  const [ca, cert, key] = [files.ca, files.cert, files.key].map((file) => readFile(file, 'utf8'));
  return { ca: (await ca) ?? '', cert: (await cert) ?? '', key: (await key) ?? '' };
}

/** `127.0.0.1:<port>` of a server that listens until the test or the suite ends. */
export async function hostOf(lifetime: Lifetime, server: Server & { closeAllConnections?(): void }): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  lifetime.after(async () => {
    server.closeAllConnections?.();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
