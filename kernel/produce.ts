import { control, type Exchange } from './exchange.ts';
import type { Hooks } from './hooks.ts';
import { refusals, refuse } from './refusal.ts';
import type { StageName } from './stages.ts';
import type { ApiResponse, Question, SignedParts, SignedResponse } from './values.ts';

/** What making an answer takes beside plugins. */
export interface Signing {
  /** Epoch milliseconds. */
  now(): number;
  /** Makes the answer that clients get. @param question that it answers. */
  serialize(parts: SignedParts, question: Question): SignedResponse;
}

export type Produce = (question: Question, exchange: Exchange) => Promise<SignedResponse>;

/** A mode may have given up without waiting: what was refused is neither signed nor paid for. @throws Refusal */
export function requireOpen(exchange: Exchange, stage: StageName): void {
  if (control.isSettled(exchange)) refuse(stage, refusals.internal('the request has ended'));
}

/** Makes signed answers: asks the upstream, encodes what it says, and signs that. */
export function producer(hooks: Hooks, signing: Signing): Produce {
  return async (question, exchange) => {
    // Plugins may change what is asked.
    const changed = await hooks.ask('onBeforeApiCall', question.parameters, exchange);
    const asked = changed === undefined || changed === question.parameters ? question : question.with(changed);
    // Ask the upstream.
    const fetched = await hooks.askAround('callApi', asked.request, exchange, () =>
      refuse('callApi', refusals.internal('nothing calls the API')),
    );
    // Plugins may change what it said; an error status is never signed, whoever set it.
    const response = (await hooks.ask('onAfterApiCall', fetched, asked.parameters, exchange)) ?? fetched;
    if (response.status < 200 || response.status > 299)
      refuse('onAfterApiCall', refusals.upstreamStatus(response.status));
    const parts = await sign(hooks, signing, { response, question: asked, exchange });
    // Have somebody else vouch for the upstream.
    const proof = fetched.request && (await hooks.ask('prove', fetched.request, exchange));
    return signing.serialize({ ...parts, proof }, asked);
  };
}

interface Said {
  readonly response: ApiResponse;
  readonly question: Question;
  readonly exchange: Exchange;
}

async function sign(hooks: Hooks, { now }: Signing, { response, question, exchange }: Said) {
  requireOpen(exchange, 'sign');
  // What is signed, and what is shown?
  const encoded = await hooks.ask('encode', response, question, exchange);
  const { bytes, field, value } = encoded ?? refuse('encode', refusals.internal('nothing encodes the answer'));
  // Only bytes that are shown as they are signed may still change.
  const isShown = value === bytes;
  const encrypted = (isShown && (await hooks.ask('encrypt', bytes, exchange))) || bytes;
  const data = (isShown && (await hooks.ask('onBeforeSign', encrypted, exchange))) || encrypted;
  // Vouch for it.
  requireOpen(exchange, 'sign');
  const endpointId = exchange.endpoint.id;
  const timestamp = Math.floor(now() / 1000);
  const { requestHash } = question;
  const request = Object.freeze({ endpointId, timestamp, data, isHash: !isShown, requestHash });
  const signed = await hooks.ask('sign', request, exchange);
  const { node, signature, beside } = signed ?? refuse('sign', refusals.internal('nothing signs the answer'));
  return { node, signature, beside, endpointId, timestamp, field, value: isShown ? data : value };
}
