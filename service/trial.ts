import { loadConfig } from '../config/index.ts';
import { withMembers, writtenNumbers } from '../config/tree.ts';
import { readConfigFile, type Tree } from '../config/yaml.ts';
import { Pipeline } from '../kernel/pipeline.ts';
import { asRefusal } from '../kernel/refusal.ts';
import { decodeAbi } from '../lib/eth/decode-abi.ts';
import { canonicalJson } from '../lib/json/canonical-json.ts';
import { type Leaf, leavesOf } from '../lib/json/leaves.ts';
import { markedMembers, parseAllMarked, unmarked, unmarkedJson } from '../lib/json/numbers.ts';
import { nearest } from '../lib/text/suggest.ts';
import { redirectTarget, writtenParameters } from '../plugins-sdk/context-keys.ts';
import {
  type ApiResponse,
  type Definition,
  definePlugin,
  type Endpoint,
  type Json,
  type OutgoingRequest,
  type Parameters,
} from '../plugins-sdk/index.ts';
import { keys, reservedParameters } from '../plugins-sdk/keys.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { madeHere } from '../plugins-sdk/results/answers.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import { exchangeOf } from '../plugins-sdk/testing/test-exchange.ts';
import { definitions, idleGeneration, type ServiceOptions } from './index.ts';
import { throwAwaySigning } from './signers.ts';

/** What would be signed, or why nothing. */
export interface Outcome {
  readonly signs?: string;
  readonly refused?: string;
}

/** A value of an upstream's answer, and what would be signed for it. */
export interface TriedValue extends Leaf, Outcome {}

/** What an upstream was asked and answered, and what could be signed of it; in data and values marked texts stand for numbers. */
interface Trial {
  /** Without values of variables. */
  readonly request: { readonly method: string; readonly url: string; readonly body?: string };
  readonly data: Json;
  readonly values: readonly TriedValue[];
  /** What the endpoint signs as it is configured; absent where that is the whole answer, or where the client did not choose. */
  readonly own?: Outcome & Pick<Leaf, 'type' | 'path' | 'times'>;
}

/** What a trial notes on the way. */
interface Seen {
  request?: OutgoingRequest;
  /** Where the upstream leads instead. */
  redirect?: string | undefined;
  /** The JSON text of the answer; absent where a plugin has replaced the data. */
  text?: string | undefined;
}

const MOST_VALUES = 40;
const STOP_TIMEOUT_MS = 1000;
/** Keys that no endpoint that is made of the one that is tried has, unless it needs them. */
const UNSET = ['encoding', 'expect', 'encrypt', 'mode', 'responseMatches'];
/** Makes another endpoint of the one that is tried, also where it is encoded as another one is. */
const ITSELF = { name: 'as configured', in: 'none', fixed: true };
/** Names of the endpoints that are made of the one that is tried. */
const [RAW, OWN, SCALED, PLAIN] = ['raw', 'own', 'scaled', 'plain'];

/**
 * Asks the upstream of an endpoint once, as the service would: with its plugins and bounds, whoever its clients may be. Nothing is
 * signed by the operator's key.
 * @param name as in the log, `api/endpoint`.
 * @param given what it is asked with, in which a marked text stands for each number that a double rounds.
 * @throws Error for an endpoint that is not there, and a refusal in words.
 */
export async function tryEndpoint(
  { file, env }: ServiceOptions,
  name: string,
  given: (endpoint: Endpoint) => Parameters,
  log: Log,
): Promise<Trial> {
  const tree = variantsOf(await readConfigFile(file), name);
  if (typeof tree === 'string') throw new Error(`${file}: there is no endpoint ${name}${tree}`);
  const seen: Seen = {};
  // Inside all that may ask again, or looks at what came.
  const builtins = definitions(throwAwaySigning(), undefined, [once(seen)]);
  const loaded = await loadConfig({ file, tree, env, builtins });
  const generation = idleGeneration(loaded, log);
  const pipeline = new Pipeline(generation.plugins.hooks, {
    now: Date.now,
    serialize: madeHere,
    failed: () => undefined,
  });
  const of = (variant: string) => loaded.endpoints.find((each) => each.name === variant);
  const endpoint = of(OWN) ?? of(RAW);
  if (endpoint === undefined) throw new Error(`${file}: ${name} cannot be tried`);
  const all = Object.entries(given(endpoint));
  const reserved: readonly string[] = reservedParameters(endpoint);
  const isChosen = ([each]: [string, Json]) => reserved.includes(each);
  const chosen = Object.fromEntries(all.filter(isChosen));
  const ask = asker(pipeline, of, Object.fromEntries(all.filter((each) => !isChosen(each))));
  try {
    await generation.start();
    const { rawData = null } = await ask(RAW).catch((error: unknown) => fail(name, error, loaded.hide, seen.redirect));
    const answer = parseAllMarked(seen.text || JSON.stringify(rawData));
    // Its members are sorted.
    const data: Json = JSON.parse(canonicalJson(answer));
    const values: TriedValue[] = [];
    for (const leaf of leavesOf(data, MOST_VALUES, unmarkedJson)) values.push(await tried(leaf, ask));
    const own = encodingOf(endpoint, chosen);
    const request = shownRequest(seen.request, loaded.hide);
    const signs = own && { own: { ...own, ...(await signed(own.type, () => ask(OWN, chosen))) } };
    return { request, data, values, ...signs };
  } finally {
    await generation.stop(STOP_TIMEOUT_MS);
  }
}

