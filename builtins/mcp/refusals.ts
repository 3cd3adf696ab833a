import { Refusal } from '../../plugins-sdk/index.ts';

/** What is refused before the protocol has its turn. */
export const refusals = {
  host: () => new Refusal(403, 'Host or Origin not allowed: the operator can add it to settings.mcp.hosts'),
  batch: () => new Refusal(400, 'Batches are not supported: send one message per request'),
};
