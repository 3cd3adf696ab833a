/** What plugins get and leave in the pipeline is checked, frozen and signed as shown. */

import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import Koa from 'koa';
import { control, Exchange } from '../../kernel/exchange.ts';
import { type EndpointRequest, serve as serveRequest } from '../../kernel/pipeline.ts';
import { Refusal } from '../../kernel/refusal.ts';
import { register } from '../../kernel/registry.ts';
import type { Parameters, Question, RequestOutcome, SignedResponse } from '../../kernel/values.ts';
import { randomId } from '../../lib/eth/hex.ts';
import { AskedQuestion } from '../../plugins-sdk/question-and-answer.ts';
import { madeHere } from '../../plugins-sdk/results/answers.ts';
import { contractsFor } from '../../plugins-sdk/results/contracts.ts';
import { markChecked } from '../../plugins-sdk/signing/signed.ts';
import type { AroundCall } from '../../plugins-sdk/stage-functions.ts';
import { turns } from '../support/fuzz/situation.ts';

const ID = `0x${'11'.repeat(32)}` as const;
const NODE = `0x${'22'.repeat(20)}` as const;
const SIGNATURE = `0x${'33'.repeat(65)}` as const;

const contracts = contractsFor({ signers: [], now: () => 7000, endpoints: { has: () => true } });
const outgoing = { method: 'GET', url: 'http://upstream.example/', headers: {}, body: undefined };

type Run = (options?: object) => Promise<{ readonly json: string }>;

function questionOf(parameters: Parameters): AskedQuestion {
  const requestFor = (changed: Parameters) => ({ ...outgoing, body: JSON.stringify(changed) });
  return new AskedQuestion({
    ...{ parameters, reserved: {}, request: requestFor(parameters), requestHash: undefined },
    key: () => 'key',
    requestFor,
  });
}

/** A pipeline of one plugin, whose stages are those of an ordinary answer but for the ones given. */
function pipelineOf(
  mode: string,
  hooks: Readonly<Record<string, unknown>>,
  failed: (...told: unknown[]) => void = () => undefined,
) {
  const ordinary = {
    resolve: () => ({ id: ID, api: 'a', name: 'e', mode, auth: [{ type: 'free' }], block: {}, apiBlock: {} }),
    authenticate: { free: () => true },
    present: { sync: (run: Run) => run().then(({ json }) => ({ status: 200, body: json })) },
    prepare: questionOf,
    callApi: () => ({ data: 1, status: 200, text: '1' }),
    encode: () => ({ bytes: '0x01', field: 'data', value: '0x01' }),
    sign: () => markChecked({ node: NODE, signature: SIGNATURE }),
  };
  const plugin = { hooks: { ...ordinary, ...hooks } };
  const set = register([{ name: 'p', budget: 'none', plugin }], { contracts, complain: () => undefined });
  const runtime = { now: () => 7000, makeAnswer: madeHere, failed };
  return {
    drained: () => set.running.wait(),
    serve: (request: EndpointRequest) => serveRequest(set, runtime, request),
  };
}

function newExchange(): Exchange {
  return new Exchange({ requestId: randomId(), method: 'POST', route: '/', headers: {}, socketAddress: '127.0.0.1' });
}

/** One request through such a pipeline. */
function serve(mode: string, hooks: Readonly<Record<string, unknown>>, pipeline = pipelineOf(mode, hooks)) {
  return begin(mode, hooks, pipeline).response;
}

/** The same, for whoever wants the client to leave, or the pipeline to stop, meanwhile. */
function begin(mode: string, hooks: Readonly<Record<string, unknown>>, pipeline = pipelineOf(mode, hooks)) {
  const exchange = newExchange();
  const request = new IncomingMessage(new Socket());
  const ctx = new Koa().createContext(request, new ServerResponse(request));
  const httpRequest = { request, ctx, readBody: async () => Buffer.alloc(0) };
  return {
    pipeline,
    exchange,
    response: pipeline.serve({ exchange, endpointId: ID, httpRequest, responded: Promise.resolve() }),
  };
}

/** Work that goes on once it is released. */
function heldWork() {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { held, release };
}

/** The answer that shows `data`. */
function bodyWith(data: string): string {
  return `{"node":"${NODE}","endpointId":"${ID}","timestamp":7,"data":"${data}","signature":"${SIGNATURE}"}`;
}

