/** A payer who signs in reads again what he has bought, and nobody else does. */

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { afterEach, before, describe, it } from 'node:test';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import {
  createSIWxClientExtension,
  createSIWxMessage,
  createSIWxPayload,
  createSIWxResourceServerExtension,
  declareSIWxExtension,
  type EVMSigner,
  encodeSIWxHeader,
  InMemorySIWxStorage,
  verifySIWxSignature,
  wrapFetchWithSIWx,
} from '@x402/extensions/sign-in-with-x';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { Wallet } from 'ethers';
import { finished, submitted } from '../support/async.ts';
import { errorsOf } from '../support/config.ts';
import { assertRefused, endpointUrl, JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { type Account, askedFor, exactTerms, PRICE, paidBy, payloadFor, settledAs } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

const ORIGIN = 'https://shop.example';
const HEADER = 'SIGN-IN-WITH-X';
const NOT_BOUGHT = 'This wallet has bought no answer to this request within an hour';
const CONTRACT = 'Sign in with an account of its own key: wallets that are contracts cannot sign in';

describe('x402-exact: payers who sign in', async () => {
  const shop = await shopFor(suite);
  const auth = { ...shop.auth, publicUrl: ORIGIN, signIn: true };
  const nowhere = exactTerms(shop.market, 'http://127.0.0.1:9', { amount: '1' });
  const endpoints = {
    'two methods': { auth: [auth, nowhere] },
    e: { parameters: [{ name: 'x' }] },
    other: {},
    async: { mode: 'async', path: '/later' },
    streamed: { mode: 'stream' },
  };
  const service = await serviceFor(suite, shop.config(endpoints, {}, { auth }));

  afterEach(() => {
    shop.facilitator.reset();
    shop.upstream.json('/p', { price: 7 });
  });

  /** What clients know as the shop's URL leads to the service. */
  const reach: typeof fetch = async (input, init) => {
    const asked = new Request(input, init);
    const response = await fetch(service.url + new URL(asked.url).pathname, {
      ...{ method: asked.method, headers: asked.headers },
      ...(asked.method === 'POST' && { body: await asked.text() }),
    });
    return new Response(response.body, response);
  };
  const post = (by: typeof fetch, endpoint: string, parameters: object = {}) =>
    by(`${ORIGIN}/endpoints/${service.ids[endpoint]}`, {
      ...{ method: 'POST', headers: JSON_HEADERS, body: JSON.stringify({ parameters }) },
    });
  const wallet = () => shop.market.wallet(PRICE * 20n);
  const buy = async (account: Account, endpoint = 'a/e', parameters: object = {}) =>
    service.post(endpoint, parameters, paidBy(await payloadFor(service, endpoint, account)));
  /** What a wallet is asked to sign. */
  const challengeFor = async (endpoint = 'a/e') => {
    const { info, supportedChains } = (await askedFor(await service.post(endpoint))).extensions['sign-in-with-x'];
    return { ...info, ...supportedChains[0] };
  };
  const signedIn = async (account: EVMSigner, changes: object = {}, endpoint = 'a/e', origin = ORIGIN) => {
    const info = { ...(await challengeFor(endpoint)), ...changes };
    return createSIWxPayload(info, account, origin);
  };
  const read = (payload: object, endpoint = 'a/e', parameters: object = {}) =>
    service.post(endpoint, parameters, { [HEADER]: Buffer.from(JSON.stringify(payload)).toString('base64') });
  /** Asserts that just so much was paid meanwhile. */
  const costs = async (account: Account, amount: bigint, work: () => Promise<unknown>) => {
    const had = await shop.market.balance(account.address);
    await work();
    assert.equal(await shop.market.balance(account.address), had - amount);
  };
  /** Asserts that a sign-in is answered by terms of payment, with a new challenge. */
  const assertTerms = async (response: Response, error: string) => {
    assert.deepEqual([response.status, (await askedFor(response)).error], [402, error]);
    assert.ok((await askedFor(response)).extensions['sign-in-with-x'].info.nonce);
  };

  it('are challenged as the server part of the library does it, each time anew', async () => {
    const { network } = shop.market;
    const url = `${ORIGIN}/endpoints/${service.ids['a/e']}`;
    const declared = declareSIWxExtension({ network, expirationSeconds: 300 })['sign-in-with-x'];
    const server = createSIWxResourceServerExtension({ origin: ORIGIN, storage: new InMemorySIWxStorage() });
    const context = { resourceInfo: { url }, requirements: [] } as unknown;
    type Enrich = NonNullable<typeof server.enrichPaymentRequiredResponse>;
    const made = await server.enrichPaymentRequiredResponse?.(declared, context as Parameters<Enrich>[1]);
    const { extensions, accepts } = await askedFor(await service.post('a/e'));
    const { info, ...rest } = extensions['sign-in-with-x'];
    const { info: theirs, ...expected } = made as { info: object };
    assert.deepEqual(rest, expected);
    const { nonce, issuedAt, expirationTime } = info;
    assert.deepEqual(info, { ...theirs, nonce, issuedAt, expirationTime });
    assert.equal(Date.parse(expirationTime) - Date.parse(issuedAt), 300_000);
    assert.equal(accepts[0].network, network);
    assert.notEqual((await challengeFor()).nonce, nonce);
  });

  it('with the public client, which knows nothing of this service, pay once and read again', async () => {
    const alice = await wallet();
    const client = x402Client.fromConfig({
      schemes: [{ network: shop.market.network, client: new ExactEvmScheme(alice) }],
      spendControls: false,
    });
    client.registerExtension(createSIWxClientExtension({ signers: [alice] }));
    const fetchOf = wrapFetchWithPayment(reach, client);
    await costs(alice, PRICE * 2n, async () => {
      const first = await post(fetchOf, 'a/e', { x: '1' });
      const text = await first.clone().text();
      await verifyEncoded(first, TEST_ADDRESS);
      const [calls, settled] = [shop.upstream.requests.length, shop.facilitator.asked('/settle')];
      const again = await post(fetchOf, 'a/e', { x: '1' });
      assert.equal(await again.text(), text);
      assert.deepEqual(settledAs(again), settledAs(first));
      assert.deepEqual([shop.upstream.requests.length, shop.facilitator.asked('/settle')], [calls, settled]);
      const told = shop.facilitator.requests.map(({ body }) => body).filter((body) => body.includes(alice.address));
      assert.deepEqual([told.length, told.some((body) => body.includes('sign-in-with-x'))], [2, false]);
      // What was not bought is.
      await verifyEncoded(await post(fetchOf, 'a/e', { x: '2' }), TEST_ADDRESS);
    });
  });

  it('with a wallet of viem or of ethers read again what they have bought last', async () => {
    const alice = await wallet();
    await buy(alice);
    shop.upstream.json('/p', { price: 8 });
    const text = await (await buy(alice)).text();
    const ethers = new Wallet(alice.key);
    const signers: EVMSigner[] = [
      alice,
      { address: ethers.address, signMessage: ({ message }) => ethers.signMessage(message) },
    ];
    await costs(alice, 0n, async () => {
      for (const signer of signers)
        assert.equal(await (await post(wrapFetchWithSIWx(reach, signer), 'a/e')).text(), text);
    });
  });

  it('read the answer of an async request again, and hear that it is not there yet', async () => {
    const alice = await wallet();
    let send: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      send = resolve;
    });
    shop.upstream.on('/later', async (_, response) => {
      await held;
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"price":7}');
    });
    await costs(alice, PRICE, async () => {
      const begun = await submitted(await buy(alice, 'a/async'));
      const early = await read(await signedIn(alice, {}, 'a/async'), 'a/async');
      assert.equal(early.headers.get('retry-after'), '1');
      await assertRefused(early, 409, 'The answer is not there yet, try again');
      send();
      const first = await finished(service, begun);
      const again = await submitted(await read(await signedIn(alice, {}, 'a/async'), 'a/async'));
      assert.notEqual(again.requestId, begun.requestId);
      assert.deepEqual(await finished(service, again), {
        ...first,
        requestId: again.requestId,
        pollUrl: again.pollUrl,
      });
      assert.equal(settledAs(await fetch(service.url + again.pollUrl)).success, true);
    });
  });

  it('read the event of a stream again', async () => {
    const alice = await wallet();
    const first = await (await buy(alice, 'a/streamed')).text();
    await costs(alice, 0n, async () => {
      const again = await read(await signedIn(alice, {}, 'a/streamed'), 'a/streamed');
      assert.equal(again.headers.get('content-type'), 'text/event-stream');
      assert.equal(await again.text(), first);
    });
  });

  it('that have paid for nothing get the terms: where nothing was settled, for another request, for another wallet', async () => {
    const [alice, bob] = [await wallet(), await wallet()];
    await assertTerms(await read(await signedIn(alice)), NOT_BOUGHT);
    shop.upstream.on('/p', faults.serverError());
    await assertRefused(await buy(alice), 502, 'API call failed');
    shop.upstream.json('/p', { price: 7 });
    shop.facilitator.on('/settle', faults.serverError());
    await assertRefused(await buy(alice), 401, 'Payment verification unavailable');
    shop.facilitator.reset();
    await assertTerms(await read(await signedIn(alice)), NOT_BOUGHT);
    assert.equal((await buy(alice)).status, 200);
    await assertTerms(await read(await signedIn(alice), 'a/e', { x: '1' }), NOT_BOUGHT);
    await assertTerms(await read(await signedIn(alice, {}, 'a/other'), 'a/other'), NOT_BOUGHT);
    await assertTerms(await read(await signedIn(bob)), NOT_BOUGHT);
    assert.equal((await read(await signedIn(alice))).status, 200);
  });

  it('use a challenge once, though they had bought nothing then; two at once, too', async () => {
    const alice = await wallet();
    const early = await signedIn(alice);
    await assertTerms(await read(early), NOT_BOUGHT);
    await buy(alice);
    await assertTerms(await read(early), 'invalid_siwx_nonce');
    const once = await signedIn(alice);
    const answers = await Promise.all(Array.from({ length: 5 }, () => read(once)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 402, 402, 402, 402]);
    // A stranger who has seen it uses it up for himself alone.
    const seen = await signedIn(alice);
    const { nonce, issuedAt, expirationTime } = seen;
    await read(await signedIn(await wallet(), { nonce, issuedAt, expirationTime }));
    assert.equal((await read(seen)).status, 200);
  });

  it('are heard once, whichever method of an endpoint they have paid by', async () => {
    const alice = await wallet();
    await assertTerms(await read(await signedIn(alice, {}, 'a/two methods'), 'a/two methods'), NOT_BOUGHT);
    const bought = await service.post('a/two methods', {}, paidBy(await payloadFor(service, 'a/e', alice)));
    const again = await read(await signedIn(alice, {}, 'a/two methods'), 'a/two methods');
    assert.equal(await again.text(), await bought.text());
  });

  it('beside a payment are not heard: it buys', async () => {
    const alice = await wallet();
    await buy(alice);
    const header = encodeSIWxHeader(await signedIn(alice));
    await costs(alice, PRICE, async () => {
      const headers = { [HEADER]: header, ...paidBy(await payloadFor(service, 'a/e', alice)) };
      await verifyEncoded(await service.post('a/e', {}, headers), TEST_ADDRESS);
    });
    assert.equal((await service.post('a/e', {}, { [HEADER]: header })).status, 200);
  });

  describe('are refused, and nobody is asked or paid, with', () => {
    let alice: Account;
    before(async () => {
      alice = await wallet();
      await buy(alice);
    });
    const ago = (milliseconds: number, life = 300_000) => {
      const issued = Date.now() - milliseconds;
      const [issuedAt, expirationTime] = [new Date(issued), new Date(issued + life)].map((time) => time.toISOString());
      return { issuedAt, expirationTime };
    };
    const evil = { domain: 'evil.example', uri: 'https://evil.example/endpoints/0x' };
    const other = () => `${ORIGIN}/endpoints/${service.ids['a/other']}`;
    const changed = (changes: object) => async () => ({ ...(await signedIn(alice)), ...changes });
    type Case = readonly [payload: () => Promise<object>, error: string];
    const cases: Readonly<Record<string, Case>> = {
      'another domain': [() => signedIn(alice, evil, 'a/e', 'https://evil.example'), 'invalid_siwx_domain_mismatch'],
      'another domain, said to be this one': [
        async () => ({ ...(await signedIn(alice, evil, 'a/e', 'https://evil.example')), ...(await challengeFor()) }),
        'invalid_siwx_signature',
      ],
      'another endpoint': [() => signedIn(alice, {}, 'a/other'), 'invalid_siwx_uri_mismatch'],
      'another endpoint, said to be this one': [
        async () => ({ ...(await signedIn(alice, {}, 'a/other')), uri: (await challengeFor()).uri }),
        'invalid_siwx_signature',
      ],
      'the resources of another endpoint': [() => signedIn(alice, { resources: [other()] }), 'invalid_siwx_signature'],
      'a chain that is not served': [() => signedIn(alice, { chainId: 'eip155:1' }), 'invalid_siwx_unsupported_chain'],
      'no chain': [changed({ chainId: 'eip155:31337\n' }), 'invalid_siwx_unsupported_chain'],
      'a challenge that has expired': [() => signedIn(alice, ago(300_001)), 'invalid_siwx_expired'],
      'a time that was changed': [changed(ago(1000)), 'invalid_siwx_signature'],
      'a longer life than was offered': [() => signedIn(alice, ago(0, 900_000)), 'invalid_siwx_signature'],
      'a time to come': [() => signedIn(alice, ago(-90_000)), 'invalid_siwx_issued_at_in_future'],
      'no time': [changed({ issuedAt: 'yesterday' }), 'invalid_siwx_issued_at'],
      'a time of another form': [changed({ issuedAt: '2026-11-25' }), 'invalid_siwx_issued_at'],
      'no nonce': [changed({ nonce: 'short' }), 'invalid_siwx_nonce'],
      'a nonce that is text': [changed({ nonce: 'abcdefgh\nURI: x' }), 'invalid_siwx_nonce'],
      'a nonce that was changed': [changed({ nonce: 'a'.repeat(32) }), 'invalid_siwx_signature'],
      'a statement of its own': [() => signedIn(alice, { statement: 'Pay Mallory' }), 'invalid_siwx_signature'],
      'the name of another wallet': [changed({ address: `0x${'12'.repeat(20)}` }), 'invalid_siwx_signature'],
      'an address that is none': [changed({ address: 'ａlice' }), 'invalid_siwx_signature'],
      'a signature of nothing': [changed({ signature: `0x${'00'.repeat(65)}` }), 'invalid_siwx_signature'],
      'no signature': [changed({ signature: '' }), 'invalid_siwx_signature'],
      'the signature of a contract': [
        changed({ signatureScheme: 'eip1271', signature: `0x${'ab'.repeat(97)}` }),
        CONTRACT,
      ],
      'the signature of a contract that is not there yet': [
        changed({ signatureScheme: 'eip6492', signature: `0x${'6492'.repeat(200)}` }),
        CONTRACT,
      ],
      'a member that is no text': [changed({ nonce: 7 }), 'invalid_siwx_header'],
      'too much': [changed({ statement: 'x'.repeat(4096) }), 'invalid_siwx_header'],
    };
    for (const [name, [payload, error]] of Object.entries(cases))
      it(name, async () => {
        const sent = await payload();
        const asked = [shop.upstream.requests.length, shop.facilitator.requests.length];
        await costs(alice, 0n, async () => assertTerms(await read(sent), error));
        assert.deepEqual([shop.upstream.requests.length, shop.facilitator.requests.length], asked);
      });

    it('what is no header of the protocol', async () => {
      const good = encodeSIWxHeader(await signedIn(alice));
      const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');
      const wrong = [
        '',
        'x',
        '{}',
        `${good}%`,
        `${good}, ${good}`,
        base64('{'),
        base64('null'),
        base64('[]'),
        base64('"a"'),
      ];
      wrong.push(base64(Buffer.from([0xff, 0xfe])), base64(`{"__proto__":${'['.repeat(900)}`), 'A'.repeat(4096));
      for (const header of wrong)
        await assertTerms(await service.post('a/e', {}, { [HEADER]: header }), 'invalid_siwx_header');
      assert.equal((await service.post('a/e', {}, { [HEADER]: good })).status, 200);
    });

    it('the header twice', async () => {
      const header = encodeSIWxHeader(await signedIn(alice));
      const status = await new Promise((resolve, reject) => {
        const headers = { ...JSON_HEADERS, [HEADER]: [header, header] };
        const asking = request(endpointUrl(service, 'a/e'), { method: 'POST', headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        asking.on('error', reject).end('{}');
      });
      assert.equal(status, 402);
    });
  });

  it('sign what the library verifies', async () => {
    const alice = await wallet();
    const payload = await signedIn(alice);
    assert.equal((await verifySIWxSignature(payload)).isValid, true);
    assert.match(createSIWxMessage(await challengeFor(), alice.address), /^shop\.example wants you to sign in/);
  });

  it('are not known where the config does not say so', async (t) => {
    const plain = await serviceFor(t, shop.config({ e: {} }, {}, { auth: { ...shop.auth, publicUrl: ORIGIN } }));
    const response = await plain.post('a/e', {}, { [HEADER]: 'x' });
    const { error, extensions } = await askedFor(response);
    assert.equal(error, 'PAYMENT-SIGNATURE header is required');
    assert.deepEqual(Object.keys(extensions).includes('sign-in-with-x'), false);
  });

  it('sign for a service that knows its name', async () => {
    assert.deepEqual(await errorsOf(shop.config({ e: {} }, {}, { auth: { ...shop.auth, signIn: true } })), [
      'apis[0].auth.signIn: needs "publicUrl", or settings.openapi.servers: a wallet signs for which service it is, which the service must know',
    ]);
    const settings = { openapi: { servers: [ORIGIN] } };
    assert.deepEqual(
      await errorsOf(shop.config({ e: {} }, { settings }, { auth: { ...shop.auth, signIn: true } })),
      [],
    );
  });
});
