import { Refusal } from '../../plugins-sdk/index.ts';
import { TOO_DEEP } from '../shared/parameter-value.ts';

/** Makes the body of a refusal: clients of ERC-3668 show `message`, those of this service `error`. */
export function refusalBody(message: string) {
  return { error: message, message };
}

/** A cache on the way would give an old answer, of a GET without this header, to contracts that want a new one. */
export const NOT_KEPT = { 'Cache-Control': 'no-store' };

function refusal(status: number, message: string): () => Refusal {
  return () => new Refusal(status, message, { body: refusalBody(message), headers: NOT_KEPT });
}

/** The gateway's own refusals, before an endpoint is asked. */
export const refusals = {
  body: refusal(400, 'Request body must be {"data": "0x…", "sender": "0x…"}'),
  sender: refusal(400, 'sender must be an address: 0x and 40 hex digits'),
  data: refusal(400, 'data must be bytes: 0x and an even number of hex digits'),
  selector: refusal(404, 'Unknown selector: data must call ask(bytes32,string)'),
  call: refusal(400, 'data must be the ABI encoding of ask(bytes32 endpointId, string parameters)'),
  parameters: refusal(
    400,
    'parameters must be the text of a JSON object, without numbers of more digits than a double has',
  ),
  tooDeep: refusal(400, TOO_DEEP),
  closed: refusal(403, 'The endpoint needs a key or a payment, and contracts have neither'),
  unfit: refusal(400, 'The endpoint is not for contracts: they need mode sync, an encoding and no encrypt'),
};