describe('what a plugin gets is its own to look at only', () => {
  const quietly = (change: () => unknown): void => {
    try {
      change();
    } catch {
      // Frozen.
    }
  };

  it('the request to sign', async () => {
    const signed: unknown[] = [];
    const sign = (request: { data: string; endpointId: string }) => {
      quietly(() => Object.assign(request, { data: '0x02' }));
      quietly(() => Object.assign(request, { endpointId: '0x02' }));
      const { data, endpointId } = request;
      signed.push({ data, endpointId });
      return markChecked({ node: NODE, signature: SIGNATURE });
    };
    assert.deepEqual(await serve('sync', { sign }), { status: 200, body: bodyWith('0x01') });
    assert.deepEqual(signed, [{ data: '0x01', endpointId: ID }]);
  });

  it('the response, down to its data', async () => {
    const seen: unknown[] = [];
    const encode = (response: { data: { price: number }; text?: string }) => {
      quietly(() => Object.assign(response, { data: 9, text: '9' }));
      quietly(() => Object.assign(response.data, { price: 9 }));
      seen.push(response);
      return { bytes: '0x01', field: 'data', value: '0x01' };
    };
    const callApi = () => ({ data: { price: 1 }, status: 200, text: '{"price":1}' });
    await serve('sync', { callApi, encode });
    assert.deepEqual(seen, [{ status: 200, data: { price: 1 }, text: '{"price":1}' }]);
  });

  it('the parameters', async () => {
    const asked: unknown[] = [];
    const parseBody = () => ({ list: [1] });
    const validate = (given: { list: number[] }) => {
      quietly(() => given.list.push(2));
      return undefined;
    };
    const prepare = (given: Parameters) => {
      asked.push(given);
      return questionOf(given);
    };
    await serve('sync', { parseBody, validate, prepare });
    assert.deepEqual(asked, [{ list: [1] }]);
  });
});

it('what stands beside a signature is not named as the value is', async () => {
  const hooks = {
    encode: () => ({ bytes: '0x01', field: 'price', value: '0x01' }),
    sign: () => markChecked({ node: NODE, signature: SIGNATURE, extra: { price: 2 } }),
  };
  await assert.rejects(serve('sync', hooks), { status: 500, reason: /two members of an answer are named price/ });
});

describe('what is shown is what was signed', () => {
  it('whatever a plugin does with its object after it gave it', async () => {
    const own = { bytes: '0x01', field: 'data', value: '0x01', json: '"0x03"' };
    const signed: unknown[] = [];
    const sign = ({ data }: { readonly data: string }) => {
      signed.push(data);
      own.bytes = '0x02';
      own.value = '0x02';
      own.field = 'other';
      return markChecked({ node: NODE, signature: SIGNATURE });
    };
    assert.deepEqual(await serve('sync', { encode: () => own, sign }), { status: 200, body: bodyWith('0x01') });
    assert.deepEqual(signed, ['0x01']);
  });

  it('also when later stages answer late, and change it', async () => {
    const encrypt = async (data: string) => `${data}ee`;
    const onBeforeSign = async ({ data }: { readonly data: string }) => ({ data: `${data}ff` });
    assert.deepEqual(await serve('sync', { encrypt, onBeforeSign }), { status: 200, body: bodyWith('0x01eeff') });
  });
});

describe('what a mode has given up on', () => {
  for (const stage of ['encode', 'encrypt', 'onBeforeSign'] as const) {
    it(`is neither signed nor approved, though ${stage} took its time`, async () => {
      const seen: string[] = [];
      const { held, release } = heldWork();
      const slow = {
        encode: () => held.then(() => ({ bytes: '0x01', field: 'data', value: '0x01' })),
        encrypt: (data: string) => held.then(() => data),
        onBeforeSign: () => held.then(() => undefined),
      };
      let running: Promise<unknown> = Promise.resolve();
      const impatient = (run: Run) => {
        running = run().catch(() => seen.push('refused'));
        throw new Refusal(503, 'Too slow');
      };
      const hooks = {
        [stage]: slow[stage],
        present: { impatient },
        sign: () => void seen.push('signed'),
        approve: () => void seen.push('approved'),
      };
      await assert.rejects(serve('impatient', hooks), { status: 503, message: 'Too slow' });
      release();
      await running;
      assert.deepEqual(seen, ['refused']);
    });
  }

  it('is not approved, though it was signed meanwhile: its payment has been given back', async () => {
    const seen: string[] = [];
    let running: Promise<unknown> = Promise.resolve();
    const impatient = async (run: Run) => {
      running = run().catch(({ reason }) => seen.push(reason));
      await setImmediate();
      throw new Refusal(503, 'Too slow');
    };
    const { held, release } = heldWork();
    const hooks = {
      present: { impatient },
      callApi: (request: unknown) => ({ data: 1, status: 200, text: '1', request }),
      sign: () => {
        seen.push('signed');
        return markChecked({ node: NODE, signature: SIGNATURE });
      },
      attest: () => held,
      concluded: ({ kind }: { kind: string }) => void seen.push(kind),
      approve: () => void seen.push('approved'),
    };
    await assert.rejects(serve('impatient', hooks), { status: 503, message: 'Too slow' });
    release();
    await running;
    assert.deepEqual(seen, ['signed', 'refused', 'the request has ended']);
  });
});

