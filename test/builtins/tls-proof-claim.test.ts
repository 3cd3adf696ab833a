/** The claim of an attestor is read as its makers read it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { getAddress, id, SigningKey, verifyMessage } from 'ethers';
import { type ClaimedRequest, checkProof, NoProof } from '../../builtins/tls-proof/claim.ts';
import { attestor, signedProof, stranger, type TestClaim, type TestProof } from '../support/reclaim.ts';

/** Signed by a real attestor. */
const vector: { request: ClaimedRequest; proof: TestProof } = JSON.parse(
  readFileSync(new URL('../vectors/reclaim-claim.json', import.meta.url), 'utf8'),
);
const { proof } = vector;
const SIGNED_AT = proof.claim.timestampS * 1000;
const SIGNER = proof.signatures.attestorAddress;
const N = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n;

const expectation = { request: vector.request, attestors: new Set([SIGNER]), now: SIGNED_AT };
const withClaim = (claim: object) => ({ ...proof, claim: { ...proof.claim, ...claim } });
const withSignatures = (signatures: object) => ({ ...proof, signatures: { ...proof.signatures, ...signatures } });

function refuses(answer: unknown, reason: string, expected: Partial<typeof expectation> = {}): void {
  assert.throws(
    () => checkProof(answer, { ...expectation, ...expected }),
    (error) => {
      assert.ok(error instanceof NoProof);
      assert.equal(error.message, reason);
      return true;
    },
  );
}

const IDENTIFIER = 'the identifier is not that of the claim';
const SIGNATURE = 'the claim is not signed by its attestor';
const REQUEST = 'the claim is about another request';
const TIME = 'the timestamp of the claim is not within 10 minutes';

function highS(signature: string): string {
  const s = N - BigInt(`0x${signature.slice(66, 130)}`);
  const v = signature.endsWith('1b') ? '1c' : '1b';
  return `${signature.slice(0, 66)}${s.toString(16).padStart(64, '0')}${v}`;
}

