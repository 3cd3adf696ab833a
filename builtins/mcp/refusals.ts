import { Refusal } from '../../plugins-sdk/index.ts';

/** Refusals before the message reaches the protocol's library. */
export const refusals = {
  host: () => new Refusal(403, 'Host or Origin not allowed: the operator can add it to settings.mcp.hosts'),
  batch: () => new Refusal(400, 'Batches are not supported: send one message per request'),
};
