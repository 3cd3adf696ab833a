/** A key in Web3Signer signs as a local one does, and each fault has its words. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { computeAddress, keccak256, type Signature, Wallet } from 'ethers';
import fc from 'fast-check';
import { signerWeb3signer } from '../../../builtins/signer-web3signer.ts';
import { suite } from '../../support/lifetime.ts';
import { assertSays, assertSigns, openSigner, refusalOf } from '../../support/statements.ts';
import { faults, type Handler, startUpstream, upstreamFor } from '../../support/upstream.ts';

const wallet = new Wallet(`0x${'42'.repeat(32)}`);
const others = [1, 2, 3].map((digit) => new Wallet(`0x${`4${digit + 5}`.repeat(32)}`));
/** x and y, as web3signer names keys. */
const identifierOf = ({ signingKey }: Wallet) => `0x${signingKey.publicKey.slice(4)}`;
const LIST = '/api/v1/eth1/publicKeys';
const SIGN = `/api/v1/eth1/sign/${identifierOf(wallet)}`;

/** As its OpenAPI document says: `{"data": "0x…"}` in, the hex of r, s and v of the keccak256 as text out. */
const signing =
  (by: Wallet, form = (signature: Signature) => signature.serialized): Handler =>
  (req, res, recorded) => {
    const { data, ...rest } = JSON.parse(recorded.body);
    assert.deepEqual(rest, {});
    const text = form(by.signingKey.sign(keccak256(data)));
    return faults.text(text, { type: 'text/plain; charset=utf-8' })(req, res, recorded);
  };