describe('the claim of a real attestor (shared vector)', () => {
  it('is what ethers says it is', () => {
    const { provider, parameters, context, identifier, owner, timestampS, epoch } = proof.claim;
    assert.equal(id(`${provider}\n${parameters}\n${context}`), identifier);
    const signer = verifyMessage(`${identifier}\n${owner}\n${timestampS}\n${epoch}`, proof.signatures.claimSignature);
    assert.equal(signer, getAddress(SIGNER));
  });

  it('is a proof of its request, with any attestor or with that one', () => {
    assert.deepEqual(checkProof(proof, expectation), proof);
    assert.deepEqual(checkProof(proof, { ...expectation, attestors: undefined }), proof);
  });

  it('loses what is no part of a proof', () => {
    const more = {
      ...withClaim({ note: 1, signatures: 2 }),
      signatures: { ...proof.signatures, resultSignature: '0x00' },
      request: {},
    };
    assert.deepEqual(checkProof(more, expectation), proof);
  });

  it('may spell its addresses with their checksums or in capitals, as long as the text signed is the same', () => {
    const spelled = {
      claim: { ...proof.claim, owner: getAddress(proof.claim.owner) },
      signatures: { ...proof.signatures, attestorAddress: `0x${SIGNER.slice(2).toUpperCase()}` },
    };
    assert.deepEqual(checkProof(spelled, expectation), spelled);
  });

  it('holds for 10 minutes either way, and not a second longer', () => {
    for (const off of [-600_000, 600_000]) assert.ok(checkProof(proof, { ...expectation, now: SIGNED_AT + off }));
    for (const off of [-600_001, 600_001, 3_600_000]) refuses(proof, TIME, { now: SIGNED_AT + off });
  });

  const flips: [keyof TestClaim, unknown, string][] = [
    ['provider', 'https', 'claim.provider is not http'],
    ['provider', undefined, 'claim.provider is not http'],
    ['parameters', `${proof.claim.parameters} `, IDENTIFIER],
    ['parameters', proof.claim.parameters.replace('eth', 'btc'), IDENTIFIER],
    ['parameters', vector.request, 'claim.parameters is no text'],
    ['parameters', '\ud800', 'claim.parameters is no text'],
    ['context', proof.claim.context.replace('2064', '9999'), IDENTIFIER],
    ['context', '', IDENTIFIER],
    ['context', JSON.parse(proof.claim.context), 'claim.context is no text'],
    ['context', '\udc00', 'claim.context is no text'],
    ['owner', SIGNER, SIGNATURE],
    ['owner', `${proof.claim.owner}00`, 'claim.owner is no address'],
    ['owner', getAddress(proof.claim.owner).replace('e', 'E'), 'claim.owner is no address'],
    ['owner', null, 'claim.owner is no address'],
    ['timestampS', proof.claim.timestampS + 1, SIGNATURE],
    ['timestampS', proof.claim.timestampS + 0.5, 'claim.timestampS is no unix time'],
    ['timestampS', String(proof.claim.timestampS), 'claim.timestampS is no unix time'],
    ['timestampS', -1, 'claim.timestampS is no unix time'],
    ['timestampS', 0, TIME],
    ['epoch', 2, 'claim.epoch is not 1'],
    ['epoch', '1', 'claim.epoch is not 1'],
    ['identifier', `0x${'00'.repeat(32)}`, IDENTIFIER],
    ['identifier', proof.claim.identifier.toUpperCase().replace('X', 'x'), IDENTIFIER],
    ['identifier', proof.claim.identifier.slice(0, -2), 'claim.identifier is no 32-byte hex'],
    ['identifier', 7, 'claim.identifier is no 32-byte hex'],
  ];
  for (const [name, value, reason] of flips) {
    it(`is none with the ${name} ${JSON.stringify(value) ?? 'missing'}`, () =>
      refuses(withClaim({ [name]: value }), reason));
  }

  const good = proof.signatures.claimSignature;
  const signatures: [string, object, string][] = [
    ['another attestor', { attestorAddress: stranger.address }, 'the attestor is none of settings.proof.attestors'],
    ['no attestor', { attestorAddress: undefined }, 'signatures.attestorAddress is no address'],
    [
      'a wrong checksum',
      { attestorAddress: getAddress(SIGNER).replace('F', 'f') },
      'signatures.attestorAddress is no address',
    ],
    ['no signature', { claimSignature: undefined }, 'signatures.claimSignature is no 65-byte hex'],
    ['a signature as bytes', { claimSignature: [1, 2] }, 'signatures.claimSignature is no 65-byte hex'],
    ['a short signature', { claimSignature: good.slice(0, -2) }, 'signatures.claimSignature is no 65-byte hex'],
    ['a long signature', { claimSignature: `${good}00` }, 'signatures.claimSignature is no 65-byte hex'],
    ['a compact signature', { claimSignature: good.slice(0, 130) }, 'signatures.claimSignature is no 65-byte hex'],
    [
      'a signature with a high s',
      { claimSignature: highS(good) },
      'signature s is in the upper half of the curve order (EIP-2)',
    ],
    ['a bare recovery id', { claimSignature: `${good.slice(0, 130)}01` }, 'signature v must be 27 or 28'],
    ['the other recovery id', { claimSignature: `${good.slice(0, 130)}1b` }, SIGNATURE],
    ['zeros', { claimSignature: `0x${'00'.repeat(64)}1b` }, 'signature r is out of range'],
    ['another s', { claimSignature: `${good.slice(0, 66)}${'1'.padStart(64, '0')}1c` }, SIGNATURE],
  ];
  for (const [name, change, reason] of signatures) {
    it(`is none with ${name}`, () => refuses(withSignatures(change), reason));
  }

  it('is none of another attestor that is told to be its own', () => {
    refuses(withSignatures({ attestorAddress: stranger.address }), SIGNATURE, {
      attestors: new Set([stranger.address.toLowerCase()]),
    });
  });

  const requests: [string, Partial<ClaimedRequest>][] = [
    ['another path', { url: vector.request.url.replace('/p', '/q') }],
    ['another query', { url: `${vector.request.url}&x=1` }],
    ['another port', { url: vector.request.url.replace('39697', '443') }],
    ['another method', { method: 'POST' }],
    ['a method in other letters', { method: 'get' }],
    ['a body', { body: '{}' }],
    ['another pattern', { responseMatches: [{ type: 'regex', value: '"usd"' }] }],
    ['a pattern more', { responseMatches: [...vector.request.responseMatches, { type: 'regex', value: 'x' }] }],
    ['no pattern', { responseMatches: [] }],
  ];
  for (const [name, change] of requests) {
    it(`proves nothing about a request with ${name}`, () =>
      refuses(proof, REQUEST, { request: { ...vector.request, ...change } }));
  }

  for (const answer of [null, undefined, [], 'proof', 1, true]) {
    it(`${JSON.stringify(answer)} is no proof`, () => refuses(answer, 'the answer is no object'));
  }
  it('nor is half of one', () => {
    refuses({}, 'claim is no object');
    refuses({ claim: [] }, 'claim is no object');
    refuses({ claim: proof.claim }, 'signatures is no object');
    refuses({ claim: proof.claim, signatures: 'x' }, 'signatures is no object');
  });
});

