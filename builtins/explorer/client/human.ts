import type { Scaled } from './factor.ts';

/** Beyond this the service takes no factor (`times`): an integer has no room for it. */
const GREATEST_EXPONENT = 100;

/** @returns the integer divided by the factor, every digit exact; undefined where the digits would have no end. */
export function quotient(integer: string, factor: string): string | undefined {
  const [, sign, whole = '', part = '', power = '0'] = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(factor) ?? [];
  const divisor = BigInt(`0${whole}${part}`);
  const exponent = Number(power) - part.length;
  if (divisor === 0n || Math.abs(exponent) > GREATEST_EXPONENT) return undefined;
  const value = BigInt(integer);
  const places = String(divisor).length * 4 + GREATEST_EXPONENT;
  // A divisor divides a power of ten after as many steps as it has bits, or never: there are places enough.
  const grown = (value < 0n ? -value : value) * 10n ** BigInt(places - exponent);
  if (grown % divisor !== 0n) return undefined;
  const digits = String(grown / divisor).padStart(places + 1, '0');
  const cut = digits.length - places;
  const text = `${digits.slice(0, cut)}.${digits.slice(cut)}`.replace(/\.?0*$/, '');
  return value < 0n !== (sign === '-') && value !== 0n ? `-${text}` : text;
}

/** Names of fields that hold a moment, where a path ends in one. */
const MOMENT = /(?:[tT]ime(?:[sS]tamp)?|[dD]ate|_at|[a-z]At|[eE]xpir(?:y|es))['"\]]*$/;

function momentOf(integer: string): string | undefined {
  // Unix time has ten digits in seconds and thirteen in milliseconds, from 2001 to 2286.
  if (!/^[1-9]\d{9}(?:\d{3})?$/.test(integer)) return undefined;
  return utcOf(Number(integer) * (integer.length === 10 ? 1000 : 1));
}

/** @param milliseconds of Unix time, as far away as a date can be. */
function utcOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace('T', ' ').replace('.000Z', ' UTC').replace('Z', ' UTC');
}

/**
 * A value as a person says it; undefined where the exact value says it already.
 *
 * @param exact as `decodeAbi` has it.
 * @param path where the upstream's answer held it: its last name tells a moment from an amount.
 */
export function humanOf(exact: string, { type, factor }: Scaled, path = ''): string | undefined {
  if (type === 'string') return exact === '""' ? undefined : String(JSON.parse(exact));
  if (!/^u?int/.test(type)) return undefined;
  const number = factor === undefined ? exact : quotient(exact, factor);
  const human = (MOMENT.test(path) && momentOf(number ?? '')) || number;
  return human === exact ? undefined : human;
}

/**
 * A moment, and how long ago it was.
 * @param timestamp Unix seconds; may be further away than a date can be.
 */
export function timeText(timestamp: number): string {
  if (Number.isNaN(new Date(timestamp * 1000).getTime())) return `${timestamp} (Unix seconds)`;
  const age = Math.round(Date.now() / 1000 - timestamp);
  const seconds = Math.abs(age);
  // Two of a unit are the first that it says well.
  const [size, unit] =
    seconds < 120 ? [1, 's'] : seconds < 7200 ? [60, 'min'] : seconds < 172_800 ? [3600, 'h'] : [86_400, 'days'];
  const span = `${Math.floor(seconds / size)} ${unit}`;
  return `${utcOf(timestamp * 1000)}, ${age >= 0 ? `${span} ago` : `${span} from now by this machine’s clock`}`;
}
