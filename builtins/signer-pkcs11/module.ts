import { realpathSync } from 'node:fs';
import type { PKCS11 } from 'pkcs11js';
import { type Library, nameOf, TokenFailure } from './failure.ts';

export interface Module {
  readonly pkcs11: PKCS11;
  /** Signers that use it: it is one for all of the process, and each generation of a config opens its own. */
  users: number;
  /** Whether it was initialized here, and not by somebody else in the process. */
  owned: boolean;
  /** The PINs that its tokens took, by slot: a login is of the process, so that a later one is not looked at. */
  readonly pins: Map<string, string>;
}

/** By path. They stay loaded, since some libraries do not survive being unloaded. */
const modules = new Map<string, Module>();

/** Loads and initializes a module, unless another signer has. */
export function useModule({ PKCS11, CKF_OS_LOCKING_OK }: Library, path: string): Module {
  let real: string;
  try {
    real = realpathSync(path);
  } catch {
    throw new TokenFailure('module', 'there is no such file');
  }
  const module = modules.get(real) ?? { pkcs11: new PKCS11(), users: 0, owned: false, pins: new Map<string, string>() };
  try {
    if (!modules.has(real)) module.pkcs11.load(real);
  } catch {
    throw new TokenFailure('module', 'the file is no PKCS#11 library for this machine');
  }
  modules.set(real, module);
  if (module.users === 0) {
    try {
      module.pkcs11.C_Initialize({ flags: CKF_OS_LOCKING_OK });
      module.owned = true;
    } catch (error) {
      if (nameOf(error) !== 'CKR_CRYPTOKI_ALREADY_INITIALIZED') throw error;
    }
  }
  module.users += 1;
  return module;
}

/** Lets go of a module; the last one finalizes it. */
export function leaveModule(module: Module): void {
  module.users -= 1;
  if (module.users > 0 || !module.owned) return;
  module.owned = false;
  try {
    module.pkcs11.C_Finalize();
  } catch {
    // Whoever comes next says what is wrong with it.
  }
}
