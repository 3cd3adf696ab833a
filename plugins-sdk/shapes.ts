import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isHex } from './hex.ts';
import type { Reply, Shapes } from './kernel.ts';

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const isString = (value: unknown) => typeof value === 'string';

function has(value: unknown, key: string, check: (member: unknown) => boolean): boolean {
  return isObject(value) && check(Reflect.get(value, key));
}

function isJsonObject(value: unknown): boolean {
  try {
    return isObject(value) && JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

/** Frozen headers are looked at once; node looks at each again. */
const sound = new WeakSet<object>();

/** Whether HTTP can carry them all. */
function areHeaders(value: unknown): boolean {
  if (isObject(value) && sound.has(value)) return true;
  try {
    for (const [name, text] of Object.entries(isObject(value) ? value : { '': value })) {
      validateHeaderName(name);
      validateHeaderValue(name, text);
    }
    if (isObject(value) && Object.isFrozen(value)) sound.add(value);
    return true;
  } catch {
    return false;
  }
}

function isReply(value: unknown): value is Reply {
  const isStatus = (status: unknown) => Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599;
  const fitting = (headers: unknown) => headers === undefined || areHeaders(headers);
  return has(value, 'status', isStatus) && has(value, 'body', isString) && has(value, 'headers', fitting);
}

/** What plugins may return from the stages that have no adapter, and from routes. */
export const shapes: Shapes = {
  admit: (value) => value === true,
  resolve: (value) => has(value, 'id', isHex),
  read: isObject,
  authenticate: (value) => value === true,
  validate: isObject,
  deliver: isReply,
  lookup: (value) => has(value, 'json', isString),
  callApi: (value) => has(value, 'status', Number.isInteger) && has(value, 'data', (data) => data !== undefined),
  encode: (value) => has(value, 'bytes', isHex) && has(value, 'field', isString),
  encrypt: isHex,
  sign: (value) => has(value, 'node', isHex) && has(value, 'signature', isHex),
  prove: isJsonObject,
  respond: areHeaders,
  route: isReply,
};
