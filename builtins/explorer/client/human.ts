import type { Scaled } from './factor.ts';

/** The greatest exponent of a factor (`times`) that the service accepts, since an integer has no room for more. */
const GREATEST_EXPONENT = 100;

/** Divides an integer by a factor, with every digit exact. @returns undefined if the digits would have no end. */
export function quotient(integer: string, factor: string): string | undefined {
  const [, sign, whole = '', part = '', power = '0'] = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(factor) ?? [];
  const divisor = BigInt(`0${whole}${part}`);
  const exponent = Number(power) - part.length;
  if (divisor === 0n || Math.abs(exponent) > GREATEST_EXPONENT) return undefined;
  const value = BigInt(integer);
  const places = String(divisor).length * 4 + GREATEST_EXPONENT;
  // A divisor with n bits divides 10^n or no power of ten, so there are places enough.
  const grown = (value < 0n ? -value : value) * 10n ** BigInt(places - exponent);
  if (grown % divisor !== 0n) return undefined;
  const digits = String(grown / divisor).padStart(places + 1, '0');
  const cut = digits.length - places;
  const text = `${digits.slice(0, cut)}.${digits.slice(cut)}`.replace(/\.?0*$/, '');
  return value < 0n !== (sign === '-') && value !== 0n ? `-${text}` : text;
}

/** Matches paths whose last name looks like that of a time. */
const MOMENT = /(?:[tT]ime(?:[sS]tamp)?|[dD]ate|_at|[a-z]At|[eE]xpir(?:y|es))['"\]]*$/;

function momentOf(integer: string): string | undefined {
  // Unix time has ten digits in seconds and thirteen in milliseconds, from 2001 to 2286.
  if (!/^[1-9]\d{9}(?:\d{3})?$/.test(integer)) return undefined;
  return utcOf(Number(integer) * (integer.length === 10 ? 1000 : 1));
}

/** Formats a time in UTC. @param milliseconds Unix time within the range of `Date`. */
function utcOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace('T', ' ').replace('.000Z', ' UTC').replace('Z', ' UTC');
}

/**
 * Returns a value in a form for people; undefined if that is the exact value.
 *
 * @param exact the value as `decodeAbi` returns it.
 * @param path its path in the upstream's answer, whose last name tells a time from an amount.
 */
export function humanOf(exact: string, { type, factor }: Scaled, path = ''): string | undefined {
  if (type === 'string') return exact === '""' ? undefined : String(JSON.parse(exact));
  if (!/^u?int/.test(type)) return undefined;
  const number = factor === undefined ? exact : quotient(exact, factor);
  const human = (MOMENT.test(path) && momentOf(number ?? '')) || number;
  return human === exact ? undefined : human;
}

/**
 * Returns a time, and how long ago it was.
 * @param timestamp Unix seconds; may be outside the range of `Date`.
 */
export function timeText(timestamp: number): string {
  if (Number.isNaN(new Date(timestamp * 1000).getTime())) return `${timestamp} (Unix seconds)`;
  const age = Math.round(Date.now() / 1000 - timestamp);
  const seconds = Math.abs(age);
  // A unit is used from two of it on.
  const [size, unit] =
    seconds < 120 ? [1, 's'] : seconds < 7200 ? [60, 'min'] : seconds < 172_800 ? [3600, 'h'] : [86_400, 'days'];
  const span = `${Math.floor(seconds / size)} ${unit}`;
  return `${utcOf(timestamp * 1000)}, ${age >= 0 ? `${span} ago` : `${span} from now by this machine’s clock`}`;
}
