import { isFiniteJson, parseMarked, unmarkedJson } from '../../lib/json/numbers.ts';
import { typesIn } from '../../lib/json/value.ts';
import { hint } from '../../lib/suggest.ts';
import { clipped } from '../../lib/text.ts';
import type { Endpoint, Json, Parameters } from '../../plugins-sdk/index.ts';
import { keys, reservedParameters } from '../../plugins-sdk/keys.ts';
import { complain, print } from '../../service/terminal.ts';
import { align, escapeUnprintable } from '../../service/text.ts';
import { type Outcome, tryEndpoint } from '../../service/trial.ts';
import { type Given, UsageError } from '../arguments.ts';
import { printJson } from '../json-output.ts';
import { givenService } from './given-config.ts';

/** The most characters of a value, and lines of an answer, that are shown. */
const MAX_TEXT = 60;
const MAX_LINES = 100;
/** The most characters of a request's body that are shown. */
const MAX_BODY = 1000;

const OPTION = 'option --param <name=text>';

/** Asks an upstream once, and prints its answer, the paths in it, and the value that would be signed for each. */
export async function tryOnce(given: Given, name: string): Promise<void> {
  const service = await givenService(given);
  const texts = parametersIn(given.all('param'));
  const isJson = given.flag('json');
  const warn = (message: string) => void complain('warning', [message]);
  const log = { debug: () => undefined, info: () => undefined, warn, error: warn };
  const warnings: string[] = [];
  const parameters = (endpoint: Endpoint) => {
    warnings.push(...unknownIn(endpoint, texts));
    // Printed before the request, which fails if a misspelt parameter is required.
    if (!isJson) warnings.forEach(warn);
    return parametersFor(endpoint, texts);
  };
  const { request, data, values, own } = await tryEndpoint(service, name, parameters, log);
  if (isJson) {
    const more = { ...(own && { own }), ...(warnings.length > 0 && { warnings }) };
    return printJson({ ok: true, request, data, values, ...more }, unmarkedJson);
  }
  const lines = unmarkedJson(JSON.stringify(data, undefined, 2)).split('\n');
  const more = lines.length > MAX_LINES ? [`… ${lines.length - MAX_LINES} more lines`] : [];
  const rows = values.map((each) => [
    each.path,
    clipped(unmarkedJson(JSON.stringify(each.value)), MAX_TEXT),
    each.type,
    each.times ?? '',
    outcome(each),
  ]);
  const shown = [
    `${request.method} ${request.url}`,
    ...(request.body === undefined ? [] : [clipped(request.body, MAX_BODY)]),
    '',
    ...lines.slice(0, MAX_LINES),
    ...more,
    ...(rows.length === 0 ? [] : ['', ...align([['PATH', 'VALUE', 'TYPE', 'TIMES', 'WOULD SIGN'], ...rows])]),
    ...(own === undefined ? [] : ['', `As configured, ${own.type} of ${own.path}: ${outcome(own)}`]),
  ];
  await print(shown.map((line) => `${escapeUnprintable(line)}\n`).join(''));
}

/** Splits options into names and texts. @throws UsageError for an invalid option, and for a name that is given twice. */
function parametersIn(texts: readonly string[]): (readonly [string, string])[] {
  const names = new Set<string>();
  return texts.map((text) => {
    const end = text.indexOf('=');
    if (end < 1) throw new UsageError(`${OPTION} must be a name and what to give it, such as symbol=ETH`);
    const name = text.slice(0, end);
    if (names.has(name)) throw new UsageError(`${OPTION} gives "${name}" more than once`);
    names.add(name);
    return [name, text.slice(end + 1)];
  });
}

function outcome({ signs, refused }: Outcome): string {
  return signs === undefined ? `nothing: ${refused}` : clipped(signs, MAX_TEXT);
}

/** Returns warnings of unknown parameters: the endpoint ignores a misspelt name, and asks with the default. */
function unknownIn(endpoint: Endpoint, texts: readonly (readonly [string, string])[]): string[] {
  const declared = keys.parameters.of(endpoint) ?? [];
  const free = declared.flatMap(({ name, fixed }) => (fixed === undefined ? [name] : []));
  const names = [...free, ...reservedParameters(endpoint)];
  const unknown = texts.filter(([name]) => !names.includes(name));
  return unknown.map(([name]) => `the endpoint takes no parameter "${name}"${hint(name, names, 'parameters')}`);
}

/** Returns the parameters' values: JSON for a parameter in the body or of another type than string, else the text. */
function parametersFor(endpoint: Endpoint, texts: readonly (readonly [string, string])[]): Parameters {
  const declared = keys.parameters.of(endpoint) ?? [];
  return Object.fromEntries(
    texts.map(([name, text]) => {
      const { schema = {}, in: place } = declared.find((each) => each.name === name) ?? {};
      const types = typesIn(schema);
      const isText = types.length === 0 ? place !== 'body' : types.includes('string');
      return [name, isText ? text : jsonOr(text)];
    }),
  );
}

function jsonOr(text: string): Json {
  try {
    return isFiniteJson(JSON.parse(text)) ? parseMarked(text) : text;
  } catch {
    return text;
  }
}
