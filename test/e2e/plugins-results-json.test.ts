/** A hook's result that JSON cannot carry unchanged drops the request, and the log names the reason. */
import { raise, withGetter } from '../support/plugin-files.ts';
import { ANYTHING, at, itDrops, proxies, type Said, type Values, withPuppet, wrapped } from '../support/puppet.ts';

const puppet = await withPuppet();

/** `depth` levels of an array that holds the level below twice: 2^depth values out of a few objects. */
function exponential(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = [value, value];
  return value;
}

function cyclic(): object {
  const circle: Record<string, unknown> = {};
  circle.self = { circle };
  return circle;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = { value };
  return value;
}

class Instance {
  readonly price = 1;
}

const TOO_MUCH = 'is too deep, too large or in a cycle';
const FUNCTION = 'holds a function, which JSON cannot carry';

/** Values that JSON cannot carry unchanged, and that are no plain objects. */
const noObjects: Said = {
  'holds a number, which JSON cannot carry': { NaN: () => Number.NaN, Infinity: () => Number.POSITIVE_INFINITY },
  'holds a bigint, which JSON cannot carry': { 'a bigint': () => 1n },
  'holds a symbol, which JSON cannot carry': { 'a symbol': () => Symbol('x') },
  [FUNCTION]: { 'a function': () => () => 1 },
  'holds a class instance': {
    'a date': () => new Date(),
    'a map': () => new Map(),
    'a buffer': () => Buffer.from('x'),
    'an error': () => new Error('LEAK'),
    'a promise': () => Promise.resolve(1),
    'a boxed number': () => Object(1),
    'a class instance': () => new Instance(),
  },
  [TOO_MUCH]: {
    'an exponential structure': () => exponential(64),
    'an array of four thousand million holes': () => new Array(2 ** 32 - 1),
  },
};

/** The same of plain objects. */
const objects: Said = {
  [FUNCTION]: { 'a toJSON method': () => ({ toJSON: () => 1 }) },
  [TOO_MUCH]: {
    'a cycle': cyclic,
    'nesting too deep': () => nested(1000),
    'nesting that would end the stack': () => nested(100_000),
  },
  LEAK: {
    'a getter that throws': () => withGetter('price', () => raise(new Error('LEAK'))),
  },
  [ANYTHING]: proxies,
};

const mapped = (said: Said, change: (values: Values) => Values): Said =>
  Object.fromEntries(Object.entries(said).map(([reason, values]) => [reason, change(values)]));
const inValue = (values: Values) => wrapped('a value', (q) => ({ parameters: { q } }), values);
const inParameters = (values: Values) => at('parameters', values);
const inData = (values: Values) => at('data', values);

const noParameters = Object.assign({}, ...Object.values(noObjects).map(inParameters));
itDrops(
  puppet,
  'onBeforeApiCall',
  { '"parameters" is no object': noParameters },
  mapped(objects, inParameters),
  mapped(noObjects, inValue),
  mapped(objects, inValue),
);
itDrops(puppet, 'onAfterApiCall', mapped(noObjects, inData), mapped(objects, inData));
