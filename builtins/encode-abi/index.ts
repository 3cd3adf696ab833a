import { setImmediate } from 'node:timers/promises';
import { error, warning } from '../../plugins-sdk/checks.ts';
import { inexactParameters } from '../../plugins-sdk/context-keys.ts';
import {
  type ApiResponse,
  ContextKey,
  definePlugin,
  type Encoded,
  type Endpoint,
  type EndpointDraft,
  type Exchange,
  type Finding,
  type Json,
  type Parameters,
  Refusal,
  toHex,
} from '../../plugins-sdk/index.ts';
import type { Awaitable } from '../../plugins-sdk/kernel.ts';
import { keys } from '../../plugins-sdk/keys.ts';
import { STEP } from '../../plugins-sdk/lib/json/turns.ts';
import { LongResponse } from '../../plugins-sdk/results/long-response.ts';
import { exactNumbersAt, type Found, valuesAt } from './exact-number.ts';
import { misreadIndices, withoutNames } from './filters.ts';
import {
  BudgetError,
  type CompiledPath,
  compilePath,
  fullBudget,
  type Match,
  PathError,
  splitList,
} from './json-path/index.ts';
import { encodingKey } from './key.ts';
import { describeAbi } from './openapi.ts';
import {
  checkPinned,
  cuts,
  type Field,
  type Origin,
  type Pinned,
  type Plan,
  PlanError,
  parseMultipliers,
  parsePaths,
  parseTypes,
  planOf,
} from './plan.ts';
import { encodeValues, type Item, ValueError } from './values.ts';

/** A field that the operator leaves to the requester. */
const DELEGATED = '*';
const FIELDS: readonly Field[] = ['type', 'path', 'times'];

/** Paths that a recommendation names. */
const MOST_NAMED = 3;

/** What is known of an endpoint's encoding before a request comes. */
interface Prepared {
  readonly pinned: Pinned;
  readonly delegated: readonly Field[];
  /** The whole plan, where nothing is delegated. */
  readonly plan: Plan | undefined;
}

function readField(field: Field, text: string, origin: Origin): Pinned {
  if (field === 'type') return { types: parseTypes(text, origin) };
  if (field === 'path') return { paths: parsePaths(text, origin) };
  return { times: parseMultipliers(text, origin) };
}

function complete({ types, paths, times, exact = false }: Pinned): Plan {
  if (types === undefined || paths === undefined) throw new Error('an encoding has a type and a path');
  return planOf({ types, paths, times, exact });
}

function delegatedOf(endpoint: Pick<Endpoint, 'own' | 'shared'>): readonly Field[] {
  const encoding = keys.encoding.of(endpoint);
  return FIELDS.filter((field) => encoding?.[field] === DELEGATED);
}

/** @throws PlanError */
function prepare(endpoint: Pick<Endpoint, 'own' | 'shared'>): Prepared | undefined {
  const encoding = keys.encoding.of(endpoint);
  if (encoding === undefined) return undefined;
  const delegated = delegatedOf(endpoint);
  const texts = FIELDS.flatMap((field): [Field, string][] => {
    const text = encoding[field];
    return text === undefined || text === DELEGATED ? [] : [[field, text]];
  });
  const read = texts.map(([field, text]) => readField(field, text, 'operator'));
  const pinned: Pinned = Object.assign({ exact: encoding.exact }, ...read);
  checkPinned(pinned, delegated.includes('times'));
  return { pinned, delegated, plan: delegated.length === 0 ? complete(pinned) : undefined };
}

/** Whether a path matches one value at most as long as the upstream lists each name once. */
function asksByName({ text, definite }: CompiledPath): boolean {
  return !definite && compilePath(withoutNames(text), 'operator').definite;
}

function checkPaths({ path }: EndpointDraft, paths: readonly CompiledPath[]): Finding[] {
  const several = paths.filter((path) => !path.definite && !asksByName(path)).map(({ text }) => text);
  const messages = [
    ...paths.flatMap(({ text }) => misreadIndices(text)),
    ...paths
      .filter(({ text }) => !text.startsWith('$'))
      .map(({ text }) => `${text} asks the same as $.${text}, but makes another endpoint ID: write $.${text}`),
    ...(several.length === 0
      ? []
      : [`${several.join(', ')} may match several values: the first in the order of the answer is signed`]),
  ];
  return messages.map((message) => warning(`${path}.encoding.path`, message));
}

