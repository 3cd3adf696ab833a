import { type AskedAnswer, type AskOptions, ask, requireOptions } from './ask.ts';
import { AskError, type AskReason, wrongOption } from './ask-error.ts';

/** Milliseconds for which `settle: 'all'` waits for more answers once there are enough. */
const OTHERS_MS = 500;
/** `maxDeviation` is counted in parts of 1 / PARTS. */
const PARTS = 1e12;

/** An operator to ask. Several URLs with one signer are the same operator: only one of their answers counts. */
export interface Operator {
  readonly url: string;
  readonly signer: string;
  readonly key?: string | undefined;
}

type Shared = 'endpointId' | 'parameters' | 'receipt' | 'maxAge' | 'timeout' | 'signal' | 'fetch';

/** A request for one `int256` to several operators. */
export interface AskManyOptions extends Pick<AskOptions, Shared> {
  readonly operators: readonly Operator[];
  /** How many good answers are needed, each by another signer. */
  readonly k: number;
  /** Whether to take the first k good answers (the default), or to wait up to 500 ms longer for the others. */
  readonly settle?: 'fastest' | 'all' | undefined;
  /** How far a value may be from the median, as a fraction of it, such as 0.01. Any distance by default. */
  readonly maxDeviation?: number | undefined;
}

/** Why an operator's answer does not count. */
export interface Failure {
  readonly url: string;
  readonly signer: string;
  readonly reason: AskReason;
  /** One sentence for a person. It may quote the operator's response. */
  readonly message: string;
}

/** The median of several operators' answers. */
export interface ManyAnswers {
  /** The median; for an even number of answers the mean of the middle two, rounded towards zero, as in `SignedDataQuorum`. */
  readonly value: bigint;
  /** The answers of which it is the median, in the order of the operators: k of them, or more. */
  readonly answers: readonly AskedAnswer[];
  /** The operators whose answers do not count. Operators that were not waited for are not among them. */
  readonly failures: readonly Failure[];
}

/** Thrown when fewer than k answers were good. */
export class QuorumError extends Error {
  override readonly name = 'QuorumError';
  readonly failures: readonly Failure[];
  /** The good answers, of which there are too few. */
  readonly answers: readonly AskedAnswer[];

  constructor(k: number, answers: readonly AskedAnswer[], failures: readonly Failure[]) {
    const list = failures.map(({ url, reason }) => `${url} (${reason})`).join(', ');
    super(`${answers.length} of ${k} answers that are needed are good; failed: ${list}`);
    this.answers = answers;
    this.failures = failures;
  }
}

const OPTIONS = [
  ...['operators', 'endpointId', 'parameters', 'k', 'maxAge', 'timeout'],
  ...['settle', 'maxDeviation', 'receipt', 'signal', 'fetch'],
];

/**
 * Asks several operators of one specification at once, and returns the median of k or more good answers.
 * @throws QuorumError below k, AskError for wrong options, and the reason of `signal` when it aborts.
 */
