import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { installed } from './installed.ts';
import { complain, root } from './package/run.ts';

/** Installs the relayer's SDK for tests, in a folder of its own: its manifest asks for a newer Node.js than the service. */

try {
  const apart = installed('test/fhe/sdk').path('node_modules/@zama-fhe');
  const place = join(root, 'node_modules/@zama-fhe');
  if (!existsSync(place)) symlinkSync(apart, place, 'junction');
} catch (error) {
  complain(error);
}
