/** A node that misbehaves ends in a clear 401 in bounded time, and burns no payment. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';
import { inSeconds, payer, payNative, prove, type Question, relay, termsOn, withResult } from '../support/x402.ts';

const PRICE = 1_000_000n;
const UNAVAILABLE = 'Payment verification unavailable';
const SECRET = 'secret-key-in-the-path';
const METHODS = ['eth_chainId', 'eth_getTransactionByHash', 'eth_getTransactionReceipt', 'eth_getBlockByNumber'];

describe('x402: a node that misbehaves ends in a clear 401 in bounded time, and burns nothing', async () => {
  const [chain, upstream, rpc] = await Promise.all([chainFor(suite), upstreamFor(suite), upstreamFor(suite)]);
  const alice = payer(chain, 2);
  upstream.json('/p', 1);

  const url = `${rpc.url.replace('http://', 'http://user:p%40ss@')}/${SECRET}?token=${SECRET}`;
  const terms = { ...termsOn(chain, PRICE), rpc: url };
  const [down, wrong] = [
    { ...terms, rpc: 'http://127.0.0.1:9/' },
    { ...terms, network: 1 },
  ];
  const auths = { paid: terms, down, wrong, three: [terms, wrong, down], fallback: [down, terms] };
  const endpoints = Object.entries(auths).map(([name, auth]) => [name, { path: `/p?${name}`, auth }] as const);
  const server = { rateLimit: { max: 1_000_000, x402: { max: 1_000_000 } } };
  // Its nodes have four fifths of this.
  const settings = { plugins: [{ source: 'builtin:auth-x402', timeout: 2500 }] };
  const more = { server, settings, api: { name: 'a' } };
  const service = await serviceFor(suite, oneApi(upstream.url, Object.fromEntries(endpoints), more));
  /** One payment for every test: none of them may use it up. */
  const paid = await payNative(alice, PRICE);
  beforeEach(() => {
    rpc.on('*', relay(chain.url));
    rpc.requests.length = 0;
    upstream.requests.length = 0;
    service.logs.length = 0;
  });

  const send = async (endpoint: string, txHash = paid) => {
    const proof = await prove(alice, { node: TEST_ADDRESS, endpointId: service.ids[`a/${endpoint}`], txHash });
    return service.post(`a/${endpoint}`, {}, { 'X-Payment-Proof': JSON.stringify(proof) });
  };
  const unavailable = async (endpoint = 'paid') => {
    await assertRefused(await send(endpoint), 401, UNAVAILABLE);
    assert.deepEqual(upstream.requests, []);
  };
  /** What the operator finds in the log, beside the line of the request itself. */
  const reasons = () => {
    const lines = service.logs.filter(({ level, fields }) => fields.detail && level !== 'info');
    return lines.map(({ level, fields }) => [level, fields.detail]);
  };
  /** Applies a fault to one method and passes on the rest. */
  const only =
    (method: string, fault: Handler): Handler =>
    (req, res, recorded) =>
      (JSON.parse(recorded.body).method === method ? fault : relay(chain.url))(req, res, recorded);
  /** Has the node answer what this makes of its answers. */
  const answering = (change: (answer: object, question: Question) => unknown) => rpc.on('*', relay(chain.url, change));
  const onAnotherChain = withResult('eth_chainId', () => '0x1');

  describe('transport', () => {
    const broken: Record<string, Handler> = {
      'never answers': faults.hang(),
      'stops after the headers': faults.hangAfterHeaders(),
      drips: faults.drip(JSON.stringify({ jsonrpc: '2.0', id: 1, result: '0x7a69', padding: 'x'.repeat(1000) })),
      'floods without end': faults.endless(),
      'sends a huge body': faults.big(8 * 1024 * 1024),
      'sends a huge body in chunks': faults.chunked(2 * 1024 * 1024),
      'sends a bomb': faults.coded('gzip', Buffer.alloc(8 * 1024 * 1024)),
      'sends HTML': faults.html(),
      'sends no JSON': faults.invalidJson(),
      'sends deep nesting': faults.nested(200_000),
      'sends nothing': faults.text(''),
      'is out of order': faults.serverError(),
      'limits the rate': faults.text('{"jsonrpc":"2.0","id":1,"error":{"code":-32005}}', { status: 429 }),
      redirects: faults.redirect('https://example.com/'),
      'resets the connection': faults.reset(),
      'closes half way': faults.closeHalfWay(),
    };
    for (const [what, fault] of Object.entries(broken)) {
      it(`a node that ${what}`, async () => {
        rpc.on('*', fault);
        await unavailable();
        rpc.on('*', only('eth_getBlockByNumber', fault));
        await unavailable();
        assert.equal(reasons().length, 2);
        await rpc.untilIdle();
      });
    }

    it('a node that is down', async () => {
      await unavailable('down');
      assert.equal(
        reasons()
          .map(([level]) => level)
          .join(),
        'warn',
      );
    });
  });

  describe('protocol', () => {
    const error = (fields: object) => (answer: object) => {
      const { result: _, ...rest } = answer as { result?: unknown };
      return { ...rest, error: fields };
    };
    const lies: Record<string, (answer: object, question: Question) => unknown> = {
      'an error': error({ code: -32000, message: `no such key ${SECRET}` }),
      'an error beside a result': (answer) => ({ ...answer, error: { code: 1, message: 'x' } }),
      'an error that is a text': error('x' as unknown as object),
      'another id': (answer) => ({ ...answer, id: 4711 }),
      'the id as text': (answer, { id }) => ({ ...answer, id: String(id) }),
      'no id': ({ id: _, ...answer }: { id?: unknown }) => answer,
      'no version': ({ jsonrpc: _, ...answer }: { jsonrpc?: unknown }) => answer,
      'another version': (answer) => ({ ...answer, jsonrpc: '1.0' }),
      'no result': ({ result: _, ...answer }: { result?: unknown }) => answer,
      'a batch': (answer) => [answer],
      null: () => null,
      'a text': () => 'x',
      'a result that is a text': (answer) => ({ ...answer, result: 'x' }),
      'a result that is a number': (answer) => ({ ...answer, result: 31337 }),
      'a result that is an empty object': (answer) => ({ ...answer, result: {} }),
      'a result that is true': (answer) => ({ ...answer, result: true }),
    };
    for (const [what, lie] of Object.entries(lies)) {
      it(`a node that answers with ${what}, whatever it is asked`, async () => {
        for (const method of METHODS) {
          answering((answer, question) => (question.method === method ? lie(answer, question) : answer));
          await unavailable();
        }
        assert.equal(reasons().length, METHODS.length);
      });
    }

    const shapes: [string, string, object][] = [
      ['eth_getTransactionByHash', 'another transaction', { hash: `0x${'12'.repeat(32)}` }],
      ['eth_getTransactionByHash', 'no sender', { from: undefined }],
      ['eth_getTransactionByHash', 'half a sender', { from: '0x12' }],
      ['eth_getTransactionByHash', 'a value in decimal', { value: '1000000' }],
      ['eth_getTransactionByHash', 'a value with zeros in front', { value: '0x000f4240' }],
      ['eth_getTransactionByHash', 'a value beyond 256 bits', { value: `0x1${'0'.repeat(64)}` }],
      ['eth_getTransactionByHash', 'a number as value', { value: 1_000_000 }],
      ['eth_getTransactionReceipt', 'another transaction', { transactionHash: `0x${'12'.repeat(32)}` }],
      ['eth_getTransactionReceipt', 'a status in words', { status: 'success' }],
      ['eth_getTransactionReceipt', 'no logs', { logs: null }],
      ['eth_getTransactionReceipt', 'logs that are none', { logs: [1] }],
      ['eth_getTransactionReceipt', 'no block', { blockHash: null }],
      ['eth_getBlockByNumber', 'no time', { timestamp: undefined }],
      ['eth_getBlockByNumber', 'a time beyond all time', { timestamp: `0x${'f'.repeat(64)}` }],
      ['eth_getBlockByNumber', 'a number as time', { timestamp: 1_700_000_000 }],
    ];
    for (const [method, what, change] of shapes) {
      it(`a node whose ${method} has ${what}`, async () => {
        answering(withResult(method, (result) => ({ ...result, ...change })));
        await unavailable();
      });
    }

    it('a node of another chain', async () => {
      await unavailable('wrong');
      assert.deepEqual(reasons(), [['warn', 'the chain is 31337, not 1']]);
      answering(onAnotherChain);
      await unavailable();
    });

    it('a node that changes to another chain behind its name', async () => {
      const once = await payNative(alice, PRICE);
      await verifyRaw(await send('paid', once), TEST_ADDRESS);
      upstream.requests.length = 0;
      answering(onAnotherChain);
      await unavailable();
    });
  });

  it('every payment that an endpoint accepts gets its share of the time', async () => {
    rpc.on('*', faults.hang());
    await unavailable('three');
    rpc.on('*', relay(chain.url));
    const other = await payNative(alice, PRICE);
    await verifyRaw(await send('fallback', other), TEST_ADDRESS);
  });

  it('nothing is asked for a proof that is wrong by itself', async () => {
    const endpointId = service.ids['a/paid'];
    const proof = await prove(alice, { node: TEST_ADDRESS, endpointId, txHash: paid });
    const wrong = [
      { ...proof, expiresAt: inSeconds(-1) },
      { ...proof, expiresAt: inSeconds(3600) },
      { ...proof, signature: `0x${'00'.repeat(65)}` },
    ];
    const statusOf = async (sent: typeof proof) =>
      (await service.post('a/paid', {}, { 'X-Payment-Proof': JSON.stringify(sent) })).status;
    for (const each of wrong) assert.equal(await statusOf(each), 401);
    assert.equal(await statusOf({ ...proof, txHash: '0x' }), 402);
    assert.deepEqual(rpc.requests, []);
  });

  it('neither address nor key of the node is ever shown; the password goes where it belongs', async () => {
    answering((answer) => ({ ...answer, error: { code: -1, message: SECRET } }));
    await unavailable();
    rpc.on('*', faults.serverError());
    await unavailable();
    const text = JSON.stringify(service.logs);
    for (const secret of [SECRET, 'p%40ss', 'p@ss', paid.slice(2)]) assert.ok(!text.includes(secret), secret);
    const [first] = rpc.requests;
    assert.equal(first?.headers.authorization, `Basic ${Buffer.from('user:p@ss').toString('base64')}`);
    assert.equal(first?.path, `/${SECRET}?token=${SECRET}`);
    assert.equal(first?.headers['content-type'], 'application/json');
  });

  it('after all that the payment is as good as new, and good for one answer', async () => {
    await verifyRaw(await send('paid'), TEST_ADDRESS);
    await assertRefused(await send('paid'), 401, 'Payment already used');
  });
});
