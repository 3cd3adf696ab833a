import { Refusal } from '../../kernel/refusal.ts';
import { WrongShape } from '../../kernel/stages.ts';
import type { ApiResponse, OutgoingRequest, Parameters } from '../../kernel/values.ts';
import { type Hex, isHex } from '../../lib/eth/hex.ts';
import { deepFreeze, isPlain, isRecord } from '../../lib/json/value.ts';
import { nearest } from '../../lib/suggest.ts';
import { isStatus } from '../results/members.ts';
import { plainText } from '../results/plain.ts';

/** Most characters of parameters' JSON: twice what a client may send. */
const MAX_PARAMETERS = 128 * 1024;
/** Most characters of the data to sign, as hex. */
const MAX_DATA = 2 + 2 * 1024 * 1024;
/** Most characters of the text that a rejected client gets. */
const MAX_MESSAGE = 8192;

/** Returns the members of a result that has `key`. @param known other members that it may have. */
function membersWith(key: string, result: unknown, known: readonly string[] = []): Readonly<Record<string, unknown>> {
  if (!isRecord(result) || !(key in result)) throw new WrongShape(`returned no object with "${key}"`);
  for (const name of Object.keys(result)) {
    if (name === key || known.includes(name)) continue;
    // Unknown members are ignored. But if a misspelt "status" were, an error answer would be signed.
    const meant = nearest(name, [key, ...known]);
    if (meant !== undefined) throw new WrongShape(`returned a member "${name}", did you mean "${meant}"?`);
  }
  return result;
}

/** Reads what `onHttpRequest` returned. */
export function takeRejection(result: unknown, plugin: string): Refusal | undefined {
  const members = membersWith('reject', result, ['status', 'message']);
  const { reject, status = 403, message = `Request rejected by plugin "${plugin}"` } = members;
  if (reject === false) return undefined;
  if (reject !== true) throw new WrongShape('"reject" is no boolean');
  if (!isStatus(status, 400)) throw new WrongShape('"status" is no HTTP error status');
  if (typeof message !== 'string') throw new WrongShape('"message" is no string');
  if (message.length > MAX_MESSAGE) throw new WrongShape(`"message" is longer than ${MAX_MESSAGE} characters`);
  return new Refusal(status, message, { reason: `rejected by plugin "${plugin}"` });
}

/** Reads what `onBeforeApiCall` returned. */
export function takeParameters(result: unknown): Parameters {
  const { parameters } = membersWith('parameters', result);
  if (!isRecord(parameters) || !isPlain(parameters)) throw new WrongShape('"parameters" is no object');
  return deepFreeze(JSON.parse(plainText(parameters, MAX_PARAMETERS)) as Parameters);
}

/** Reads what `onAfterApiCall` returned. */
export function takeResponse(result: unknown, current: ApiResponse): ApiResponse {
  const { data, status = current.status } = membersWith('data', result, ['status']);
  if (!isStatus(status, 100)) throw new WrongShape('"status" is no HTTP status');
  return copyOf(status, data, current.request);
}

/** Returns a response with a plugin's own data, copied as plain JSON. @throws WrongShape */
export function copyOf(status: number, data: unknown, request?: OutgoingRequest): ApiResponse {
  return { data: JSON.parse(plainText(data)), status, ...(request && { request }) };
}

/** Reads what `onBeforeSign` returned. */
export function takeData(result: unknown): Hex {
  const { data } = membersWith('data', result);
  if (!isHex(data)) throw new WrongShape('"data" is no hex string of whole bytes');
  if (data.length > MAX_DATA) throw new WrongShape('"data" is longer than 1 MiB');
  return data;
}
