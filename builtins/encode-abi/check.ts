import { type EndpointDraft, error, type Finding, keys, warning } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import { DELEGATED, prepare } from './endpoint-plan.ts';
import { type CompiledPath, splitList } from './json-path/index.ts';
import { cuts, PlanError } from './plan.ts';

/** Paths that a recommendation names. */
const MOST_NAMED = 3;

/** What an author may have meant by a name that looks like an index. */
function misread(name: string): string {
  const place = Math.abs(Number(name));
  const meant = name.startsWith('-') && place > 0 ? `-${place}:${place === 1 ? '' : 1 - place}` : String(place);
  const element = meant === '-1:' ? 'the last element' : 'that element';
  return `[${name}] is a name, not an index: ${element} is [${meant}]`;
}

function checkPaths({ path }: EndpointDraft, paths: readonly CompiledPath[]): Finding[] {
  const several = paths.filter(({ onceByName }) => !onceByName).map(({ text }) => text);
  const messages = [
    ...paths.flatMap((path) => path.misread.map(misread)),
    ...paths
      .filter(({ text }) => !text.startsWith('$'))
      .map(({ text }) =>
        text.startsWith('/')
          ? `${text} is a name, not a JSON Pointer: write $${text.replaceAll('/', '.')}`
          : `${text} asks the same as $.${text}, but makes another endpoint ID: write $.${text}`,
      ),
    ...(several.length === 0
      ? []
      : [`${several.join(', ')} may match several values: the first in the order of the answer is signed`]),
  ];
  return messages.map((message) => warning(`${path}.encoding.path`, message));
}

/** Said by `config validate` alone: nothing else could be written, so a start need not say it again. */
export function recommend(endpoints: readonly Endpoint[]): string | undefined {
  const paths = endpoints.flatMap((endpoint) => prepare(endpoint)?.pinned.paths ?? []);
  const named = [
    ...new Set(paths.filter(({ definite, onceByName }) => onceByName && !definite).map(({ text }) => text)),
  ];
  if (named.length === 0) return undefined;
  const others = named.length > MOST_NAMED ? ` and ${named.length - MOST_NAMED} more` : '';
  return `${named.slice(0, MOST_NAMED).join(', ')}${others}: make sure that the upstream lists each name once, since the first entry is signed`;
}

function checkTimes(endpoint: EndpointDraft): Finding[] {
  const factors = splitList(keys.encoding.of(endpoint)?.times ?? '').filter(
    (text) => text !== '' && text !== DELEGATED,
  );
  const at = `${endpoint.path}.encoding.times`;
  return [
    ...(factors.some((text) => Number(text) === 0) ? [warning(at, 'makes every value 0')] : []),
    ...(factors.some((text) => Number(text) < 0) ? [warning(at, 'changes the sign of every value')] : []),
  ];
}

export function check(endpoint: EndpointDraft): Finding[] {
  try {
    const prepared = prepare(endpoint);
    if (prepared === undefined) return [];
    const { pinned, delegated } = prepared;
    // Whoever says `exact: false` wants it so.
    const cutting = pinned.exact === undefined ? cuts(pinned, delegated.includes('times')) : [];
    return [
      ...checkPaths(endpoint, pinned.paths ?? []),
      ...checkTimes(endpoint),
      ...cutting.map(([field, message]) => warning(`${endpoint.path}.encoding.${field}`, message)),
    ];
  } catch (cause) {
    if (!(cause instanceof PlanError)) throw cause;
    return [error(`${endpoint.path}.encoding.${cause.field}`, cause.message)];
  }
}
