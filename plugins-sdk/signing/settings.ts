import { type Static, Type } from 'typebox';
import { httpTarget, missingScheme } from '../../lib/http/target.ts';
import { checkAddress, checkHeaderName, checkPlainHttp, isHeaderValue } from '../checks.ts';
import { type CheckContext, errorAt, type Finding } from '../define.ts';
import { addressSchema, signerKey } from '../keys.ts';
import { closedObject } from '../schema/close.ts';
import { isRecord } from '../schema/path.ts';

/** The schema of a signer that is reached over HTTP. */
export const HttpSignerSchema = closedObject({
  url: Type.String({
    pattern: '^https?://',
    description: 'URL of the signer; a user name and password in it are sent as basic authentication',
  }),
  address: addressSchema('The account that signs'),
  headers: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Sent with every request' })),
});
/** The type of values of `HttpSignerSchema`. */
export type HttpSignerConfig = Static<typeof HttpSignerSchema>;

function isTarget(url: string, headers: Readonly<Record<string, string>>): boolean {
  try {
    return httpTarget(url, headers) !== undefined;
  } catch {
    return false;
  }
}

/** Finds what is wrong with a URL and headers. @param at prefix of config paths. */
function targetFindings(at: string, url: string, headers: Readonly<Record<string, string>>): Finding[] {
  const ofHeaders = Object.entries(headers).flatMap(([name, value]) => {
    const path = `${at}headers.${name}`;
    const sound = isHeaderValue(value) ? [] : [errorAt(path, 'the value has characters that no header can carry')];
    return [...checkHeaderName(path, name), ...sound];
  });
  if (!isTarget(url, headers)) return [...ofHeaders, errorAt(`${at}url`, missingScheme(url) ?? 'is no valid URL')];
  const harm = 'have what they like signed, or read the credentials that are sent';
  return [...ofHeaders, ...checkPlainHttp(`${at}url`, url, harm)];
}

/** Returns the signers of a config, the current and the next one, each with its prefix of config paths. */
export function signersIn(
  config: CheckContext['config'],
): (readonly [at: string, own: Readonly<Record<string, unknown>>])[] {
  const from = (at: string, own: unknown): ReturnType<typeof signersIn> =>
    isRecord(own) ? [[at, own], ...from(`${at}next.`, own.next)] : [];
  return from('settings.signer.', signerKey.in(config));
}

const isText = (value: unknown): value is string => typeof value === 'string';

/**
 * Returns a `Definition.check` for signers with `HttpSignerSchema`. Before any signer is opened, it finds what
 * {@link checksumAddress} and {@link httpTarget} would refuse, and headers that cannot be sent.
 * @param type the signers' type.
 */
export function checkHttpSigners(type: string): (context: Pick<CheckContext, 'config'>) => Finding[] {
  return ({ config }) =>
    signersIn(config).flatMap(([at, own]) => {
      const { url, address, headers = {} } = own;
      if (own.type !== type || !isText(url) || !isText(address) || !isRecord(headers)) return [];
      const texts = Object.entries(headers).flatMap(([name, value]) => (isText(value) ? [[name, value]] : []));
      return [...checkAddress(`${at}address`, address), ...targetFindings(at, url, Object.fromEntries(texts))];
    });
}
