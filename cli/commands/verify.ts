import { decode, readBounded } from '../../config/files.ts';
import type { Endpoint, Parameters } from '../../kernel/values.ts';
import { isAddress, isBytes32 } from '../../lib/eth/hex.ts';
import { isFiniteJson, withoutRoundedNumbers } from '../../lib/json/numbers.ts';
import { jsonIn } from '../../lib/json/value.ts';
import { isCovered, keys, type Parameter, reservedParameters } from '../../plugins-sdk/keys.ts';
import { userPath } from '../../service/surroundings.ts';
import { print } from '../../service/terminal.ts';
import { escapeUnprintable } from '../../service/text.ts';
import { requestHashOf, type Verification, verifyResponse } from '../../verify/index.ts';
import { ADDRESS_RULE, checkedOption, type Given, requireWith, UsageError } from '../arguments.ts';
import { printJson } from '../json-output.ts';
import { configuredEndpoint, decodedValues, type Known, valueLine } from './decoded-values.ts';

/** The most bytes of an answer: several times the service's most, since encoding may enlarge the upstream's 1 MiB. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Checks a saved answer, off chain: the JSON body of a sync response, a complete async record, or an SSE frame.
 *
 * @param file the answer's path, or `-` for stdin.
 * @throws Error for an answer that is not valid.
 */
export async function verify(given: Given, file: string): Promise<void> {
  requireWith(given, 'config', ['env']);
  const options = readOptions(given);
  const source = file === '-' ? 'stdin' : userPath(file);
  const bytes = await readBounded(source, MAX_BYTES, file === '-' ? process.stdin : undefined);
  const answer = parse(source, decode(bytes, source));
  const known = await configuredEndpoint(given, answer);
  const sent = options.parameters;
  const asked = sent && known?.endpoint && askedParameters(known.endpoint, sent);
  const result = verifyResponse(answer, { ...options, ...(asked && { parameters: asked.parameters }) });
  if (!result.ok) {
    const cure = result.reason === 'request' ? ofOtherRequest(known) : '';
    throw Object.assign(new Error(`${source}: ${result.message}${cure}`), { reason: result.reason });
  }
  const values = decodedValues(given, source, result, known);
  if (given.flag('json')) return printJson({ ...result, ...(values && { values }) });
  const lines = [...verificationLines(result, asked?.defaults ?? []), ...(values ?? []).map(valueLine)];
  await print(`${lines.map(escapeUnprintable).join('\n')}\n`);
}

/** Explains why parameters that look right may differ from those of the request. */
function ofOtherRequest(known: Known | undefined): string {
  const count = '; the defaults of parameters that were left out count, too';
  if (known === undefined) return `${count}: write them, or give the config with -c`;
  return known.endpoint === undefined ? `${count}, and ${known.file} does not have the endpoint` : '';
}

function readOptions(given: Given) {
  const node = checkedOption(given, 'node', isAddress, ADDRESS_RULE);
  const endpointId = checkedOption(given, 'endpoint-id', isBytes32, '<id> must be 0x and 64 hex digits');
  const maxAge = checkedOption(given, 'max-age', (text) => /^\d{1,15}$/.test(text), '<seconds> must be a whole number');
  const parameters = given.optional('parameters');
  return {
    node: node ?? null,
    ...(endpointId === undefined ? {} : { endpointId }),
    ...(parameters === undefined ? {} : { parameters: readParameters(parameters) }),
    ...(maxAge === undefined ? {} : { maxAge: Number(maxAge) }),
  };
}

/** Reads parameters. @throws UsageError for those that the service would refuse in a request. */
function readParameters(text: string): Parameters {
  try {
    const parameters: Parameters = JSON.parse(text);
    if (isFiniteJson(JSON.parse(withoutRoundedNumbers(text)))) {
      requestHashOf(parameters);
      return parameters;
    }
  } catch {
    throw new UsageError('option --parameters <json> must be a JSON object, such as {"symbol":"ETHUSD"}');
  }
  throw new UsageError('option --parameters <json> holds a number that would be rounded: it is asked as a string');
}

function verificationLines(result: Exclude<Verification, { ok: false }>, defaults: readonly string[]): string[] {
  const { signer, pinned, digest, endpointId, timestamp, signedData, kind, requestHash } = result;
  const beside = defaults.length === 0 ? '' : ` and the defaults of ${defaults.join(', ')}`;
  return [
    `Signer: ${signer}`,
    pinned ? 'Pinned: yes' : 'Pinned: no, any signer was accepted; say with --node whose signature it must be',
    `Digest: ${digest}`,
    `Endpoint ID: ${endpointId}`,
    `Timestamp: ${timeOf(timestamp)}`,
    `Signed data: ${signedData}${kind === 'raw' ? ' (hash of the canonical JSON of rawData)' : ''}`,
    ...(requestHash === undefined
      ? []
      : [`Request hash: ${requestHash} (the receipt is of these parameters${beside})`]),
  ];
}

/** Formats a time in ISO 8601 and Unix seconds; only in seconds if it is outside the range of `Date`. */
function timeOf(timestamp: number): string {
  const date = new Date(timestamp * 1000);
  return Number.isNaN(date.getTime()) ? `${timestamp}` : `${date.toISOString()} (${timestamp})`;
}

function parse(source: string, text: string): unknown {
  const answer = jsonIn(/^\s*\{/.test(text) ? text : eventData(source, text));
  if (answer === undefined) throw new Error(`${source}: malformed JSON`);
  return answer;
}

/** Returns the data of a stream's only event (WHATWG HTML, section 9.2); its last blank line may be missing. */
function eventData(source: string, text: string): string {
  const events = text
    .replace(/\r\n?/g, '\n')
    .split(/\n{2,}/)
    .map((block) => block.split('\n').flatMap((line) => /^data: ?(.*)$/s.exec(line)?.[1] ?? []))
    .filter((lines) => lines.length > 0);
  const [event, ...more] = events;
  if (event === undefined) throw new Error(`${source}: neither a JSON object nor an SSE frame`);
  if (more.length > 0) throw new Error(`${source}: more than one SSE frame`);
  return event.join('\n');
}

/**
 * Returns the part of a request that an endpoint's receipt covers: without fixed and secret parameters, with defaults.
 *
 * @returns it, and the names of the parameters that the config's defaults have added.
 * @throws UsageError for a parameter that the endpoint does not have.
 */
function askedParameters(endpoint: Endpoint, sent: Parameters) {
  const declared = keys.parameters.of(endpoint) ?? [];
  const reserved: readonly string[] = reservedParameters(endpoint);
  const known = [...declared.map(({ name }) => name), ...reserved];
  const unknown = Object.keys(sent).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`option --parameters <json>: ${endpoint.api}/${endpoint.name} has no parameter "${unknown}"`);
  const covered = declared.filter(isCovered);
  const values = covered.flatMap((parameter) => {
    const value = isSent(parameter, sent) ? sent[parameter.name] : parameter.default;
    return value === undefined ? [] : [[parameter.name, value] as const];
  });
  const chosen = reserved.map((name) => [name, sent[name] ?? null] as const);
  const left = covered.filter((parameter) => parameter.default !== undefined && !isSent(parameter, sent));
  return { parameters: Object.fromEntries([...values, ...chosen]), defaults: left.map(({ name }) => name) };
}

/** Returns whether a parameter was sent; `null` counts as not sent, except in a body. */
function isSent({ name, in: place }: Parameter, sent: Parameters): boolean {
  return Object.hasOwn(sent, name) && (sent[name] !== null || place === 'body');
}
