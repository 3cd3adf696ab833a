import { loadConfig } from '../../config/index.ts';
import { silentLog } from '../../plugins-sdk/log.ts';
import { definitions, type ServiceOptions } from '../../service/index.ts';
import { Signers } from '../../service/signers.ts';

/** Returns the addresses of a config file's signers, which are opened for this. */
export async function configuredAddresses({ file, env }: ServiceOptions) {
  const signers = new Signers(env, silentLog);
  const loaded = await loadConfig({ file, env, builtins: definitions(signers) });
  try {
    await signers.open(loaded, env);
    const [current, next] = signers.addressesIn(loaded).signers;
    return { current, next };
  } finally {
    await signers.close();
  }
}