type Ask = (variant: string, reserved?: Parameters) => Promise<Readonly<Record<string, Json>>>;

/** @param marked parameters, in which a marked text stands for each number that a double rounds. */
function asker(pipeline: Pipeline, of: (variant: string) => Endpoint | undefined, marked: Parameters): Ask {
  const parameters = unmarked(marked);
  const written = markedMembers(marked);
  return async (variant, reserved = {}) => {
    const exchange = exchangeOf({ parameters: { ...parameters, ...reserved } });
    writtenParameters.set(exchange, written);
    const { body } = await pipeline.serve({ exchange, id: of(variant)?.id ?? '', later: (task) => task() });
    return JSON.parse(Object(body).json ?? String(body));
  };
}

/** What an endpoint signs, with what it leaves to the client; nothing where the client did not choose, or the answer is signed whole. */
function encodingOf(endpoint: Endpoint, chosen: Parameters) {
  const encoding = keys.encoding.of(endpoint);
  const parts = reservedParameters(endpoint).map((name) => [name.slice(1), chosen[name]] as const);
  if (encoding === undefined || parts.some(([, value]) => value === undefined)) return undefined;
  return { ...encoding, ...Object.fromEntries(parts.map(([part, value]) => [part, String(value)])) };
}

/** Keeps the upstream's answer to each request for all who send the same after it. */
function once(seen: Seen): Definition {
  const answers = new Map<string, ApiResponse>();
  return definePlugin({
    name: 'first-answer',
    setup: () => ({
      hooks: {
        callApi: async (request, exchange, { next }) => {
          seen.request ??= request;
          const key = JSON.stringify([request.method, request.url, request.body]);
          try {
            const answer = answers.get(key) ?? (await next());
            answers.set(key, answer);
            return answer;
          } finally {
            seen.redirect ??= redirectTarget.get(exchange);
          }
        },
        encode: ({ text }, _, { endpoint }) => {
          if (endpoint.name === RAW) seen.text = text;
        },
      },
    }),
  });
}

function shownRequest(request: OutgoingRequest | undefined, hide: (text: string) => string): Trial['request'] {
  const { method = '', url = '', body } = request ?? {};
  return { method, url: hide(url), ...(body !== undefined && { body: hide(body) }) };
}

/** @throws Error in the words of the refusal, and with its reason. */
function fail(name: string, error: unknown, hide: (text: string) => string, redirect: string | undefined): never {
  const { status, message, reason } = asRefusal(error);
  const why = reason === undefined ? '' : ` (${reason}${redirect === undefined ? '' : ` to ${redirect}`})`;
  throw new Error(hide(`${name}: ${status} ${message}${why}`));
}

async function tried(leaf: Leaf, ask: Ask): Promise<TriedValue> {
  const { path, type, times } = leaf;
  const chosen = { _type: type, _path: path };
  const asked = () => (times === undefined ? ask(PLAIN, chosen) : ask(SCALED, { ...chosen, _times: times }));
  return { ...leaf, ...(await signed(type, asked)) };
}

async function signed(type: string, ask: () => ReturnType<Ask>): Promise<Outcome> {
  try {
    const { data } = await ask();
    const values = decodeAbi(String(data), type) ?? [];
    return { signs: values.map(({ value }) => value).join(', ') };
  } catch (error) {
    const { message, reason = message } = asRefusal(error);
    return { refused: reason };
  }
}

/**
 * The config with one endpoint alone, open to everybody, in all the ways in which its answer could be signed.
 * @returns a text that suggests another name, where there is none of this one.
 */
function variantsOf({ version, settings, apis }: Tree, name: string): Tree | string {
  const plugins = isRecord(settings) ? settings.plugins : undefined;
  const names: string[] = [];
  for (const api of Array.isArray(apis) ? apis.filter(isRecord) : []) {
    const list = Array.isArray(api.endpoints) ? api.endpoints.filter(isRecord) : [];
    const nameOf = (block: Tree) => writtenNumbers(block).get('name') ?? block.name;
    const found = list.find((each) => `${nameOf(api)}/${nameOf(each)}` === name);
    names.push(...list.map((each) => `${nameOf(api)}/${nameOf(each)}`));
    if (found === undefined) continue;
    const { encoding, expect = api.expect } = found;
    const none = Object.fromEntries(UNSET.map((key) => [key, undefined]));
    const open = { ...none, auth: { type: 'free' }, signatures: false };
    const given = Array.isArray(found.parameters) ? found.parameters : [];
    const isRaw = encoding === undefined;
    const endpoints = [
      withMembers(found, { ...open, name: RAW, ...(isRaw && { expect }) }),
      withMembers(found, { ...open, name: SCALED, encoding: { type: '*', path: '*', times: '*' } }),
      withMembers(found, { ...open, name: PLAIN, encoding: { type: '*', path: '*' } }),
      ...(isRecord(encoding)
        ? [withMembers(found, { ...open, name: OWN, encoding, expect, parameters: [...given, ITSELF] })]
        : []),
    ];
    const only = [withMembers(api, { auth: undefined, expect: undefined, endpoints })];
    return { version, ...(plugins === undefined ? {} : { settings: { plugins } }), apis: only };
  }
  const meant = nearest(name, names) ?? names.find((each) => each.endsWith(`/${name}`));
  return meant === undefined ? '' : `, did you mean "${meant}"?`;
}
