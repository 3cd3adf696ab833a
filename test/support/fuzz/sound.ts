import type { StageName } from '../../../kernel/stages.ts';
import type {
  SignedResponse as Answer,
  AttachedStatement,
  Endpoint,
  Hex,
  Parameters,
  SignRequest,
} from '../../../kernel/values.ts';
import { keccak256, toHex } from '../../../lib/eth/hex.ts';
import { answerStatement, receiptBeside, type Statement } from '../../../lib/eth/statements.ts';
import { AskedQuestion, SignedResponse } from '../../../plugins-sdk/index.ts';
import { createSigner } from '../../../plugins-sdk/signing/local-key.ts';
import { markChecked } from '../../../plugins-sdk/signing/signed.ts';
import { TEST_KEY } from '../service.ts';
import { type Draw, ignore, type RunFn, type Situation } from './situation.ts';

const signer = createSigner(TEST_KEY);
export const node = signer.address;
const RECEIPT: Hex = `0x${'aa'.repeat(32)}`;

/** Two endpoints, of which the second has receipts. */
export const endpointIds: readonly Hex[] = [`0x${'11'.repeat(32)}`, `0x${'22'.repeat(32)}`];

/** What was signed, by signature. */
const made = new Map<string, SignRequest>();

/** Signs as the built-in does. */
export function sign(request: SignRequest) {
  const signature = signer.sign(answerStatement(request));
  made.set(signature, request);
  return markChecked({
    node,
    signature,
    statements: request.statements?.map(({ typed }) => signer.sign(typed as Statement)),
  });
}

/** The receipts of the second endpoint, as the built-in states them. */
export function statementsOf(others: readonly AttachedStatement[], request: SignRequest): readonly AttachedStatement[] {
  const { requestHash } = request.question as AskedQuestion;
  return requestHash === undefined ? others : [...others, receiptBeside(request, requestHash)];
}

/** Whether an answer is one that was signed for that endpoint, and shows what was signed. */
export function isSigned(json: string, id: Hex): boolean {
  const { signature, endpointId, timestamp, data, rawData, receipt } = JSON.parse(json);
  const request = made.get(signature);
  return (
    request !== undefined &&
    [request.endpointId, endpointId].every((one) => one === id) &&
    request.timestamp === timestamp &&
    (rawData === 7 ? request.data === raw.bytes : request.data === data) &&
    (request.question as AskedQuestion).requestHash === receipt?.requestHash
  );
}

export function questionOf(parameters: Parameters, { id }: Endpoint): AskedQuestion {
  const requestFor = (changed: Parameters) => ({
    method: 'POST',
    url: 'https://upstream.example/',
    headers: {},
    body: JSON.stringify(changed),
  });
  return new AskedQuestion({
    parameters,
    reserved: {},
    request: requestFor(parameters),
    requestHash: id === endpointIds[1] ? RECEIPT : undefined,
    key: () => 'k'.repeat(43),
    requestFor,
  });
}

/** Answers that were signed before, by endpoint: what a cache has. */
export class Kept {
  readonly #answers = new Map<Hex, Answer[]>();

  keep(id: Hex, answer: Answer): void {
    const others = this.#answers.get(id) ?? [];
    this.#answers.set(id, [answer, ...others].slice(0, 8));
  }

  /** One of the endpoint, of another one, or one that was tampered with. */
  some(id: Hex, draw: Draw): unknown {
    const own = this.#answers.get(draw.chance(0.8) ? id : draw.one(endpointIds)) ?? [];
    if (own.length === 0) return undefined;
    const answer = draw.one(own);
    const kind = draw.below(4);
    if (kind === 0) return answer;
    if (kind === 1) return { json: answer.json };
    if (kind === 2) return SignedResponse.parse(answer.json);
    return { json: answer.json.replace(/"data":"0x../, '"data":"0xff') };
  }
}

const raw = { bytes: toHex(keccak256(Buffer.from('7'))), field: 'rawData', value: 7 };

type Sources = Pick<Situation, 'draw'> & { readonly endpoint: Endpoint; readonly kept: Kept };
type Maker = (sources: Sources, value: unknown, next: unknown) => unknown;

const makers: { readonly [N in StageName]: Maker } = {
  admit: () => true,
  route: () => ({ status: 200, body: '{}' }),
  resolve: ({ endpoint }) => endpoint,
  parseBody: () => ({ a: 1 }),
  onHttpRequest: ({ draw }) => (draw.chance(0.7) ? { reject: false } : { reject: true, status: 418 }),
  price: () => 7n,
  authenticate: () => true,
  validate: (_, value) => ({ ...(value as object), b: 2 }),
  vary: () => 'varied',
  prepare: ({ endpoint }, value) => questionOf(value as Parameters, endpoint),
  present: (_, value) => (value as RunFn)().then(({ json }) => ({ status: 200, body: json })),
  answer: ({ endpoint, kept, draw }) => kept.some(endpoint.id, draw),
  onBeforeApiCall: () => ({ parameters: { c: 3 } }),
  callApi: ({ draw }) => ({ status: draw.chance(0.9) ? 200 : 503, data: 7 }),
  onAfterApiCall: () => ({ data: 8 }),
  encode: ({ draw }) => (draw.chance(0.5) ? { bytes: '0x02', field: 'data', value: '0x02' } : raw),
  encrypt: () => '0x03',
  onBeforeSign: () => ({ data: '0x04' }),
  statements: (_, value, next) => statementsOf(value as readonly AttachedStatement[], next as SignRequest),
  sign: (_, value) => sign(value as SignRequest),
  attest: () => ({ proof: 1 }),
  approve: ignore,
  concluded: ignore,
  respond: () => ({ 'x-a': 'b' }),
  onResponseSent: ignore,
  onError: ignore,
};

/** What a stage takes for an answer. */
export function soundResult(stage: StageName, args: readonly unknown[], sources: Sources): unknown {
  return makers[stage](sources, args[0], args[1]);
}
