/** A node's account signs as a local key does, and each fault has its words. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { getBytes, Signature, Wallet } from 'ethers';
import { signerJsonRpc } from '../../../builtins/signer-json-rpc.ts';
import { CURVE_ORDER } from '../../../lib/eth/eip191.ts';
import { chainFor } from '../../support/chain.ts';
import { suite } from '../../support/lifetime.ts';
import { assertSays, assertSigns, openSigner, refusalOf } from '../../support/statements.ts';
import { faults, type Handler, startUpstream, upstreamFor } from '../../support/upstream.ts';

const ANVIL = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const wallet = new Wallet(`0x${'42'.repeat(32)}`);
const digest = new Uint8Array(32).fill(7);

/** The same signature with the other s, and v as a bare recovery id. */
function otherForm(signature: string): string {
  const { r, s, yParity } = Signature.from(signature);
  const high = (CURVE_ORDER - BigInt(s)).toString(16).padStart(64, '0');
  return `${r}${high}0${1 - yParity}`;
}

type Method = (params: readonly unknown[]) => Promise<unknown>;

const typed = async (value: unknown) => {
  const { domain, types, message } = Object(value);
  const { EIP712Domain: _, ...fields } = types;
  return await wallet.signTypedData(domain, fields, message);
};

const walletMethods: Record<string, Method> = {
  personal_sign: async ([data, from]) => {
    assert.equal(from, wallet.address);
    return otherForm(await wallet.signMessage(getBytes(String(data))));
  },
  eth_signTypedData_v4: async ([from, text]) => {
    assert.equal(from, wallet.address);
    return otherForm(await typed(JSON.parse(String(text))));
  },
};

/** As geth's clef documents its external API. */
const clefMethods: Record<string, Method> = {
  account_signData: async ([type, from, data]) => {
    assert.deepEqual([type, from], ['text/plain', wallet.address]);
    return await wallet.signMessage(getBytes(String(data)));
  },
  account_signTypedData: async ([from, value]) => {
    assert.equal(from, wallet.address);
    return await typed(value);
  },
};

const serving =
  (methods: Record<string, Method>): Handler =>
  async (req, res, recorded) => {
    const { id, method, params } = JSON.parse(recorded.body);
    const found = methods[method];
    const error = { code: -32601, message: `the method ${method} does not exist/is not available` };
    const answer = found === undefined ? { error } : { result: await found(params) };
    return faults.json({ jsonrpc: '2.0', id, ...answer })(req, res, recorded);
  };

/** Answers any question with these members. */
const saying =
  (members: object): Handler =>
  (req, res, recorded) =>
    faults.json({ jsonrpc: '2.0', id: JSON.parse(recorded.body).id, ...members })(req, res, recorded);

describe('the signer json-rpc with a real node', async () => {
  const chain = await chainFor(suite);

  it('has both kinds of statements signed by an account of the node', async (t) => {
    const signer = await openSigner(t, signerJsonRpc, { url: chain.url, address: ANVIL.toLowerCase() });
    assert.equal(signer.address, ANVIL);
    await assertSigns(signer, digest);
    await assertSigns(signer, new Uint8Array(32));
  });

  it('hands on the code of the refusal for an account that the node does not have', async (t) => {
    const signer = await openSigner(t, signerJsonRpc, { url: chain.url, address: wallet.address });
    assert.match(await refusalOf(signer), /^personal_sign: error -32\d\d\d$/);
  });
});

