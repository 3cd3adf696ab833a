import type { HttpTarget } from '../../lib/http/target.ts';
import { httpTarget } from '../../plugins-sdk/config.ts';
import { createHttpClient, definePlugin, type HttpClient } from '../../plugins-sdk/index.ts';
import {
  type Address,
  checkHttpSigners,
  checksumAddress,
  type HttpSignerConfig,
  HttpSignerSchema,
  type OpenSigner,
  signerType,
} from '../../plugins-sdk/signing.ts';

type Sign = OpenSigner['sign'];

/** Opens a signer that is asked over HTTP. Its client is closed with it, or if it cannot be opened. */
export async function openOver(
  open: (client: HttpClient) => Promise<{ readonly address: Address; readonly sign: Sign }>,
): Promise<OpenSigner> {
  const client = createHttpClient();
  const close = () => client.close();
  try {
    return { ...(await open(client)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Returns the function by which a signer at a target signs. @throws Error that names the setting at fault. */
type Connect = (client: HttpClient, target: HttpTarget, address: Address) => Sign | Promise<Sign>;

/** Makes the plugin of a type of signers whose config has their URL and their address. */
export function httpSigners(name: string, type: string, connect: Connect) {
  const open = ({ url, headers, ...config }: HttpSignerConfig) => {
    const address = checksumAddress(config.address);
    return openOver(async (client) => ({ address, sign: await connect(client, httpTarget(url, headers), address) }));
  };
  return definePlugin({
    name,
    signers: { [type]: signerType({ schema: HttpSignerSchema, open }) },
    check: checkHttpSigners(type),
    setup: () => ({}),
  });
}