/** Said by `config validate` alone: nothing else could be written, so a start need not say it again. */
function recommend(endpoints: readonly Endpoint[]): string | undefined {
  const paths = endpoints.flatMap((endpoint) => prepare(endpoint)?.pinned.paths ?? []);
  const named = [...new Set(paths.filter(asksByName).map(({ text }) => text))];
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

function check(endpoint: EndpointDraft): Finding[] {
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

function reservedText(field: Field, parameters: Parameters, exchange: Exchange): string {
  const name = `_${field}`;
  const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
  if (value === undefined || value === null) throw new Refusal(400, `Endpoint requires \`${name}\` request parameter`);
  if (typeof value === 'string') return value;
  // A plugin may have replaced what the client sent.
  const isExact = value !== exchange.parameters[name] || inexactParameters.get(exchange)?.has(name) !== true;
  if (field === 'times' && typeof value === 'number' && isExact) return String(value);
  throw new Refusal(400, `Invalid \`${name}\` request parameter`, {
    reason: isExact ? 'no string' : 'a rounded number',
  });
}

/** The plan of a request that chooses a part of it. @throws Refusal 400 */
function choose({ pinned, delegated }: Prepared, parameters: Parameters, exchange: Exchange): Plan {
  const texts = delegated.map((field) => reservedText(field, parameters, exchange));
  try {
    const chosen = delegated.map((field, index) => readField(field, texts[index] ?? '', 'requester'));
    return complete(Object.assign({}, pinned, ...chosen));
  } catch (cause) {
    if (!(cause instanceof PlanError)) throw cause;
    throw blame(cause, delegated);
  }
}

/** Blames the requester for a field that was delegated to it, never for one that the operator pinned. */
function blame({ field, message }: PlanError, delegated: readonly Field[]): Refusal {
  const culprit = delegated.includes(field) ? field : delegated[0];
  return new Refusal(400, `Invalid \`_${culprit}\` request parameter`, { reason: message });
}

function failed(reason: string): Refusal {
  return new Refusal(502, 'API call failed', { reason });
}

/** @throws Refusal where a path finds nothing, PathError */
function find(plan: Plan, data: Json, pathDelegated: boolean): readonly Match[] {
  const budget = fullBudget();
  return plan.map(({ path }) => required(path.first(data, budget), path, pathDelegated));
}

function required<T>(found: T | undefined, path: CompiledPath, pathDelegated: boolean): T {
  if (found !== undefined) return found;
  // The operator's own path is worth a warning in the log; a client's is not, nor is its text.
  throw new Refusal(502, `No value found at path: ${path.text}`, { fault: !pathDelegated });
}

/** Matches, among others, every number that a double may round: it has 16 digits, or an exponent. */
const MAY_BE_INEXACT = /\d[\d.]{15}|\d[eE]/;

/** Matches with the digits of those that are numbers. The text is read once for all, and not at all if a double tells as much. */
function withDigits(matches: readonly Match[], json: string | Buffer | undefined): readonly Found[] {
  const locations = matches.map(({ value, location }) => (typeof value === 'number' ? location : undefined));
  const isNeeded =
    json !== undefined &&
    locations.some((location) => location !== undefined) &&
    (typeof json !== 'string' || MAY_BE_INEXACT.test(json));
  const tokens = isNeeded ? exactNumbersAt(json, locations) : [];
  return matches.map(({ value }, i) => ({ value, token: tokens[i] }));
}

/** @throws ValueError */
function encoded(plan: Plan, found: readonly Found[]): Encoded {
  // Spread, the plan would cost more than its encoding.
  const items = plan.map(
    ({ type, times, exact }, i): Item => ({ type, times, exact, value: found[i]?.value, token: found[i]?.token }),
  );
  const value = toHex(encodeValues(items));
  return { bytes: value, field: 'data', value };
}

/** @throws Refusal */
function encode(plan: Plan, response: ApiResponse, pathDelegated: boolean): Awaitable<Encoded> {
  const fail = (cause: unknown): never => {
    throw refusalOf(cause, pathDelegated);
  };
  try {
    if (LongResponse.is(response)) {
      const { bytes } = response;
      const places = plan.flatMap(({ path }) => (path.place === undefined ? [] : [path.place]));
      if (places.length < plan.length) return encodeParsed(plan, response, pathDelegated).catch(fail);
      const values = valuesAt(bytes, places);
      const found = plan.map(({ path }, i) => required(values[i], path, pathDelegated));
      return inNextTurn(bytes, encoded(plan, found));
    }
    if (response.text === '') throw new Refusal(502, 'API returned no data to encode');
    return encoded(plan, withDigits(find(plan, response.data, pathDelegated), response.text));
  } catch (cause) {
    return fail(cause);
  }
}

/** Finds the values where a path may lead anywhere. */
async function encodeParsed(plan: Plan, response: LongResponse, pathDelegated: boolean): Promise<Encoded> {
  const { bytes } = response;
  const data = await inNextTurn(bytes, await response.parsed());
  const matches = await inNextTurn(bytes, find(plan, data, pathDelegated));
  return inNextTurn(bytes, encoded(plan, withDigits(matches, bytes)));
}

/** Gives the steps of a long answer turns of the event loop of their own, and likewise the next stages, which hash and sign. */
function inNextTurn<T>({ length }: Buffer, value: T): Awaitable<T> {
  return length > STEP ? setImmediate(value) : value;
}

function refusalOf(cause: unknown, pathDelegated: boolean): unknown {
  if (cause instanceof BudgetError && pathDelegated) {
    return new Refusal(400, 'Invalid `_path` request parameter', { reason: cause.message });
  }
  return cause instanceof ValueError || cause instanceof PathError ? failed(cause.message) : cause;
}

/** Extracts values by JSONPath and ABI-encodes them, as the operator pinned it or the requester chose. */
export const encodeAbiPlugin = definePlugin({
  name: 'encode-abi',
  budget: 'none',
  keys: [encodingKey],
  identity: {
    encoding: (endpoint) => {
      const encoding = keys.encoding.of(endpoint);
      if (encoding === undefined) return null;
      return { type: encoding.type, path: encoding.path, times: encoding.times ?? null };
    },
  },
  check: ({ endpoints }) => endpoints.flatMap(check),
  recommend,
  openapi: () => describeAbi(delegatedOf),
  setup({ endpoints }) {
    const prepared = new Map(endpoints.map((endpoint) => [endpoint, prepare(endpoint)]));
    const chosen = new ContextKey<Plan>('encoding plan');
    return {
      hooks: {
        validate: (parameters, exchange) => {
          const known = prepared.get(exchange.endpoint);
          if (known !== undefined && known.plan === undefined)
            chosen.set(exchange, choose(known, parameters, exchange));
        },
        encode: (response, _, exchange) => {
          const known = prepared.get(exchange.endpoint);
          if (known === undefined) return undefined;
          return encode(known.plan ?? chosen.require(exchange), response, known.delegated.includes('path'));
        },
      },
    };
  },
});
