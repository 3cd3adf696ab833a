import { type Static, Type } from 'typebox';
import { checkAddress, checkHeaderName, isHeaderValue } from './checks.ts';
import { type Address, checksumAddress } from './hex.ts';
import { type HttpTarget, httpTarget } from './http-target.ts';
import { addressSchema } from './keys.ts';

/** Settings of a signer that is asked over HTTP. */
export const HttpSignerSchema = Type.Object(
  {
    url: Type.String({
      pattern: '^https?://',
      description: 'Where the signer is; a user name and password in it are sent as basic authentication',
    }),
    address: addressSchema('The account that signs'),
    headers: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Sent with every request' })),
  },
  { additionalProperties: false },
);
export type HttpSignerConfig = Static<typeof HttpSignerSchema>;

/** The address of a signer whose config has to say it. @throws Error when its checksum is wrong (EIP-55). */
export function configuredAddress(address: string): Address {
  const [finding] = checkAddress('address', address);
  if (finding !== undefined) throw new Error(`${finding.path}: ${finding.message}`);
  return checksumAddress(address);
}

/** Where a signer is asked, and with which headers. @throws Error naming the setting, and nothing of its value. */
export function configuredTarget({ url, headers = {} }: Pick<HttpSignerConfig, 'url' | 'headers'>): HttpTarget {
  for (const [name, value] of Object.entries(headers)) {
    const [finding] = checkHeaderName(`headers.${name}`, name);
    if (finding !== undefined) throw new Error(`${finding.path}: ${finding.message}`);
    if (!isHeaderValue(value)) throw new Error(`headers.${name}: the value has characters that no header can carry`);
  }
  try {
    return httpTarget(url, headers);
  } catch {
    throw new Error('url: is no valid URL');
  }
}