it('the rest of the pipeline may fail although the mode has dropped it', async () => {
  const callApi = async () => {
    throw new Refusal(502, 'API call failed');
  };
  const lazy = (run: Run) => {
    void run();
    return { status: 202, body: '{}' };
  };
  assert.deepEqual(await serve('lazy', { callApi, present: { lazy } }), { status: 202, body: '{}' });
  // A rejection that nobody handles would end the test.
  await setImmediate();
});

describe('a mode that streams without a run', () => {
  const streaming = (leave: (exchange: Exchange) => void) => {
    const kinds: string[] = [];
    const silent = async (_: Run, exchange: Exchange) => {
      leave(exchange);
      return { status: 200, headers: { 'Content-Type': 'text/event-stream' }, body: (async function* () {})() };
    };
    const concluded = ({ kind }: { readonly kind: string }) => void kinds.push(kind);
    return serve('silent', { present: { silent }, concluded }).then(() => kinds);
  };

  it('is concluded when its client leaves', async () => {
    let leave = () => {};
    const kinds = await streaming((exchange) => {
      leave = () => control.disconnect(exchange);
    });
    assert.deepEqual(kinds, []);
    leave();
    assert.deepEqual(kinds, ['refused']);
  });

  it('is concluded where its client has left before', async () => {
    assert.deepEqual(await streaming(control.disconnect), ['refused']);
  });
});

it('shared work that waits for itself through other work is refused', async () => {
  type Sharing = Pick<AroundCall<Question, SignedResponse>, 'share'>;
  const sharedBy = ({ share }: Sharing, key: string, ...inside: string[]): Promise<SignedResponse> =>
    share(key, async (flight) => {
      await setImmediate();
      const [next, ...rest] = inside;
      return next === undefined ? flight.next() : sharedBy(flight as object as Sharing, next, ...rest);
    });
  const answer = (_: unknown, __: Exchange, call: Sharing) => sharedBy(call, 'a', 'b', 'a');
  const pipeline = pipelineOf('sync', { answer });
  const reason = /shared work waits for itself/;
  for (let count = 0; count < 2; count++) await assert.rejects(serve('sync', {}, pipeline), { status: 500, reason });
  await pipeline.drained();
});

it('shared work that nobody waits for any more is waited for by a stop: it may have to tidy up', async () => {
  const ended: string[] = [];
  const { held, release } = heldWork();
  const answer = (_: unknown, exchange: Exchange, { share }: AroundCall<Question, SignedResponse>) => {
    const answer = share('key', async ({ next }) => {
      await held;
      ended.push('work');
      return next();
    });
    control.disconnect(exchange);
    return answer;
  };
  const pipeline = pipelineOf('sync', { answer });
  await assert.rejects(serve('sync', {}, pipeline), { status: 499 });
  const drained = pipeline.drained().then(() => ended.push('drained'));
  await setImmediate();
  release();
  await drained;
  assert.deepEqual(ended, ['work', 'drained']);
});

it('a client that leaves while its answer is signed is gone, whether a plugin approves answers or not', async () => {
  for (const approve of [{}, { approve: () => undefined }]) {
    const told: string[] = [];
    const sign = (_: unknown, exchange: Exchange) => {
      control.disconnect(exchange);
      return markChecked({ node: NODE, signature: SIGNATURE });
    };
    const concluded = ({ kind }: RequestOutcome) => void told.push(kind);
    await assert.rejects(serve('sync', { sign, concluded, ...approve }), { status: 499 });
    assert.deepEqual(told, ['abandoned']);
  }
});

