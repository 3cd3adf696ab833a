import { type EndpointDraft, error, type Finding, warning } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import { isFraction } from '../shared/decimal.ts';
import type { CompiledPath } from '../shared/json-path/index.ts';
import { prepare } from './endpoint-plan.ts';
import { type Field, PlanError } from './fault.ts';
import { isInteger, type Lists, multiplierOf } from './plan.ts';

/** Most paths that a recommendation names. */
const MOST_NAMED = 3;
const NO_PARAMETER = 'holds braces that stand for no parameter: they are a part of the name or text';
const REFUSE = 'exact: true refuses what would be cut';

/** Checks the encoding of an endpoint. */
export function check(endpoint: EndpointDraft): Finding[] {
  const at = (field: Field) => `${endpoint.path}.encoding.${field}`;
  try {
    const { pinned = {}, delegated = [] } = prepare(endpoint) ?? {};
    return [
      ...pathWarnings(pinned).map((message) => warning(at('path'), message)),
      ...timesWarnings(pinned).map((message) => warning(at('times'), message)),
      ...(delegated.includes('times') ? [] : typeWarnings(pinned)).map((message) => warning(at('type'), message)),
    ];
  } catch (cause) {
    if (!(cause instanceof PlanError)) throw cause;
    return [error(at(cause.field), cause.message)];
  }
}

/** Returns advice for `config validate` alone. There is no better way to write such paths, so a start does not repeat it. */
export function recommend(endpoints: readonly Endpoint[]): string | undefined {
  const pinned = endpoints.flatMap((endpoint) => prepare(endpoint)?.pinned ?? []);
  const paths = pinned.flatMap((lists) => (lists.combine === undefined ? (lists.paths ?? []) : []));
  const byName = paths.filter(({ definite, onceByName }) => onceByName && !definite);
  const named = [...new Set(byName.map(({ text }) => text))];
  if (named.length === 0) return undefined;
  const others = named.length > MOST_NAMED ? ` and ${named.length - MOST_NAMED} more` : '';
  return `${named.slice(0, MOST_NAMED).join(', ')}${others}: make sure that the upstream lists each name once, since the first entry is signed`;
}

function pathWarnings({ paths = [], combine }: Lists): string[] {
  const several = paths.filter(({ onceByName }) => !onceByName).map(({ text }) => text);
  const ofAll = `${several.join(', ')} may match several values: the first in the order of the answer is signed`;
  return [
    ...paths.flatMap((path) => path.misread.map(misread)),
    ...paths.filter(({ text }) => !text.startsWith('$')).map(spelling),
    ...paths.filter(({ hasBraces }) => hasBraces).map(({ text }) => `${text} ${NO_PARAMETER}`),
    ...(several.length === 0 || combine !== undefined ? [] : [ofAll]),
  ];
}

/** Suggests the index that an author may have meant by a name. */
function misread(name: string): string {
  const place = Math.abs(Number(name));
  const meant = name.startsWith('-') && place > 0 ? `-${place}:${place === 1 ? '' : 1 - place}` : String(place);
  const element = meant === '-1:' ? 'the last element' : 'that element';
  return `[${name}] is a name, not an index: ${element} is [${meant}]`;
}

function spelling({ text }: CompiledPath): string {
  return text.startsWith('/')
    ? `${text} is a name, not a JSON Pointer: write $${text.replaceAll('/', '.')}`
    : `${text} asks the same as $.${text}, but makes another endpoint ID: write $.${text}`;
}

function timesWarnings({ times = [], exact }: Lists): string[] {
  const factors = times.filter((factor) => factor !== undefined);
  return [
    ...(factors.some(({ digits }) => digits === '') ? ['makes every value 0'] : []),
    ...(factors.some(({ negative }) => negative) ? ['changes the sign of every value'] : []),
    // `exact: false` says that it is meant so.
    ...(exact === undefined && factors.some(isFraction)
      ? [`is below 1, which cuts digits: small values are signed as 0; ${REFUSE}`]
      : []),
  ];
}

function typeWarnings(lists: Lists): string[] {
  const bare = lists.types?.find((type, i) => isInteger(type) && multiplierOf(lists, i) === undefined);
  if (bare === undefined || lists.exact !== undefined) return [];
  return [`${bare.name} without times cuts fractions: 2064.25 is signed as 2064; ${REFUSE}`];
}
