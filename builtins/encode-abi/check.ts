import { type EndpointDraft, error, type Finding, warning } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import { isFraction } from '../shared/decimal.ts';
import type { CompiledPath } from '../shared/json-path/index.ts';
import { type Lists, PlanError } from './lists.ts';
import { isInteger, multiplierOf, prepare } from './plan.ts';

/** Most paths that a recommendation names. */
const MOST_NAMED = 3;
const NO_PARAMETER = 'holds braces that stand for no parameter: they are a part of the name or text';
const REFUSE = 'exact: true refuses what would be cut';

/** Checks the encoding of an endpoint. */
export function* check(endpoint: EndpointDraft): Iterable<Finding> {
  const at = `${endpoint.path}.encoding`;
  try {
    const { pinned = {}, delegated = [] } = prepare(endpoint) ?? {};
    for (const message of pathWarnings(pinned)) yield warning(`${at}.path`, message);
    for (const message of timesWarnings(pinned)) yield warning(`${at}.times`, message);
    const bare = delegated.includes('times') ? undefined : typeWithoutTimes(pinned);
    if (bare !== undefined)
      yield warning(`${at}.type`, `${bare} without times cuts fractions: 2064.25 is signed as 2064; ${REFUSE}`);
  } catch (cause) {
    if (!(cause instanceof PlanError)) throw cause;
    yield error(`${at}.${cause.field}`, cause.message);
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

function* pathWarnings({ paths = [], combine }: Lists): Iterable<string> {
  for (const path of paths) {
    yield* path.misread.map(misread);
    if (!path.text.startsWith('$')) yield spelling(path);
    if (path.hasBraces) yield `${path.text} ${NO_PARAMETER}`;
  }
  const several = paths.filter(({ onceByName }) => !onceByName).map(({ text }) => text);
  if (several.length > 0 && combine === undefined)
    yield `${several.join(', ')} may match several values: the first in the order of the answer is signed`;
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

function* timesWarnings({ times = [], exact }: Lists): Iterable<string> {
  const factors = times.filter((factor) => factor !== undefined);
  if (factors.some(({ digits }) => digits === '')) yield 'makes every value 0';
  if (factors.some(({ negative }) => negative)) yield 'changes the sign of every value';
  // `exact: false` says that it is meant so.
  if (exact === undefined && factors.some(isFraction))
    yield `is below 1, which cuts digits: small values are signed as 0; ${REFUSE}`;
}

/** Returns an integer type whose fractions are cut without a word in the config about it. */
function typeWithoutTimes(lists: Lists): string | undefined {
  if (lists.exact !== undefined) return undefined;
  return lists.types?.find((type, i) => isInteger(type) && multiplierOf(lists, i) === undefined)?.name;
}