export async function askMany(options: AskManyOptions): Promise<ManyAnswers> {
  requireOptions(options, OPTIONS);
  requireMany(options);
  const { operators, k, settle, maxDeviation, signal, ...shared } = options;
  const rest = new AbortController();
  const stop = () => rest.abort(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  try {
    const all = operators.map((operator): Asked => {
      const { url, signer, key } = operator;
      return { operator, answer: ask({ ...shared, url, signer, key, signal: rest.signal }) };
    });
    return await gathered(all, options, rest.signal);
  } finally {
    signal?.removeEventListener('abort', stop);
    rest.abort();
  }
}

function requireMany({ operators, k, settle = 'fastest', maxDeviation = 0 }: AskManyOptions): void {
  if (!Array.isArray(operators) || operators.some((each) => typeof each?.signer !== 'string'))
    throw wrongOption('operators must be a list of {url, signer}');
  const signers = new Set(operators.map(({ signer }) => signer.toLowerCase())).size;
  if (!Number.isSafeInteger(k) || k < 1) throw wrongOption('k must be a whole number, 1 or more');
  if (k > signers) throw wrongOption(`k is ${k}, and operators have ${signers} different signers: add some`);
  if (settle !== 'fastest' && settle !== 'all') throw wrongOption("settle must be 'fastest' or 'all'");
  if (!(maxDeviation >= 0 && maxDeviation <= 1)) throw wrongOption('maxDeviation must be a fraction from 0 to 1');
}

/** An operator with its request and, when it has ended, the outcome. */
interface Asked {
  readonly operator: Operator;
  readonly answer: Promise<AskedAnswer>;
  good?: AskedAnswer;
  failure?: Failure;
}

/** Waits until there are enough good answers, or all requests have ended. Counts again whenever one ends. */
function gathered(all: readonly Asked[], options: AskManyOptions, signal: AbortSignal): Promise<ManyAnswers> {
  const { k, settle, maxDeviation } = options;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = settle !== 'all';
  return new Promise<ManyAnswers>((resolve, reject) => {
    const look = () => {
      const waits = all.some(isPending);
      const { answers, strays } = agreeing(all, maxDeviation);
      const isEnough = answers.length >= k;
      if (waits && !(isEnough && isOver)) {
        if (isEnough) timer ??= setTimeout(end, OTHERS_MS);
        return;
      }
      const failures = all.flatMap((each) => strays.get(each) ?? each.failure ?? lateness(each, settle));
      if (isEnough) resolve({ value: medianOf(answers), answers, failures });
      else reject(new QuorumError(k, answers, failures));
    };
    const end = () => {
      isOver = true;
      look();
    };
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    for (const each of all) taken(each, all).then(look, reject);
  }).finally(() => clearTimeout(timer));
}

function isPending({ good, failure }: Asked): boolean {
  return good === undefined && failure === undefined;
}

/** Records the outcome of one request. @throws AskError for wrong options, which are no fault of an operator. */
async function taken(each: Asked, all: readonly Asked[]): Promise<void> {
  try {
    const answer = await each.answer;
    const isTwice = all.some(({ good }) => good?.signer === answer.signer);
    if (isTwice) each.failure = failure(each, 'twice', 'another answer by this signer counts already');
    else each.good = answer;
  } catch (error) {
    if (!(error instanceof AskError) || error.reason === 'options') throw error;
    each.failure = failure(each, error.reason, error.message);
  }
}

function failure({ operator: { url, signer } }: Asked, reason: AskReason, message: string): Failure {
  return { url, signer, reason, message };
}

function lateness(each: Asked, settle: AskManyOptions['settle']): readonly Failure[] {
  if (!isPending(each) || settle !== 'all') return [];
  return [failure(each, 'late', `no answer came within ${OTHERS_MS} ms of those that were needed`)];
}

/** Returns the good answers that are near the median of all good ones, and the failures of the others. */
function agreeing(all: readonly Asked[], maxDeviation: number | undefined) {
  const good = all.flatMap((each) => (each.good === undefined ? [] : [{ each, answer: each.good }]));
  const strays = new Map<Asked, Failure>();
  if (maxDeviation !== undefined && good.length > 0) {
    const median = medianOf(good.map(({ answer }) => answer));
    const most = BigInt(Math.round(maxDeviation * PARTS)) * sizeOf(median);
    for (const { each, answer } of good) {
      if (sizeOf(answer.value - median) * BigInt(PARTS) <= most) continue;
      const far = `${answer.value} is further than ${maxDeviation} of it from the median, ${median}`;
      strays.set(each, failure(each, 'deviation', far));
    }
  }
  return { answers: good.flatMap(({ each, answer }) => (strays.has(each) ? [] : [answer])), strays };
}

function sizeOf(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/** Returns the median. Division of bigints rounds towards zero, and no sum of them overflows. */
function medianOf(answers: readonly AskedAnswer[]): bigint {
  const values = answers.map(({ value }) => value).sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
  const [low = 0n, high = low] = values.slice(Math.ceil(values.length / 2) - 1, Math.floor(values.length / 2) + 1);
  return (low + high) / 2n;
}
