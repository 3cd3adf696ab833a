import { MAX_JSON_DEPTH } from '../../lib/json/canonical-json.ts';
import { isDeeperThan } from '../../lib/json/skip.ts';
import { type HttpClient, RequestFailure } from '../../plugins-sdk/index.ts';
import { type ClaimedRequest, NoProof } from './claim.ts';

/** Bytes of a gateway's answer, after decompression; a claim repeats the body of the request, and patterns may match much. */
const ANSWER_LIMIT = 256 * 1024;

/** What the gateway is told: the headers too, which no claim shows. */
export interface GatewayRequest extends ClaimedRequest {
  readonly headers: Readonly<Record<string, string>>;
}

export interface Gateway {
  readonly client: HttpClient;
  readonly url: string;
  /** Milliseconds for everything together. */
  readonly timeout: number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Asks the gateway for a proof.
 * @returns the JSON that it answered, unchecked.
 * @throws NoProof
 */
export async function askGateway(gateway: Gateway, request: GatewayRequest, signal: AbortSignal): Promise<unknown> {
  const { status, body } = await post(gateway, request, signal);
  if (status < 200 || status > 299) throw new NoProof(`gateway status ${status}`);
  return parse(body);
}

async function post({ client, url, timeout }: Gateway, request: GatewayRequest, signal: AbortSignal) {
  const { method, headers, body, responseMatches } = request;
  try {
    return await client.request({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json', accept: 'application/json', 'user-agent': 'signed-data-proxy' },
      body: JSON.stringify({ url: request.url, method, headers, body, responseMatches }),
      timeout,
      maxBytes: ANSWER_LIMIT,
      signal,
    });
  } catch (error) {
    if (error instanceof RequestFailure) throw new NoProof(`${error.kind}: ${error.message}`);
    throw error;
  }
}

function parse(body: Buffer): unknown {
  try {
    if (!isDeeperThan(body, MAX_JSON_DEPTH)) return JSON.parse(utf8.decode(body));
  } catch {
    throw new NoProof('the answer of the gateway is no JSON');
  }
  throw new NoProof(`the answer of the gateway is nested deeper than ${MAX_JSON_DEPTH} levels`);
}
