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
    signersIn(config).flatMap(([at, own]) => (own.type === type ? [...signerFindings(at, own)] : []));
}

/** @param at prefix of config paths. */
function* signerFindings(at: string, own: Readonly<Record<string, unknown>>): Generator<Finding> {
  const { url, address, headers = {} } = own;
  if (!isText(url) || !isText(address) || !isRecord(headers)) return;
  yield* checkAddress(`${at}address`, address);
  for (const [name, value] of Object.entries(headers)) {
    const path = `${at}headers.${name}`;
    yield* checkHeaderName(path, name);
    if (isText(value) && !isHeaderValue(value))
      yield errorAt(path, 'the value has characters that no header can carry');
  }
  try {
    httpTarget(url);
    yield* checkPlainHttp(`${at}url`, url, 'have what they like signed, or read the credentials that are sent');
  } catch {
    yield errorAt(`${at}url`, missingScheme(url) ?? 'is no valid URL');
  }
}
