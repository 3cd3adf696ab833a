import { setTimeout } from 'node:timers/promises';
import { recoverableSignature } from '../../lib/eth/signatures.ts';
import { optionalPackage } from '../../lib/process/optional-package.ts';
import { withTimeout } from '../../lib/time/with-timeout.ts';
import { definePlugin, type Hex, type OpenSigner, signerType } from '../../plugins-sdk/index.ts';
import type { SignerServices } from '../../plugins-sdk/signing/signers.ts';
import { type Config, explained, type Library, mayPass, Schema } from './failure.ts';
import { leaveModule, useModule } from './module.ts';
import { Token } from './token.ts';

const MISSING = 'needs a package that is not installed, or not built: npm install pkcs11js@2';
/** Milliseconds for signatures under way when the signer is closed. */
const CLOSE_TIMEOUT_MS = 2000;
/** Milliseconds before each further look for the token: while one process logs in, others may see no token of SoftHSM's. */
const PAUSES_MS = [100, 200, 400];

/** Before anybody logs in. */
function reach(library: Library, config: Config, path: string) {
  const module = useModule(library, path);
  try {
    const token = new Token(library, module, config);
    token.requireToken();
    return { module, token };
  } catch (error) {
    leaveModule(module);
    throw error;
  }
}

async function reachPatiently(library: Library, config: Config, path: string) {
  for (const pause of PAUSES_MS) {
    try {
      return reach(library, config, path);
    } catch (error) {
      if (!mayPass(error)) throw error;
    }
    await setTimeout(pause);
  }
  return reach(library, config, path);
}

async function open(config: Config, { path }: SignerServices): Promise<OpenSigner> {
  const { default: library } = await optionalPackage(() => import('pkcs11js'), MISSING);
  const { module, token } = await reachPatiently(library, config, path(config.module)).catch((error: unknown) => {
    throw explained(error);
  });
  // A signature that never ends keeps the module as it is.
  const close = () =>
    withTimeout(
      CLOSE_TIMEOUT_MS,
      token.close().then(() => leaveModule(module)),
      () => undefined,
    );
  try {
    const address = token.address();
    const sign = async (hash: Uint8Array, signal: AbortSignal): Promise<Hex> => {
      const rs = await token.sign(hash, signal).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : explained(error);
      });
      return recoverableSignature(hash, rs, address);
    };
    return { address, sign: ({ hash }, signal) => sign(hash, signal), close };
  } catch (error) {
    await close();
    throw explained(error);
  }
}

/** Has answers signed by a key in an HSM, or whatever else speaks PKCS#11. */
export const signerPkcs11 = definePlugin({
  name: 'signer-pkcs11',
  signers: { pkcs11: signerType({ schema: Schema, open }) },
  setup: () => ({}),
});
