/** Whatever the gateway of proofs does, the answer goes out. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { getAddress } from 'ethers';
import { suite } from '../support/lifetime.ts';
import {
  type Asked,
  gateway as answering,
  attestor,
  honest,
  type Signing,
  signedProof,
  stranger,
  type TestProof,
} from '../support/reclaim.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler, startUpstream, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const responseMatches = [{ type: 'regex', value: '"price":(?<price>\\d+)' }];
const MARK = 'what-the-gateway-said';
const LIMIT = 256 * 1024;

const now = () => Math.floor(Date.now() / 1000);

/** A proof that was changed after it had been signed. */
const tampered = (change: (proof: TestProof) => unknown) =>
  answering(async (asked) => change(await signedProof(asked)));
const claim = (change: (proof: TestProof['claim']) => object) =>
  tampered((proof) => ({ ...proof, claim: { ...proof.claim, ...change(proof.claim) } }));
const signatures = (change: (proof: TestProof['signatures']) => object) =>
  tampered((proof) => ({ ...proof, signatures: { ...proof.signatures, ...change(proof.signatures) } }));
const resigned = (change: (signature: string) => string) =>
  signatures(({ claimSignature }) => ({ claimSignature: change(claimSignature) }));
/** A proof that an attestor did sign. */
const signed = (signing: Signing | ((asked: Asked) => Signing)) =>
  answering((asked) => signedProof(asked, typeof signing === 'function' ? signing(asked) : signing));
const about = (parameters: Record<string, unknown>) => signed({ parameters });