describe('the signer web3signer', async () => {
  const openAt = (t: TestContext, config: object = {}) =>
    openSigner(t, signerWeb3signer, { url: server.url, address: wallet.address, ...config });

  const server = await upstreamFor(suite);
  beforeEach(() => {
    server.json(LIST, [...others, wallet].map(identifierOf));
    server.on(SIGN, signing(wallet));
  });

  it('finds the key of the address, and has both kinds of statements signed by it', async (t) => {
    const signer = await openAt(t, { address: wallet.address.toLowerCase() });
    assert.equal(signer.address, wallet.address);
    await assertSigns(signer, new Uint8Array(32).fill(7));
    const { method, path, headers } = server.requests.at(-1) ?? assert.fail();
    assert.deepEqual([method, path, headers['content-type']], ['POST', SIGN, 'application/json']);
  });

  it('signs 50 digests of any bytes', async (t) => {
    const signer = await openAt(t);
    const digests = fc.sample(fc.uint8Array({ minLength: 32, maxLength: 32 }), 50);
    for (const digest of digests) await assertSigns(signer, digest);
  });

  it('keeps the path of the URL, and sends its password and the headers', async (t) => {
    server.json(`/signer${LIST}`, [identifierOf(wallet)]);
    server.on(`/signer${SIGN}`, signing(wallet));
    const url = new URL(`${server.url}/signer/`);
    [url.username, url.password] = ['me', 'pass'];
    const signer = await openAt(t, { url: url.href, headers: { 'X-Tenant': 't' } });
    await assertSigns(signer, new Uint8Array(32));
    for (const { path, headers } of server.requests.slice(-3)) {
      assert.ok(path.startsWith('/signer/api/v1/eth1/'));
      const basic = `Basic ${Buffer.from('me:pass').toString('base64')}`;
      assert.deepEqual([headers.authorization, headers['x-tenant']], [basic, 't']);
    }
  });

  it('takes a list with other things in it, and hex of either case', async (t) => {
    server.json(LIST, [null, 7, '0x', `0x${'zz'.repeat(64)}`, identifierOf(wallet).toUpperCase().replace('X', 'x')]);
    server.on(`/api/v1/eth1/sign/0x${identifierOf(wallet).slice(2).toUpperCase()}`, signing(wallet));
    const signer = await openAt(t);
    await assertSigns(signer, new Uint8Array(32));
  });

  const secret = 'geheim';
  const unopened: readonly [string, Handler, string | RegExp][] = [
    [
      'does not have the key',
      faults.json(others.map(identifierOf)),
      `address: none of the 3 keys there is that of ${wallet.address}`,
    ],
    ['has no keys', faults.json([]), `address: none of the 0 keys there is that of ${wallet.address}`],
    ['runs for eth2', faults.empty(404), 'url: HTTP status 404: there is no such key, or it does not run as eth1'],
    [
      'refuses the host',
      faults.empty(403),
      'url: HTTP status 403: it refuses this host: see its --http-host-allowlist',
    ],
    ['is out of order', faults.text(secret, { status: 500 }), 'url: HTTP status 500'],
    ['is something else', faults.html(), 'url: the list of keys is no JSON array'],
    ['lists no keys', faults.json({ error: secret }), 'url: the list of keys is no JSON array'],
    ['lists without end', faults.endless(), /^url: too-large: GET http:\/\/127\.0\.0\.1:\d+ failed: /],
  ];
  for (const [what, handler, text] of unopened) {
    it(`is not opened when the server ${what}`, async (t) => {
      server.on(LIST, handler);
      const error = await openAt(t, { headers: { 'x-key': secret } }).catch((reason) => reason);
      const said = String(error.message);
      assertSays(said, text, secret);
    });
  }

  const faulty: readonly [string, Handler, string | RegExp][] = [
    ['lost the key', faults.empty(404), 'HTTP status 404: there is no such key, or it does not run as eth1'],
    ['refuses', faults.text(secret, { status: 400 }), 'HTTP status 400: it could not read the request'],
    ['is out of order', faults.text(secret, { status: 500 }), 'HTTP status 500'],
    ['answers with JSON', faults.json({ signature: '0x' }), 'the signature is not 65 bytes of 0x hex'],
    ['answers with a BLS signature', faults.text(`0x${'ab'.repeat(96)}`), 'the signature is not 65 bytes of 0x hex'],
    ['answers without end', faults.endless(), /^too-large: POST http:\/\/127\.0\.0\.1:\d+ failed: /],
    ['resets the connection', faults.reset(), /^network: POST http:\/\/127\.0\.0\.1:\d+ failed: /],
  ];
  for (const [what, handler, text] of faulty) {
    it(`says so when the server ${what}`, async (t) => {
      const signer = await openAt(t, { headers: { 'x-key': secret } });
      server.on(SIGN, handler);
      const said = await refusalOf(signer);
      server.on(SIGN, signing(wallet));
      assertSays(said, text, secret);
      await assertSigns(signer, new Uint8Array(32));
    });
  }

  it('takes v of 0 and 1, and text with a line break', async (t) => {
    const bare = ({ r, s, yParity }: Signature) => `${r}${s.slice(2)}0${yParity}\n`;
    server.on(SIGN, signing(wallet, bare));
    const signer = await openAt(t);
    for (let byte = 0; byte < 10; byte++) await assertSigns(signer, new Uint8Array(32).fill(byte));
  });

  it('ends its request when nobody waits any more', async (t) => {
    const signer = await openAt(t);
    server.on(SIGN, faults.hang());
    const from = server.requests.filter(({ path }) => path === SIGN).length;
    const stop = new AbortController();
    const refused = refusalOf(signer, stop.signal);
    await server.until(() => server.requests.filter(({ path }) => path === SIGN).length > from);
    stop.abort();
    assert.match(await refused, /^aborted: POST /);
    await server.untilIdle();
  });

  it('is not opened where nobody is, or with an address that is mistyped', async (t) => {
    const down = await startUpstream();
    await down.close();
    const refused = /^Error: url: network: GET .* refused \(ECONNREFUSED\)$/;
    await assert.rejects(openAt(t, { url: down.url }), refused);
    const address = wallet.address.replace(/[A-F]/, (digit) => digit.toLowerCase());
    await assert.rejects(openAt(t, { address }), { message: `wrong address checksum (EIP-55): "${address}"` });
    assert.equal(computeAddress(wallet.signingKey), wallet.address);
  });
});
