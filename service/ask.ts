import { setImmediate as immediate } from 'node:timers/promises';
import { contentOf, responseTo } from '../http/send.ts';
import { onAbort } from '../kernel/charge.ts';
import { control, Exchange } from '../kernel/exchange.ts';
import { type Runtime, serve } from '../kernel/pipeline.ts';
import { asRefusal, errorForLog } from '../kernel/refusal.ts';
import type { PluginSet } from '../kernel/registry.ts';
import { type BodyStream, isStream, type Parameters } from '../kernel/values.ts';
import { deferred } from '../lib/time.ts';
import { askedFor } from '../plugins-sdk/context-key.ts';
import { takeParameters } from '../plugins-sdk/hooks/results.ts';
import type { AskedResponse, AskOptions } from '../plugins-sdk/services.ts';

/** A request that a plugin makes on behalf of a client. */
interface Asked extends Partial<AskOptions> {
  /** The plugin that asks. */
  readonly plugin: string;
  /** The endpoint's id. */
  readonly id: string;
  readonly parameters: Parameters;
}

/** The most requests in one chain in which each asks for the next. */
const MAX_DEPTH = 8;

/** Checks that a chain of requests that ask for each other ends. @throws Error */
function checkChain(as: Exchange, id: string): void {
  let depth = 0;
  for (let one: Exchange | undefined = as; one !== undefined; one = askedFor.get(one)) {
    if (one.resolved?.id === id.toLowerCase()) throw new Error('an endpoint asks for itself');
    if (one.resolved !== undefined) depth += 1;
  }
  if (depth >= MAX_DEPTH) throw new Error(`requests ask for each other, more than ${MAX_DEPTH} deep`);
}

/** Passes a plugin's request through the pipeline as if the client had sent it. @throws Error when the answer is a stream. */
export async function ask(plugins: PluginSet, runtime: Runtime, asked: Asked): Promise<AskedResponse> {
  const { as, plugin, id, mode } = asked;
  if (typeof id !== 'string') throw new TypeError('services.ask takes the id of an endpoint');
  if (!control.isExchange(as))
    throw new TypeError('services.ask takes {as: exchange}, the request on whose behalf it asks');
  const { requestId, method, route, socketAddress } = as;
  const headers = { ...as.headers, ...asked.headers };
  // The request keeps the client's request ID: under that ID operators find what was done for the client.
  const exchange = new Exchange({ requestId, method, route, headers, socketAddress });
  control.receive(exchange, parametersOf(asked));
  const charge = control.chargeOf(as, plugin);
  charge?.requireTime();
  checkChain(as, id);
  askedFor.set(exchange, as);
  // Timers and other clients get a turn between two requests, however fast a plugin asks.
  await immediate();
  const over = deferred<void>();
  const answer = async () => {
    await plugins.hooks.admit.ask([exchange]);
    return serve(plugins, runtime, { exchange, endpointId: id, mode, responded: over.promise });
  };
  const ended = onAbort(as.clientSignal, () => control.disconnect(exchange));
  const refused = (error: unknown) => {
    const refusal = asRefusal(error);
    control.setOutcome(exchange, { kind: 'refused', refusal });
    return responseTo(refusal);
  };
  const respond = () => answer().catch(refused);
  const { status, headers: answered, body } = await (charge?.uncharged(respond) ?? respond());
  ended();
  plugins.observer.response?.(exchange, status);
  over.resolve();
  if (isStream(body)) return refuseStream(exchange, body);
  return { status, headers: { ...answered }, body: Buffer.from(contentOf(body)).toString() };
}

/** Reads the parameters of a plugin's request; the rules are those for parameters that hooks return. @throws TypeError */
function parametersOf({ parameters }: Asked): Parameters {
  try {
    return takeParameters({ parameters });
  } catch (error) {
    throw new TypeError(`parameters: ${errorForLog(error, 'message')}`);
  }
}

/** Closes the stream and refuses it: it may never end, and the plugin waits for a whole answer. @throws Error */
async function refuseStream(exchange: Exchange, body: BodyStream): Promise<never> {
  await body[Symbol.asyncIterator]().return?.();
  control.disconnect(exchange);
  throw new Error('the endpoint answers with a stream, which can only be sent to its client');
}
