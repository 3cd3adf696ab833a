import { type Static, Type } from 'typebox';
import { checkHeaderName, isHeaderValue } from './checks.ts';
import { type Address, checksumAddress } from './hex.ts';
import { type HttpTarget, httpTarget } from './http-target.ts';
import { addressSchema } from './keys.ts';
import type { SignerServices } from './signers.ts';

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

type Place = Pick<SignerServices, 'isNext'>;

/** Config path of a signer, or of one of its settings, as its errors name it. */
export function signerSetting({ isNext }: Place, name?: string): string {
  return ['settings.signer', ...(isNext ? ['next'] : []), ...(name === undefined ? [] : [name])].join('.');
}

/** The address of a signer whose config has to say it. @throws Error when its checksum is wrong (EIP-55). */
export function configuredAddress(place: Place, address: string): Address {
  try {
    return checksumAddress(address);
  } catch {
    throw new Error(`${signerSetting(place, 'address')}: the checksum of the address is wrong (EIP-55)`);
  }
}

/** Where a signer is asked, and with which headers. @throws Error naming the setting, and nothing of its value. */
export function configuredTarget(
  place: Place,
  { url, headers = {} }: Pick<HttpSignerConfig, 'url' | 'headers'>,
): HttpTarget {
  for (const [name, value] of Object.entries(headers)) {
    const [finding] = checkHeaderName(signerSetting(place, `headers.${name}`), name);
    if (finding !== undefined) throw new Error(`${finding.path}: ${finding.message}`);
    if (!isHeaderValue(value))
      throw new Error(`${signerSetting(place, `headers.${name}`)}: the value has characters that no header can carry`);
  }
  try {
    return httpTarget(url, headers);
  } catch {
    throw new Error(`${signerSetting(place, 'url')}: is no valid URL`);
  }
}
