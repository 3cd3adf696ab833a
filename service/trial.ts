import { loadConfig } from '../config/index.ts';
import { withMembers, writtenNumbers } from '../config/tree.ts';
import { readConfigFile, type Tree } from '../config/yaml.ts';
import { serve } from '../kernel/pipeline.ts';
import { asRefusal } from '../kernel/refusal.ts';
import type { PluginSet } from '../kernel/registry.ts';
import { decodeAbi } from '../lib/eth/decode-abi.ts';
import { canonicalJson } from '../lib/json/canonical-json.ts';
import { type Leaf, leavesOf } from '../lib/json/leaves.ts';
import { markedMembers, parseAllMarked, unmarked, unmarkedJson } from '../lib/json/numbers.ts';
import { nearest } from '../lib/suggest.ts';
import { redirectTarget, writtenParameters } from '../plugins-sdk/context-key.ts';
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
import { definitions, idleServer, type ServiceOptions } from './index.ts';
import { throwAwaySigning } from './signers.ts';

/** The value that would be signed, or the reason for a refusal. */
export interface Outcome {
  readonly signs?: string;
  readonly refused?: string;
}

/** A value of an upstream's answer, and the result of signing it. */
interface TriedValue extends Leaf, Outcome {}

/** Facts that a trial collects while it runs. */
interface Seen {
  request?: OutgoingRequest;
  /** The target of the upstream's redirect. */
  redirect?: string | undefined;
  /** The JSON text of the answer; absent if a plugin replaced the data. */
  text?: string | undefined;
}

const MOST_VALUES = 40;
/** Keys that every variant of the tried endpoint leaves out, unless it needs them. */
const UNSET = ['encoding', 'expect', 'encrypt', 'mode', 'responseMatches'];
/** A parameter that gives a variant its own endpoint ID, also if its encoding equals another variant's. */
const ITSELF = { name: 'as configured', in: 'none', fixed: true };
/** Names of the variants of the tried endpoint. */
const [RAW, OWN, SCALED] = ['raw', 'own', 'scaled'];

/**
 * Asks the upstream of an endpoint once, as the service would, with its plugins and bounds but without authentication. The
 * operator's key signs nothing.
 * @param name the endpoint as in the log, `api/endpoint`.
 * @param given returns the parameters; marked texts stand for numbers that a double would round.
 * @returns the request with values of variables hidden, the answer, and what would be signed of it: by the endpoint's own
 * encoding, if it has one, in `own`. In data and values, marked texts stand for numbers that a double would round.
 * @throws Error for an unknown endpoint, and for a refusal of the service.
 */
export async function tryEndpoint(
  { file, env }: ServiceOptions,
  name: string,
  given: (endpoint: Endpoint) => Parameters,
  log: Log,
) {
  const tree = variantsOf(await readConfigFile(file), name);
  if (typeof tree === 'string') throw new Error(`${file}: there is no endpoint ${name}${tree}`);
  const seen: Seen = {};
  // `once` is inside all plugins that retry or read the answer.
  const builtins = definitions(throwAwaySigning(), undefined, [once(seen)]);
  const loaded = await loadConfig({ file, tree, env, builtins });
  const server = idleServer(loaded, log);
  const of = (variant: string) => loaded.endpoints.find((each) => each.name === variant);
  const endpoint = of(OWN) ?? of(RAW);
  if (endpoint === undefined) throw new Error(`${file}: ${name} cannot be tried`);
  const all = Object.entries(given(endpoint));
  const reserved: readonly string[] = reservedParameters(endpoint);
  const isChosen = ([each]: [string, Json]) => reserved.includes(each);
  const chosen = Object.fromEntries(all.filter(isChosen));
  const ask = asker(server.plugins, of, Object.fromEntries(all.filter((each) => !isChosen(each))));
  try {
    await server.start(async () => undefined);
    const { rawData = null } = await ask(RAW).catch((error: unknown) => fail(name, error, loaded.hide, seen.redirect));
    const answer = parseAllMarked(seen.text || JSON.stringify(rawData));
    // Canonical JSON sorts the members.
    const data: Json = JSON.parse(canonicalJson(answer));
    const values: TriedValue[] = [];
    for (const leaf of leavesOf(data, MOST_VALUES, unmarkedJson)) values.push(await tried(leaf, ask));
    const own = encodingOf(endpoint, chosen);
    const request = shownRequest(seen.request, loaded.hide);
    const signs = own && { own: { ...own, ...(await signed(own.type, () => ask(OWN, chosen))) } };
    return { request, data, values, ...signs };
  } finally {
    await server.stopAtOnce();
  }
}

type Ask = (variant: string, reserved?: Parameters) => Promise<Readonly<Record<string, Json>>>;

/** Returns a function that asks a variant. @param marked parameters with marked texts for numbers that a double would round. */
function asker(plugins: PluginSet, of: (variant: string) => Endpoint | undefined, marked: Parameters): Ask {
  const parameters = unmarked(marked);
  const written = markedMembers(marked);
  const runtime = { now: Date.now, makeAnswer: madeHere, failed: () => undefined };
  return async (variant, reserved = {}) => {
    const exchange = exchangeOf({ parameters: { ...parameters, ...reserved } });
    writtenParameters.set(exchange, written);
    const responded = Promise.resolve();
    const { body } = await serve(plugins, runtime, { exchange, endpointId: of(variant)?.id ?? '', responded });
    return JSON.parse(Object(body).json ?? String(body));
  };
}

/** Returns an endpoint's encoding with the client's choices; undefined if it has none, or the client chose nothing of it. */
function encodingOf(endpoint: Endpoint, chosen: Parameters): Pick<Leaf, 'type' | 'path' | 'times'> | undefined {
  const encoding = keys.encoding.of(endpoint);
  const parts = Object.entries(chosen).map(([name, value]) => [name.slice(1), String(value)]);
  const isOpen = parts.length === 0 && reservedParameters(endpoint).length > 0;
  return encoding && !isOpen ? { ...encoding, ...Object.fromEntries(parts) } : undefined;
}

/** Makes a plugin that keeps the upstream's answer to each request, so that all variants share one call. */
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

function shownRequest(request: OutgoingRequest | undefined, hide: (text: string) => string) {
  const { method = '', url = '', body } = request ?? {};
  return { method, url: hide(url), ...(body !== undefined && { body: hide(body) }) };
}

/** Throws an Error with the text of a refusal and its reason. */
function fail(name: string, error: unknown, hide: (text: string) => string, redirect: string | undefined): never {
  const { status, message, reason } = asRefusal(error);
  const why = reason === undefined ? '' : ` (${reason}${redirect === undefined ? '' : ` to ${redirect}`})`;
  throw new Error(hide(`${name}: ${status} ${message}${why}`));
}

async function tried(leaf: Leaf, ask: Ask): Promise<TriedValue> {
  const { path, type, times = '' } = leaf;
  const outcome = await signed(type, () => ask(SCALED, { _type: type, _path: path, _times: times }));
  return { ...leaf, ...outcome };
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
 * Returns the config with variants of one endpoint alone, open to everyone: one for each way to sign its answer.
 * @returns a text with a suggested name if there is no such endpoint.
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