describe('what a claim says it is about', () => {
  const asked = {
    url: 'https://api.example/prices?q=%C3%BC',
    method: 'POST',
    headers: {},
    body: '{"q":"ü \\"x\\" }","n":1.0}',
    responseMatches: [
      { type: 'regex', value: '"a\\\\":(?<a>.)' },
      { type: 'regex', value: '€' },
    ] as const,
  };
  const { headers: _, ...request } = asked;
  const expected = { ...request, responseRedactions: [] };
  const check = async (parameters: string) => {
    const signed = await signedProof(asked, { claim: { parameters } });
    return checkProof(signed, { request, now: Date.now() });
  };
  const json = JSON.stringify(expected);

  it('may be written in any order, spacing and escapes', async () => {
    const reversed = JSON.stringify(Object.fromEntries(Object.entries(expected).reverse()));
    const escaped = json.replaceAll('/', '\\/').replaceAll('ü', '\\u00fc');
    for (const text of [json, reversed, JSON.stringify(expected, null, 2), ` ${json}\n`, escaped]) {
      assert.equal((await check(text)).claim.parameters, text);
    }
  });

  const member = (name: string, value: unknown) => JSON.stringify({ ...expected, [name]: value });
  const without = (name: string) => JSON.stringify(expected, (key, value) => (key === name ? undefined : value));
  const wrong: Record<string, string> = {
    'a redaction': member('responseRedactions', [{ regex: 'x' }]),
    'no redactions': without('responseRedactions'),
    'redactions that are an object': member('responseRedactions', {}),
    'a member more': member('geoLocation', 'US'),
    'values for placeholders': member('paramValues', {}),
    headers: member('headers', {}),
    'a body of null': member('body', null),
    'no body': without('body'),
    'the body as JSON': member('body', JSON.parse(asked.body)),
    'a method as a list': member('method', ['POST']),
    'the patterns in another order': member('responseMatches', [...asked.responseMatches].reverse()),
    'one pattern of two': member('responseMatches', asked.responseMatches.slice(0, 1)),
    'an inverted pattern': member(
      'responseMatches',
      asked.responseMatches.map((match) => ({ ...match, invert: true })),
    ),
    'another type of pattern': member(
      'responseMatches',
      asked.responseMatches.map((match) => ({ ...match, type: 'contains' })),
    ),
    'the patterns as an object': member('responseMatches', { ...asked.responseMatches }),
    'a key twice, the right one last': json.replace('{', '{"url":"https://other.example/",'),
    'a key twice, the same value': json.replace('{', `{"method":"POST",`),
    'a key twice in a pattern': json.replace('{"type"', '{"type":"contains","type"'),
    __proto__: json.replace('{', '{"__proto__":{"x":1},'),
    '__proto__ that is empty': json.replace('{', '{"__proto__":{},'),
    constructor: json.replace('{', '{"constructor":1,'),
    'two documents': `${json}${json}`,
    'a comment': `${json}//`,
    'a byte order mark': `\ufeff${json}`,
    nothing: '',
    null: 'null',
    'a list': `[${json}]`,
    'JSON in JSON': JSON.stringify(json),
    'endless lists': member('responseRedactions', 0).replace('":0', `":${'['.repeat(100_000)}${']'.repeat(100_000)}`),
  };
  for (const [name, parameters] of Object.entries(wrong)) {
    it(`is another request with ${name}`, async () => {
      await assert.rejects(check(parameters), { name: 'NoProof', message: REQUEST });
    });
  }

  it('any attestor will do where none is named, and only those that are', async () => {
    const signed = await signedProof(asked, { signer: stranger });
    const now = Date.now();
    assert.deepEqual(checkProof(signed, { request, now }), signed);
    const both = new Set([attestor.address.toLowerCase(), stranger.address.toLowerCase()]);
    assert.deepEqual(checkProof(signed, { request, now, attestors: both }), signed);
    const others = new Set([attestor.address.toLowerCase()]);
    assert.throws(() => checkProof(signed, { request, now, attestors: others }), { name: 'NoProof' });
  });

  it('an empty context is one', async () => {
    const signed = await signedProof(asked, { claim: { context: '' } });
    assert.deepEqual(checkProof(signed, { request, now: Date.now() }), signed);
  });

  it('a signature of the identifier alone, or of its bytes, is none of the claim', async () => {
    const signed = await signedProof(asked);
    const raw = new SigningKey(attestor.privateKey).sign(signed.claim.identifier).serialized;
    for (const claimSignature of [raw, await attestor.signMessage(signed.claim.identifier)]) {
      const answer = { ...signed, signatures: { ...signed.signatures, claimSignature } };
      assert.throws(() => checkProof(answer, { request, now: Date.now() }), { message: SIGNATURE });
    }
  });
});