function highS(signature: string): string {
  const n = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n;
  const s = (n - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
  return `${signature.slice(0, 66)}${s}${signature.endsWith('1b') ? '1c' : '1b'}`;
}

const OTHER = 'the claim is about another request';
const NOT_SIGNED = 'the claim is not signed by its attestor';
const NO_SIGNATURE = 'signatures.claimSignature is no 65-byte hex';
const NO_JSON = 'the answer of the gateway is no JSON';
const TOO_DEEP = 'the answer of the gateway is nested deeper than 256 levels';
const HIGH_S = 'signature s is in the upper half of the curve order (EIP-2)';
const IDENTIFIER = 'the identifier is not that of the claim';
const NO_IDENTIFIER = 'claim.identifier is no 32-byte hex';
const NO_OBJECT = 'the answer is no object';
const NO_OWNER = 'claim.owner is no address';
const NO_PARAMETERS = 'claim.parameters is no text';
const NO_ATTESTOR = 'signatures.attestorAddress is no address';
const NO_TIME = 'claim.timestampS is no unix time';
const TIME = 'the timestamp of the claim is not within 10 minutes';

/** An address whose checksum is wrong by one letter. */
const misspelt = (address: string) => getAddress(address).replace(/[A-F]/, (letter) => letter.toLowerCase());

/** The claim of one attestor, with the signature of somebody else. */
const misattributed = answering(async (asked) => {
  const { signatures: strange } = await signedProof(asked, { signer: stranger });
  return { ...(await signedProof(asked)), signatures: { ...strange, attestorAddress: attestor.address } };
});
/** The true parameters, behind another value of their first key. */
const twice = signed(({ url, responseMatches: patterns }) => {
  const parameters = { url, method: 'GET', body: '', responseMatches: patterns, responseRedactions: [] };
  return { claim: { parameters: `{"url":"https://other.example/",${JSON.stringify(parameters).slice(1)}` } };
});
const deep = `"x":${'['.repeat(9999)}${']'.repeat(9999)}`;
const proved =
  (answer: (proof: string) => Handler): Handler =>
  async (req, res, recorded) =>
    answer(JSON.stringify(await signedProof(JSON.parse(recorded.body))))(req, res, recorded);

/** What a gateway may do, and the reason in the log. */
const refused: Record<string, [Handler, string | RegExp]> = {
  'another provider, tampered': [claim(() => ({ provider: 'https' })), 'claim.provider is not http'],
  'another provider, signed': [signed({ claim: { provider: 'tcp' } }), 'claim.provider is not http'],
  'no provider': [claim(() => ({ provider: undefined })), 'claim.provider is not http'],
  'a space more, tampered': [claim((c) => ({ parameters: `${c.parameters} ` })), IDENTIFIER],
  'parameters that are an object': [claim((c) => ({ parameters: JSON.parse(c.parameters) })), NO_PARAMETERS],
  'parameters that no UTF-8 holds': [claim(() => ({ parameters: '\ud800' })), NO_PARAMETERS],
  'other parameters, tampered': [claim((c) => ({ parameters: c.parameters.replace('GET', 'PUT') })), IDENTIFIER],
  'another context, tampered': [claim(() => ({ context: '{"extractedParameters":{"price":"4"}}' })), IDENTIFIER],
  'an empty context, tampered': [claim(() => ({ context: '' })), IDENTIFIER],
  'a context that no UTF-8 holds': [claim(() => ({ context: '\udc00' })), 'claim.context is no text'],
  'a context that is an object': [claim(() => ({ context: {} })), 'claim.context is no text'],
  'another owner, tampered': [claim(() => ({ owner: stranger.address })), NOT_SIGNED],
  'an owner that is none': [signed({ claim: { owner: 'me' } }), NO_OWNER],
  'an owner of 21 bytes': [claim(({ owner }) => ({ owner: `${owner}00` })), NO_OWNER],
  'an owner with a wrong checksum': [claim(({ owner }) => ({ owner: misspelt(owner) })), NO_OWNER],
  'no owner': [claim(() => ({ owner: null })), NO_OWNER],
  'another time, tampered': [claim((c) => ({ timestampS: c.timestampS - 1 })), NOT_SIGNED],
  'an old claim': [signed(() => ({ claim: { timestampS: now() - 660 } })), TIME],
  'a claim from the future': [signed(() => ({ claim: { timestampS: now() + 660 } })), TIME],
  milliseconds: [signed(() => ({ claim: { timestampS: Date.now() } })), TIME],
  'half a second': [signed(() => ({ claim: { timestampS: now() + 0.5 } })), NO_TIME],
  'a time in text': [claim(({ timestampS }) => ({ timestampS: String(timestampS) })), NO_TIME],
  'a time before all': [claim(() => ({ timestampS: -1 })), NO_TIME],
  'the first second': [claim(() => ({ timestampS: 0 })), TIME],
  'another epoch': [signed({ claim: { epoch: 2 } }), 'claim.epoch is not 1'],
  'an epoch in text': [claim(() => ({ epoch: '1' })), 'claim.epoch is not 1'],
  'an identifier in capitals': [
    claim(({ identifier }) => ({ identifier: `0x${identifier.slice(2).toUpperCase()}` })),
    IDENTIFIER,
  ],
  'an identifier of 31 bytes': [claim(({ identifier }) => ({ identifier: identifier.slice(0, -2) })), NO_IDENTIFIER],
  'an identifier that is a number': [claim(() => ({ identifier: 7 })), NO_IDENTIFIER],
  'another identifier, tampered': [claim(() => ({ identifier: `0x${'11'.repeat(32)}` })), IDENTIFIER],
  'another identifier, signed': [signed({ claim: { identifier: `0x${'11'.repeat(32)}` } }), IDENTIFIER],
  'an identifier that is none': [signed({ claim: { identifier: '0x' } }), NO_IDENTIFIER],
  'the signature of somebody else': [misattributed, NOT_SIGNED],
  'an attestor that is none of the configured': [
    signed({ signer: stranger }),
    'the attestor is none of settings.proof.attestors',
  ],
  'an attestor that is no address': [signatures(() => ({ attestorAddress: 'x' })), NO_ATTESTOR],
  'no attestor': [signatures(() => ({ attestorAddress: undefined })), NO_ATTESTOR],
  'an attestor with a wrong checksum': [
    signatures(({ attestorAddress }) => ({ attestorAddress: misspelt(attestorAddress) })),
    NO_ATTESTOR,
  ],
  'no signature': [signatures(() => ({ claimSignature: undefined })), NO_SIGNATURE],
  'a malformed signature': [
    signatures(({ claimSignature }) => ({ claimSignature: claimSignature.slice(0, -1) })),
    NO_SIGNATURE,
  ],
  'a signature as bytes': [signatures(() => ({ claimSignature: [1, 2] })), NO_SIGNATURE],
  'a long signature': [resigned((signature) => `${signature}00`), NO_SIGNATURE],
  'a compact signature': [resigned((signature) => signature.slice(0, 130)), NO_SIGNATURE],
  'a signature with a high s': [resigned(highS), HIGH_S],
  'a bare recovery id': [resigned((signature) => `${signature.slice(0, 130)}01`), 'signature v must be 27 or 28'],
  'the other recovery id': [
    resigned((signature) => `${signature.slice(0, 130)}${signature.endsWith('1b') ? '1c' : '1b'}`),
    NOT_SIGNED,
  ],
  'a signature of zeros': [resigned(() => `0x${'00'.repeat(64)}1b`), 'signature r is out of range'],
  'a signature with another s': [
    resigned((signature) => `${signature.slice(0, 66)}${'1'.padStart(64, '0')}1c`),
    NOT_SIGNED,
  ],
  'another URL': [about({ url: 'https://api.example/price' }), OTHER],
  'another query': [signed(({ url }) => ({ parameters: { url: `${url}?x=1` } })), OTHER],
  'another method': [about({ method: 'POST' }), OTHER],
  'the method in other letters': [about({ method: 'get' }), OTHER],
  'another body': [about({ body: '{}' }), OTHER],
  'other patterns': [about({ responseMatches: [{ type: 'regex', value: '.' }] }), OTHER],
  'a pattern more': [about({ responseMatches: [...responseMatches, { type: 'regex', value: 'x' }] }), OTHER],
  'no pattern': [about({ responseMatches: [] }), OTHER],
  'inverted patterns': [about({ responseMatches: [{ ...responseMatches[0], invert: true }] }), OTHER],
  redactions: [about({ responseRedactions: [{ jsonPath: '$.price' }] }), OTHER],
  'headers in the claim': [about({ headers: {} }), OTHER],
  'values for placeholders': [about({ paramValues: { a: 'b' } }), OTHER],
  'a key twice': [twice, OTHER],
  'an empty object': [faults.json({}), 'claim is no object'],
  'a list': [faults.json([]), NO_OBJECT],
  null: [faults.json(null), NO_OBJECT],
  'a text': [faults.json('proof'), NO_OBJECT],
  'a number': [faults.json(1), NO_OBJECT],
  true: [faults.json(true), NO_OBJECT],
  'a list as the claim': [tampered((proof) => ({ ...proof, claim: [] })), 'claim is no object'],
  'a text as the signatures': [tampered((proof) => ({ ...proof, signatures: 'x' })), 'signatures is no object'],
  'no claim': [tampered(({ signatures: given }) => ({ signatures: given })), 'claim is no object'],
  'no signatures': [tampered((proof) => ({ claim: proof.claim })), 'signatures is no object'],
  nothing: [faults.text(''), NO_JSON],
  'status 204': [faults.empty(204), NO_JSON],
  HTML: [faults.html(), NO_JSON],
  'half of the JSON': [tampered((proof) => JSON.stringify(proof).slice(0, -10)), NO_JSON],
  'bytes that are no UTF-8': [
    faults.raw(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"\xff"', 'latin1')),
    NO_JSON,
  ],
  'endless nesting': [faults.nested(100_000), TOO_DEEP],
  'endless nesting beside the proof': [
    tampered((proof) => JSON.stringify({ ...proof, x: 0 }).replace('"x":0', deep)),
    TOO_DEEP,
  ],
  'an error with a proof': [proved((proof) => faults.text(proof, { status: 500 })), 'gateway status 500'],
  'status 500': [faults.text(MARK, { status: 500 }), 'gateway status 500'],
  'status 429': [faults.text(MARK, { status: 429 }), 'gateway status 429'],
  'a redirect': [faults.redirect('/honest', 307), 'gateway status 307'],
  'another redirect': [faults.redirect('/honest', 302), 'gateway status 302'],
  silence: [faults.hang(), /^timeout: POST http:\/\/127\.0\.0\.1:\d+ failed: no complete answer within 1500 ms$/],
  'headers and then silence': [faults.hangAfterHeaders(), /^timeout: /],
  'a byte now and then': [faults.drip(`{"x":${' '.repeat(200)}1}`), /^timeout: /],
  'a flood': [faults.endless(), /^too-large: /],
  'a byte more than the limit': [faults.big(LIMIT + 1), /^too-large: .* 262144 bytes$/],
  'a gzip bomb': [faults.coded('gzip', Buffer.alloc(20 * 1024 * 1024, ' ')), /^too-large: /],
  'a reset': [faults.reset(), /^network: /],
  'a closed connection': [faults.raw(''), /^network: /],
  'a connection closed half-way': [faults.closeHalfWay(), /^network: /],
  'no HTTP': [faults.raw(`${MARK}\r\n`), /^network: /],
};

describe('whatever the gateway does, the answer goes out', { timeout: 600_000 }, async () => {
  const upstream = await upstreamFor(suite, { '/price': faults.json({ price: 3 }) });
  const gateway = await upstreamFor(suite, { '/honest': honest });
  const parameters = [{ name: 'q' }];
  const body = { path: '/price', method: 'POST', parameters: [{ name: 'q', in: 'body' }] };
  const proof = { type: 'reclaim', gatewayUrl: `${gateway.url}/prove`, timeout: 1500, attestors: [attestor.address] };
  const settings = { proof };
  const common = { encoding: { type: 'uint256', path: '$.price' }, responseMatches };
  const endpoints = { price: { ...common, parameters }, body: { ...common, ...body } };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { settings }));

  beforeEach(() => {
    gateway.requests.length = 0;
    service.logs.length = 0;
  });

  const ask = async (endpoint = 'price', parameters = {}) => {
    const answer = await verifyEncoded(await service.post(`api/${endpoint}`, parameters), TEST_ADDRESS);
    assert.equal(BigInt(answer.data), 3n);
    return answer;
  };

  /** One warning, which says why and nothing that was received. */
  const assertWarned = (reason: string | RegExp, endpoint = 'price') => {
    const [line, ...more] = service.logs.filter(({ level }) => level === 'warn' || level === 'error');
    assert.deepEqual(more, []);
    assert.ok(line);
    assert.deepEqual([line.level, line.message], ['warn', 'no TLS proof']);
    assert.equal(line.fields.endpointId, service.ids[`api/${endpoint}`]);
    assert.match(String(line.fields.requestId), /^0x[0-9a-f]{64}$/);
    if (typeof reason === 'string') assert.equal(line.fields.detail, reason);
    else assert.match(String(line.fields.detail), reason);
    assert.ok(!JSON.stringify(service.logs).includes(MARK));
  };

  for (const [name, [handler, reason]] of Object.entries(refused)) {
    it(`no proof, a warning and a signed answer: ${name}`, async () => {
      gateway.on('/prove', handler);
      assert.ok(!('proof' in (await ask())));
      assertWarned(reason);
      assert.equal(gateway.requests.length, 1);
    });
  }

  const fine: Record<string, Handler> = {
    'just the proof': honest,
    'more members than are asked for': tampered((proof) => {
      return { ...proof, status: MARK, claim: { ...proof.claim, note: MARK } };
    }),
    'status 201': proved((proof) => faults.text(proof, { status: 201 })),
    'another media type': proved((proof) => faults.text(proof, { type: 'text/plain' })),
    gzip: proved((proof) => faults.coded('gzip', proof)),
    'an address in capitals': signatures(({ attestorAddress }) => ({
      attestorAddress: `0x${attestorAddress.slice(2).toUpperCase()}`,
    })),
    'addresses with checksums': signed({ claim: { owner: stranger.address } }),
    'white space up to the limit': tampered((proof) => JSON.stringify(proof).padEnd(LIMIT, ' ')),
    'a claim of nine minutes ago': signed(() => ({ claim: { timestampS: now() - 540 } })),
  };
  for (const [name, handler] of Object.entries(fine)) {
    it(`a proof: ${name}`, async () => {
      gateway.on('/prove', handler);
      const { proof } = await ask();
      const { claim: claimed, signatures: given } = proof as TestProof;
      assert.deepEqual([Object.keys(claimed).length, Object.keys(given).length], [7, 2]);
      assert.deepEqual(Object.keys(proof as object), ['claim', 'signatures']);
      assert.ok(!JSON.stringify(proof).includes(MARK));
      assert.ok(service.logs.every(({ level }) => level === 'info'));
    });
  }

  it('a request with what attestors take for a placeholder or a hidden byte is not proved', async () => {
    gateway.on('/prove', honest);
    const reason = 'the request holds * or {{, which no claim can vouch for';
    for (const q of ['{{secret}}', 'a*']) {
      for (const endpoint of ['price', 'body']) {
        assert.ok(!('proof' in (await ask(endpoint, { q }))));
        assertWarned(reason, endpoint);
        service.logs.length = 0;
      }
    }
    assert.deepEqual(gateway.requests, []);
    assert.ok('proof' in (await ask('body', { q: { a: { b: '{ {' } } })));
    assert.ok('proof' in (await ask('price', { q: '{a}' })));
  });

  it('no proof when nobody listens', async (t) => {
    const gone = await startUpstream();
    await gone.close();
    const settings = { proof: { type: 'reclaim', gatewayUrl: `${gone.url}/prove` } };
    const orphan = await serviceFor(t, oneApi(upstream.url, { price: { responseMatches } }, { settings }));
    const response = await orphan.post('api/price');
    assert.equal(response.status, 200);
    assert.ok(!('proof' in JSON.parse(await response.text())));
    const [line, ...more] = orphan.logs.filter(({ message }) => message === 'no TLS proof');
    assert.match(String(line?.fields.detail), /^network: .*ECONNREFUSED/);
    assert.deepEqual(more, []);
  });
});
