import type { Exchange } from './exchange.ts';
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
  if (exchange.outcome !== undefined) refuse(stage, refusals.internal('the request has ended'));
}

/** Makes signed answers: asks the upstream, encodes what it says, and signs that. */
export function producer(hooks: Hooks, signing: Signing): Produce {
  return async (question, exchange) => {
    // Plugins may change what is asked.
    let changed = hooks.ask('onBeforeApiCall', question.parameters, exchange);
    if (changed instanceof Promise) changed = await changed;
    const asked = changed === undefined || changed === question.parameters ? question : question.with(changed);
    // Ask the upstream.
    const fetched = await hooks.askAround('callApi', asked.request, exchange, () =>
      refuse('callApi', refusals.internal('nothing calls the API')),
    );
    // Plugins may change what it said; an error status is never signed, whoever set it.
    let replaced = hooks.ask('onAfterApiCall', fetched, asked.parameters, exchange);
    if (replaced instanceof Promise) replaced = await replaced;
    const response = replaced ?? fetched;
    if (response.status < 200 || response.status > 299)
      refuse('onAfterApiCall', refusals.upstreamStatus(response.status));
    const parts = await sign(hooks, signing, { response, question: asked, exchange });
    // Have somebody else vouch for the upstream.
    let proof = fetched.request && hooks.ask('attest', fetched.request, exchange);
    if (proof instanceof Promise) proof = await proof;
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
  let encoded = hooks.ask('encode', response, question, exchange);
  if (encoded instanceof Promise) encoded = await encoded;
  const { bytes, field, value } = encoded ?? refuse('encode', refusals.internal('nothing encodes the answer'));
  // Only bytes that are shown as they are signed may still change.
  const isShown = value === bytes;
  let encrypted = isShown ? hooks.ask('encrypt', bytes, exchange) : undefined;
  if (encrypted instanceof Promise) encrypted = await encrypted;
  let changed = isShown ? hooks.ask('onBeforeSign', encrypted ?? bytes, exchange) : undefined;
  if (changed instanceof Promise) changed = await changed;
  const data = changed ?? encrypted ?? bytes;
  // Vouch for it.
  requireOpen(exchange, 'sign');
  const endpointId = exchange.endpoint.id;
  const timestamp = Math.floor(now() / 1000);
  const { requestHash } = question;
  const request = Object.freeze({ endpointId, timestamp, data, isHash: !isShown, requestHash });
  let signed = hooks.ask('sign', request, exchange);
  if (signed instanceof Promise) signed = await signed;
  const { node, signature, beside } = signed ?? refuse('sign', refusals.internal('nothing signs the answer'));
  return { node, signature, beside, endpointId, timestamp, data, field, value: isShown ? data : value };
}
