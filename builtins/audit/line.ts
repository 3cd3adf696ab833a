import { clientName, type Exchange, type SignedResponse } from '../../plugins-sdk/index.ts';
import { signedFacts } from '../../plugins-sdk/observe.ts';
import { payment } from '../shared/payment-mark.ts';

/** Answers that have a line already; a cached answer is given again, also after a reload. */
const recorded = new WeakSet<SignedResponse>();

/** The facts of a line beside the answer and its request. */
export interface LineOptions {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Whether the answer was given to the client; otherwise it was signed and then withheld. */
  readonly isGiven: boolean;
  /** Whether the line shows the answer. */
  readonly withAnswer: boolean;
}

/** Returns the line of a request's answer: JSON without a line feed. Undefined if the answer is not the pipeline's. */
export function lineOf(answer: SignedResponse, exchange: Exchange, options: LineOptions): string | undefined {
  const facts = signedFacts(answer);
  if (facts === undefined) return undefined;
  const { endpointId, requestHash, digest, timestamp, signers, isMadeHere } = facts;
  const { requestId, endpoint } = exchange;
  const [signer, ...others] = signers;
  const isAgain = !isMadeHere || recorded.has(answer);
  recorded.add(answer);
  const json = JSON.stringify({
    time: new Date(options.now).toISOString(),
    requestId,
    endpoint: `${endpoint.api}/${endpoint.name}`,
    ...{ endpointId, requestHash, digest, timestamp, signer },
    alsoSignedBy: others.length === 0 ? undefined : others,
    client: clientName.get(exchange),
    payment: payment.get(exchange),
    again: isAgain || undefined,
    given: options.isGiven && undefined,
  });
  return options.withAnswer ? `${json.slice(0, -1)},"answer":${answer.json}}` : json;
}
