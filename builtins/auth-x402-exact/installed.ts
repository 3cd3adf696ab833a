import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { compileFunction } from 'node:vm';

type Server = Pick<typeof import('@x402/core/server'), 'HTTPFacilitatorClient'>;
type Schemas = Pick<typeof import('@x402/core/schemas'), 'PaymentPayloadV2Schema'>;

/** What is used of the library. */
export interface Core extends Server {
  readonly schemas: Schemas;
}

const INSTALL = 'npm install @x402/core@2.27';

/**
 * Loads the library. Its client asks facilitators by the global `fetch`. It reads answers of any length, follows redirects
 * with the credentials, and prints what a header of theirs says. A CommonJS module is a function of what it may use, so here it
 * gets a `fetch` and a `console` of ours.
 *
 * @throws Error with the command that installs it, when it is missing.
 */
export function loadCore(fetch: typeof globalThis.fetch): Core {
  const require = createRequire(import.meta.url);
  const path = resolved(
    require,
    '@x402/core/server',
    `auth of type x402-exact needs a package that is not installed: ${INSTALL}`,
  );
  const module: { exports: Partial<Server> } = { exports: {} };
  const names = ['exports', 'require', 'module', '__filename', '__dirname', 'fetch', 'console'];
  const run = compileFunction(readFileSync(path, 'utf8'), names, { filename: path });
  run(module.exports, createRequire(path), module, path, dirname(path), fetch, { ...console, log: () => undefined });
  const { HTTPFacilitatorClient } = module.exports;
  if (HTTPFacilitatorClient === undefined) throw new Error(`@x402/core has no HTTPFacilitatorClient: ${INSTALL}`);
  return { HTTPFacilitatorClient, schemas: require('@x402/core/schemas') };
}

/** @throws Error with the command that installs what signs tokens for Coinbase's facilitator, when it is missing. */
export function requireCdp(): void {
  const missing =
    'a facilitator with auth of type cdp needs a package that is not installed: npm install @coinbase/cdp-sdk@1';
  resolved(createRequire(import.meta.url), '@coinbase/cdp-sdk/auth', missing);
}

function resolved(require: NodeJS.Require, name: string, missing: string): string {
  try {
    return require.resolve(name);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'MODULE_NOT_FOUND') throw error;
    throw new Error(missing);
  }
}
