import { Refusal } from '../../../kernel/refusal.ts';
import { raise, revokedProxy, thenable, withGetter } from '../plugin-files.ts';
import { ignore, type Situation } from './situation.ts';

type Make = (situation: Situation) => unknown;

/** An object whose every operation throws. */
function untouchable(): object {
  const traps = [
    ...['apply', 'construct', 'defineProperty', 'deleteProperty', 'get', 'getOwnPropertyDescriptor', 'getPrototypeOf'],
    ...['has', 'isExtensible', 'ownKeys', 'preventExtensions', 'set', 'setPrototypeOf'],
  ];
  const fail = () => raise(new Error('untouchable'));
  return new Proxy(() => undefined, Object.fromEntries(traps.map((trap) => [trap, fail])));
}

/** A promise that tells whoever waits for it something else. */
function lyingPromise(): Promise<unknown> {
  return Object.defineProperty(Promise.resolve(1), 'then', { value: () => raise(new Error('no promise')) });
}

const brand = Symbol.for('signed-data-proxy.refusal');

/** Of no stage, or of another one. */
export const wrongShapes: readonly Make[] = [
  ...[null, false, true, 0, 1, Number.NaN, '', 'text', '0x', '0x0', '0x00', 7n, Symbol('s'), [], [1], {}].map(
    (value) => () => value,
  ),
  () => () => 1,
  () => new Date(),
  () => new Map([['status', 200]]),
  () => ({ status: 99, body: 1 }),
  () => ({ status: 200, body: 'no JSON' }),
  () => ({ status: 200, data: undefined }),
  () => ({ status: 204, data: 1, text: 'no JSON' }),
  () => ({ status: 500, data: 1 }),
  () => ({ reject: 'yes' }),
  () => ({ parameters: new Map() }),
  () => ({ data: '0x0' }),
  () => ({ bytes: '0x01', field: 'node', value: '0x01' }),
  () => ({ bytes: '0x01', field: 'data', value: Number.NaN }),
  () => ({ node: '0x01', signature: '0x02' }),
  () => ({ node: `0x${'22'.repeat(20)}`, signature: `0x${'33'.repeat(65)}`, extra: { node: 1 } }),
  () => ({ id: 'x', api: 1 }),
  () => ({ 'content-length': '1' }),
  () => ({ 'x-a': 'b\r\nc: d' }),
  () => ({ json: '{}' }),
  () => ({ json: 'no JSON' }),
  () => new Error('returned, not thrown'),
  () => new Refusal(418, 'returned, not thrown'),
];

/** What is at war with whoever reads it. None takes for ever. */
export const hostileValues: readonly Make[] = [
  untouchable,
  revokedProxy,
  lyingPromise,
  () => withGetter('then', () => raise(new Error('no then'))),
  ...['status', 'data', 'body', 'json', 'bytes', 'node', 'reject', 'parameters', 'id', 'headers'].map(
    (name) => () => withGetter(name, () => raise(new Error(`no ${name}`))),
  ),
  ({ leave }) => withGetter('status', () => leave()),
  ({ sound }) => thenable((resolve: (value: unknown) => void) => resolve(sound())),
  () => thenable(() => raise(new Error('no promise'))),
  () => thenable((_: unknown, reject: (error: unknown) => void) => reject(undefined)),
  () =>
    thenable((resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
      resolve(1);
      reject(new Error('both'));
      resolve(2);
    }),
  () => thenable((resolve: (value: unknown) => void) => resolve(thenable(() => raise(new Error('inside'))))),
  function* () {
    yield 1;
    yield raise(new Error('no generator'));
  },
  async function* () {
    yield raise(new Error('no generator'));
  },
  () => ({ toJSON: () => raise(new Error('no JSON')), data: { toJSON: () => raise(new Error('no JSON')) } }),
  () => {
    const circle: Record<string, unknown> = { status: 200 };
    circle.data = circle;
    return circle;
  },
  () => ({ status: 200, body: { [Symbol.asyncIterator]: () => raise(new Error('no stream')) } }),
  () => ({ status: 200, headers: { 'content-type': 'text/plain' }, body: { [Symbol.asyncIterator]: () => ({}) } }),
];

/** What is thrown without being an error. */
export const oddErrors: readonly Make[] = [
  ...[undefined, null, 0, false, 'text', Symbol('s'), 7n].map((value) => () => value),
  untouchable,
  revokedProxy,
  () => thenable(ignore),
  () => withGetter('message', () => raise(new Error('no message'))),
  () => withGetter('stack', () => raise(new Error('no stack'))),
  () => Object.assign(new Error('text'), { stack: { toString: () => raise(new Error('no text')) } }),
];

/** Refusals, and what passes for some. */
export const refusalsOf: readonly Make[] = [
  () => new Refusal(400, 'No'),
  () => new Refusal(401, 'No', { headers: { 'WWW-Authenticate': 'Odd' } }),
  () => new Refusal(429, 'No'),
  () => new Refusal(503, 'No', { body: { why: 'because' }, reason: 'a reason', fault: true }),
  () => Object.assign(new Refusal(599, 'No'), { upstreamStatus: 404 }),
  () => ({ [brand]: true }),
  () => ({ [brand]: true, status: 200, message: 'No' }),
  () => ({ [brand]: true, status: '500', message: 'No' }),
  () => ({ [brand]: true, status: 1000, message: 'No' }),
  () => ({ [brand]: true, status: 400, message: untouchable() }),
  () => ({ [brand]: true, status: 400, message: 'No', body: untouchable(), headers: { a: 'b\r\nc' } }),
  () => Object.defineProperty({ [brand]: true }, 'status', { get: () => raise(new Error('no status')) }),
];
