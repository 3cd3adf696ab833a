/** Whatever the gateway of proofs does, the answer goes out. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
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
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
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
const TIME = 'the timestamp of the claim is not within 10 minutes';

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
  'other parameters, tampered': [claim((c) => ({ parameters: c.parameters.replace('GET', 'PUT') })), IDENTIFIER],
  'another context, tampered': [claim(() => ({ context: '{"extractedParameters":{"price":"4"}}' })), IDENTIFIER],
  'a context that is an object': [claim(() => ({ context: {} })), 'claim.context is no text'],
  'another owner, tampered': [claim(() => ({ owner: stranger.address })), NOT_SIGNED],
  'an owner that is none': [signed({ claim: { owner: 'me' } }), 'claim.owner is no address'],
  'another time, tampered': [claim((c) => ({ timestampS: c.timestampS - 1 })), NOT_SIGNED],
  'an old claim': [signed(() => ({ claim: { timestampS: now() - 660 } })), TIME],
  'a claim from the future': [signed(() => ({ claim: { timestampS: now() + 660 } })), TIME],
  milliseconds: [signed(() => ({ claim: { timestampS: Date.now() } })), TIME],
  'half a second': [signed(() => ({ claim: { timestampS: now() + 0.5 } })), 'claim.timestampS is no unix time'],
  'another epoch': [signed({ claim: { epoch: 2 } }), 'claim.epoch is not 1'],
  'another identifier, tampered': [claim(() => ({ identifier: `0x${'11'.repeat(32)}` })), IDENTIFIER],
  'another identifier, signed': [signed({ claim: { identifier: `0x${'11'.repeat(32)}` } }), IDENTIFIER],
  'an identifier that is none': [signed({ claim: { identifier: '0x' } }), 'claim.identifier is no 32-byte hex'],
  'the signature of somebody else': [misattributed, NOT_SIGNED],
  'an attestor that is none of the configured': [
    signed({ signer: stranger }),
    'the attestor is none of settings.proof.attestors',
  ],
  'an attestor that is no address': [
    signatures(() => ({ attestorAddress: 'x' })),
    'signatures.attestorAddress is no address',
  ],
  'no signature': [signatures(() => ({ claimSignature: undefined })), NO_SIGNATURE],
  'a malformed signature': [
    signatures(({ claimSignature }) => ({ claimSignature: claimSignature.slice(0, -1) })),
    NO_SIGNATURE,
  ],
  'a signature with a high s': [
    signatures(({ claimSignature }) => ({ claimSignature: highS(claimSignature) })),
    HIGH_S,
  ],
  'another URL': [about({ url: 'https://api.example/price' }), OTHER],
  'another query': [signed(({ url }) => ({ parameters: { url: `${url}?x=1` } })), OTHER],
  'another method': [about({ method: 'POST' }), OTHER],
  'another body': [about({ body: '{}' }), OTHER],
  'other patterns': [about({ responseMatches: [{ type: 'regex', value: '.' }] }), OTHER],
  'inverted patterns': [about({ responseMatches: [{ ...responseMatches[0], invert: true }] }), OTHER],
  redactions: [about({ responseRedactions: [{ jsonPath: '$.price' }] }), OTHER],
  'headers in the claim': [about({ headers: {} }), OTHER],
  'values for placeholders': [about({ paramValues: { a: 'b' } }), OTHER],
  'a key twice': [twice, OTHER],
  'an empty object': [faults.json({}), 'claim is no object'],
  'a list': [faults.json([]), 'the answer is no object'],
  null: [faults.json(null), 'the answer is no object'],
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
  'a gzip bomb': [faults.coded('gzip', Buffer.alloc(50 * 1024 * 1024, ' ')), /^too-large: /],
  'a reset': [faults.reset(), /^network: /],
  'a closed connection': [faults.raw(''), /^network: /],
  'a connection closed half-way': [faults.closeHalfWay(), /^network: /],
  'no HTTP': [faults.raw(`${MARK}\r\n`), /^network: /],
};

describe('whatever the gateway does, the answer goes out', {
  timeout: 600_000,
}, async () => {
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
