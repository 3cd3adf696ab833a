import { MAX_JSON_DEPTH } from '../../lib/json/canonical-json.ts';
import { isDeeperThan } from '../../lib/json/json-text.ts';
import { type HttpClient, RequestFailure } from '../../plugins-sdk/index.ts';
import { type ClaimedRequest, NoProof } from './claim.ts';

/** Most bytes of a gateway's answer, after decompression. A claim repeats the request's body, and patterns may match much. */
const ANSWER_LIMIT = 256 * 1024;

/** The request to prove, as the gateway gets it: with its headers, which no claim shows. */
export interface GatewayRequest extends ClaimedRequest {
  readonly headers: Readonly<Record<string, string>>;
}

export interface Gateway {
  readonly client: HttpClient;
  readonly url: string;
  /** Timeout of the whole call, in milliseconds. */
  readonly timeout: number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Asks the gateway for a proof.
 * @returns the JSON that it answered, unchecked.
 * @throws NoProof
 */
export async function askGateway(
  { client, ...target }: Gateway,
  request: GatewayRequest,
  signal: AbortSignal,
): Promise<unknown> {
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'user-agent': 'signed-data-proxy' };
  const sent = { method: 'POST', headers, body: JSON.stringify(request), maxBytes: ANSWER_LIMIT, signal };
  const { status, body } = await client.request({ ...target, ...sent }).catch((error: unknown) => {
    throw error instanceof RequestFailure ? new NoProof(`${error.kind}: ${error.message}`) : error;
  });
  if (status < 200 || status > 299) throw new NoProof(`gateway status ${status}`);
  try {
    if (!isDeeperThan(body, MAX_JSON_DEPTH)) return JSON.parse(utf8.decode(body));
  } catch {
    throw new NoProof('the answer of the gateway is no JSON');
  }
  throw new NoProof(`the answer of the gateway is nested deeper than ${MAX_JSON_DEPTH} levels`);
}