describe('any method authenticates', () => {
  const refuse = (status: number) => () => {
    throw new Refusal(status, `refused ${status}`);
  };
  const asked = (methods: readonly string[], authenticate: Readonly<Record<string, unknown>>) =>
    serve('sync', {
      resolve: () => ({
        ...{ id: ID, api: 'a', name: 'e', mode: 'sync', block: {}, apiBlock: {} },
        auth: methods.map((type) => ({ type })),
      }),
      authenticate,
    }).then(
      ({ status }) => status,
      ({ status, message }) => [status, message],
    );

  it('the first, or a later one, at once or late', async () => {
    assert.equal(await asked(['yes', 'no'], { yes: () => true, no: refuse(401) }), 200);
    assert.equal(await asked(['no', 'yes'], { yes: () => true, no: refuse(401) }), 200);
    assert.equal(await asked(['no', 'yes'], { yes: async () => true, no: async () => refuse(401)() }), 200);
    assert.equal(await asked(['silent', 'yes'], { yes: async () => true, silent: async () => undefined }), 200);
  });

  it('else the last refusal is the answer', async () => {
    const late = async () => refuse(403)();
    assert.deepEqual(await asked(['a', 'b'], { a: late, b: refuse(402) }), [402, 'refused 402']);
    assert.deepEqual(await asked(['b', 'a'], { a: late, b: refuse(402) }), [403, 'refused 403']);
    assert.deepEqual(await asked(['a', 'silent'], { a: late, silent: () => undefined }), [403, 'refused 403']);
    assert.deepEqual(await asked(['silent'], { silent: () => undefined }), [401, 'Unauthorized']);
    assert.deepEqual(await asked([], {}), [401, 'Unauthorized']);
  });

  it('and the log is told once of each fault', async () => {
    const faultsOf = async (...functions: readonly (() => unknown)[]) => {
      const told: unknown[] = [];
      const auth = functions.map((_, at) => ({ type: `${at}` }));
      const hooks = {
        resolve: () => ({ id: ID, api: 'a', name: 'e', mode: 'sync', auth, block: {}, apiBlock: {} }),
        authenticate: { ...functions },
      };
      const pipeline = pipelineOf('sync', hooks, (_, refusal) => void told.push(Object(refusal).status));
      await serve('sync', hooks, pipeline).catch(() => undefined);
      return told;
    };
    const silent = () => undefined;
    assert.deepEqual(await faultsOf(refuse(500), silent), [500]);
    assert.deepEqual(await faultsOf(refuse(500), () => true), [500]);
    assert.deepEqual(await faultsOf(refuse(500), silent, refuse(503)), [500, 503]);
    assert.deepEqual(await faultsOf(refuse(401), () => true), []);
  });
});

/** What observers and the log are told of a request whose mode gives up so many turns after it has begun the rest. */
async function toldOf(encode: object, wait: number): Promise<readonly string[]> {
  const told: string[] = [];
  const hooks = {
    ...encode,
    concluded: () => turns(5),
    present: {
      sync: async (run: Run) => {
        run().catch(() => undefined);
        await turns(wait);
        throw new Refusal(429, 'from the mode');
      },
    },
    onError: ({ error }: { error: Error }) => void told.push(`onError ${error.message}`),
  };
  const failed = (_: unknown, refusal: unknown) => void told.push(`failed ${Object(refusal).message}`);
  await assert.rejects(serve('sync', hooks, pipelineOf('sync', hooks, failed)), { message: 'from the mode' });
  await turns(10);
  return told;
}

const failing = {
  encode: () => {
    throw new Refusal(418, 'from the run');
  },
};

it('of a run and a mode that both fail, observers are told once, of what the client got', async () => {
  const both = ['failed from the mode', 'failed from the run', 'onError from the mode'];
  assert.deepEqual(await toldOf(failing, 2), both);
});

it('of a mode that gives up, observers hear what the client got, and the log of what failed after it', async () => {
  assert.deepEqual(await toldOf({}, 0), ['failed from the mode', 'onError from the mode']);
  const both = ['failed from the run', 'failed from the mode', 'onError from the mode'];
  const failingLater = { encode: () => turns(2).then(failing.encode) };
  assert.deepEqual(await toldOf(failingLater, 0), both);
});

it('a plugin that was asked before the client left is told of nothing in the detached work', () => {
  const exchange = newExchange();
  const charge = control.charge(exchange, 'p', 1000);
  assert.equal(charge?.signal.aborted, false);
  control.disconnect(exchange);
  assert.equal(charge?.signal.aborted, true);
  control.detach(exchange);
  assert.equal(charge?.signal.aborted, false);
});