describe('the signer json-rpc', async () => {
  const openAt = (t: TestContext, config: object = {}) =>
    openSigner(t, signerJsonRpc, { url: `${server.url}/rpc`, address: wallet.address, ...config });

  const server = await upstreamFor(suite);

  it('takes v of 0 and 1 and a high s, as some wallets write them', async (t) => {
    server.on('/rpc', serving(walletMethods));
    const signer = await openAt(t);
    for (let byte = 0; byte < 20; byte++) await assertSigns(signer, new Uint8Array(32).fill(byte));
  });

  it('speaks to clef with the methods that clef has, and asks for the others once', async (t) => {
    server.on('/rpc', serving(clefMethods));
    const signer = await openAt(t);
    const from = server.requests.length;
    await assertSigns(signer, digest);
    await assertSigns(signer, digest);
    const methods = server.requests.slice(from).map(({ body }) => JSON.parse(body).method);
    const [data, receipt] = ['account_signData', 'account_signTypedData'];
    assert.deepEqual(methods, ['personal_sign', data, receipt, data, receipt]);
    server.on('/rpc', serving(walletMethods));
    await assertSigns(signer, digest);
    server.on('/rpc', serving({}));
    const none = 'personal_sign and account_signData: error -32601, there are no such methods';
    assert.equal(await refusalOf(signer), none);
  });

  it('sends headers, and the user and password of the URL as basic authentication', async (t) => {
    server.on('/rpc', serving(walletMethods));
    const url = new URL(`${server.url}/rpc`);
    [url.username, url.password] = ['me', 'p%40ss'];
    const signer = await openAt(t, { url: url.href, headers: { 'X-Api-Key': 'k1' } });
    await assertSigns(signer, digest);
    const { headers, path } = server.requests.at(-1) ?? assert.fail();
    const basic = `Basic ${Buffer.from('me:p@ss').toString('base64')}`;
    assert.deepEqual([path, headers.authorization, headers['x-api-key']], ['/rpc', basic, 'k1']);
    const other = await openAt(t, { url: url.href, headers: { Authorization: 'Bearer t' } });
    await assertSigns(other, digest);
    assert.equal(server.requests.at(-1)?.headers.authorization, 'Bearer t');
  });

  const secret = 'geheim';
  const faulty: readonly [string, Handler, string | RegExp][] = [
    ['is in need of a login', faults.text(secret, { status: 401 }), 'personal_sign: HTTP status 401'],
    ['sends a redirect', faults.redirect('/elsewhere'), 'personal_sign: HTTP status 302'],
    ['refuses', saying({ error: { code: 4001, message: secret } }), 'personal_sign: error 4001'],
    ['refuses without a code', saying({ error: secret }), 'personal_sign: error without a code'],
    [
      'answers another question',
      saying({ id: 'x', result: '0x' }),
      'personal_sign: the answer belongs to another question',
    ],
    ['sends no result', saying({}), 'personal_sign: the answer has no result'],
    ['sends null', saying({ result: null }), 'personal_sign: the signature is not 65 bytes of 0x hex'],
    [
      'sends 64 bytes',
      saying({ result: `0x${'11'.repeat(64)}` }),
      'personal_sign: the signature is not 65 bytes of 0x hex',
    ],
    [
      'sends a strange v',
      saying({ result: `0x${'11'.repeat(64)}1d` }),
      'personal_sign: the v of the signature is none of 0, 1, 27 and 28',
    ],
    ['sends an r of nothing', saying({ result: `0x${'00'.repeat(64)}1b` }), 'personal_sign: r must be 0 < r < CURVE.n'],
    ['sends no JSON', faults.html(), 'personal_sign: the answer is no JSON'],
    [
      'sends without end',
      faults.endless(),
      /^personal_sign: too-large: POST http:\/\/127\.0\.0\.1:\d+ failed: .*16384/,
    ],
    ['resets the connection', faults.reset(), /^personal_sign: network: POST http:\/\/127\.0\.0\.1:\d+ failed: /],
  ];
  for (const [what, handler, text] of faulty) {
    it(`says so when the node ${what}, without a word of the node's`, async (t) => {
      server.on('/rpc', handler);
      const signer = await openAt(t, { url: `${server.url}/rpc?key=${secret}`, headers: { 'X-Key': secret } });
      const said = await refusalOf(signer);
      assertSays(said, text, secret);
    });
  }

  it('ends its request when nobody waits any more', async (t) => {
    server.on('/slow', faults.hang());
    const signer = await openAt(t, { url: `${server.url}/slow` });
    const stop = new AbortController();
    const refused = refusalOf(signer, stop.signal);
    await server.untilRequested('/slow');
    stop.abort();
    assert.match(await refused, /^personal_sign: aborted: /);
    await server.untilAborted('/slow');
  });

  it('is told apart: down, then back', async (t) => {
    const down = await startUpstream();
    await down.close();
    const signer = await openAt(t, { url: down.url });
    assert.match(await refusalOf(signer), /^personal_sign: network: POST .* refused \(ECONNREFUSED\)$/);
  });
});
