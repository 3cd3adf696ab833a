import { isAddress, isBytes32 } from '../../lib/eth/hex.ts';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { complain, print } from '../../service/terminal.ts';
import { align, escapeUnprintable } from '../../service/text.ts';
import { sortedValues } from '../../verify/ask-many.ts';
import {
  askMany,
  calldataFor,
  type Failure,
  type ManyAnswers,
  type Operator,
  QuorumError,
} from '../../verify/index.ts';
import { type Given, maxAgeOption, numberOption, UsageError } from '../arguments.ts';
import { httpGet } from '../http-get.ts';
import { printJson } from '../json-output.ts';
import { givenConfig } from './given-config.ts';
import { parametersIn } from './param-option.ts';

/** The exit code where fewer answers were good than had to be. */
const TOO_FEW = 2;
/** Bytes of a document of thousands of endpoints. */
const MAX_DOCUMENT = 16 * 1024 * 1024;
/** Parts of a hundredth in which the spread is shown. */
const PRECISION = 10_000n;

/** Asks several operators, and prints the median and who did not count. @returns 0, or 2 for too few good answers. */
export async function askOperators(given: Given): Promise<number> {
  const operators = given.all('from').map(operatorOf);
  const signers = new Set(operators.map(({ signer }) => signer.toLowerCase())).size;
  const k = numberOption(given, 'k', /^[1-9]\d{0,3}$/, '<n> must be a whole number, 1 or more') ?? signers;
  const maxAge = maxAgeOption(given);
  const isFraction = /^(?:0(?:\.\d+)?|1(?:\.0+)?)$/;
  const maxDeviation = numberOption(given, 'max-deviation', isFraction, '<fraction> must be from 0 to 1, such as 0.01');
  const parameters = Object.fromEntries(parametersIn(given.all('param')));
  const endpointId = await endpointIdOf(given, operators, k);
  try {
    const found = await askMany({ operators, k, endpointId, parameters, maxAge, maxDeviation, settle: 'all' });
    await (given.flag('json') ? printJson(jsonOf(endpointId, found)) : print(linesOf(endpointId, found)));
    return 0;
  } catch (error) {
    if (!(error instanceof QuorumError)) throw error;
    const message = `${error.answers.length} good answers, and ${k} are needed`;
    if (given.flag('json')) await printJson({ ok: false, errors: [{ message }], failures: error.failures });
    else await complain('error', [message, ...error.failures.map(failureLine)]);
    return TOO_FEW;
  }
}

/** @throws UsageError */
function operatorOf(text: string): Operator {
  const end = text.lastIndexOf('=');
  const [url, signer] = [text.slice(0, Math.max(end, 0)), text.slice(end + 1)];
  if (/^https?:\/\//.test(url) && URL.canParse(url) && isAddress(signer)) return { url, signer };
  throw new UsageError(
    'option --from <url=address> must be the base of a service and the address that signs there, such as https://api.example.com=0x…',
  );
}

/** The ID itself, or that of a name: of the config file, or as at least k operators say and none denies. */
async function endpointIdOf(given: Given, operators: readonly Operator[], k: number): Promise<string> {
  const endpoint = given.value('endpoint');
  if (isBytes32(endpoint)) return endpoint;
  if (!endpoint.includes('/'))
    throw new UsageError('option --endpoint <id|name> must be 0x and 64 hex digits, or <api>/<endpoint>');
  if (given.optional('config') === undefined) return agreedId(endpoint, operators, k);
  const { endpoints, file } = await givenConfig(given);
  const found = endpoints.find(({ api, name }) => `${api}/${name}` === endpoint);
  if (found === undefined) throw new Error(`${file}: there is no endpoint ${endpoint}`);
  return found.id;
}

async function agreedId(endpoint: string, operators: readonly Operator[], k: number): Promise<string> {
  const said = await Promise.all(
    operators.map(async ({ url }) => ({ url, id: await idAt(url, endpoint).catch(() => undefined) })),
  );
  const known = said.filter(({ id }) => id !== undefined);
  const [id = '', ...others] = new Set(known.map((each) => each.id));
  if (others.length > 0) {
    const list = known.map((each) => `${each.url} ${each.id}`).join(', ');
    throw new Error(`${endpoint}: the operators have different specifications of it: give the ID of one: ${list}`);
  }
  if (known.length >= k) return id;
  throw new Error(
    `${endpoint}: ${known.length} operators say its ID at /openapi.json, and ${k} have to: give the ID, or a config file that has it (-c)`,
  );
}

/** What a service that describes itself says. */
async function idAt(base: string, endpoint: string): Promise<string | undefined> {
  const url = `${base.replace(/\/+$/, '')}/openapi.json`;
  const { status, text } = await httpGet(url, MAX_DOCUMENT);
  const document = status === 200 ? jsonIn(text) : undefined;
  if (!isRecord(document) || !isRecord(document.paths)) return undefined;
  const isIt = (path: unknown) => isRecord(path) && isRecord(path.post) && path.post.summary === endpoint;
  const [path = ''] = Object.entries(document.paths).find(([, about]) => isIt(about)) ?? [];
  const id = path.replace('/endpoints/', '');
  return isBytes32(id) ? id : undefined;
}

function jsonOf(endpointId: string, { value, answers, failures }: ManyAnswers) {
  const shown = answers.map((answer) => ({ ...answer, value: String(answer.value) }));
  return { ok: true, endpointId, value: String(value), answers: shown, failures, calldata: calldataFor(answers) };
}

function linesOf(endpointId: string, { value, answers, failures }: ManyAnswers): string {
  const rows = answers.map(({ url, signer, value: each, timestamp }) => [url, signer, String(timestamp), String(each)]);
  const lines = [
    `Value: ${value} (int256, the median of ${answers.length})`,
    `Spread: ${spreadOf(answers, value)}`,
    `Endpoint ID: ${endpointId}`,
    ...align([['Operator', 'Signer', 'Timestamp', 'Value'], ...rows]),
    ...failures.map((failure) => `Failed: ${failureLine(failure)}`),
  ];
  return `${lines.map(escapeUnprintable).join('\n')}\n`;
}

function failureLine({ url, signer, reason, message }: Failure): string {
  return `${url} (${signer}): ${reason}: ${message}`;
}

/** From the least to the greatest value, also as a part of the median. */
function spreadOf(answers: ManyAnswers['answers'], median: bigint): string {
  const sorted = sortedValues(answers);
  const [least = median, greatest = median] = [sorted[0], sorted.at(-1)];
  if (least === greatest) return 'none, all say the same';
  const size = median < 0n ? -median : median;
  const part = size === 0n ? '' : `${Number(((greatest - least) * 100n * PRECISION) / size) / Number(PRECISION)} %, `;
  return `${part}from ${least} to ${greatest}`;
}
