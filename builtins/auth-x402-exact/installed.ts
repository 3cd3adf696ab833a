import { createRequire } from 'node:module';

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
