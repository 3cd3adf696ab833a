/** The claim of an attestor is read as its makers read it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { getAddress, id, SigningKey, verifyMessage } from 'ethers';
import { type ClaimedRequest, checkProof } from '../../builtins/tls-proof/claim.ts';
import { attestor, signedProof, stranger, type TestProof } from '../support/reclaim.ts';

/** Signed by a real attestor. */
const vector: { request: ClaimedRequest; proof: TestProof } = JSON.parse(
  readFileSync(new URL('../vectors/reclaim-claim.json', import.meta.url), 'utf8'),
);
const { proof } = vector;
const SIGNED_AT = proof.claim.timestampS * 1000;
const SIGNER = proof.signatures.attestorAddress;

const expectation = { request: vector.request, attestors: new Set([SIGNER]), now: SIGNED_AT };

const SIGNATURE = 'the claim is not signed by its attestor';
const REQUEST = 'the claim is about another request';
const TIME = 'the timestamp of the claim is not within 10 minutes';

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

  it('holds for 10 minutes either way, and not a second longer', () => {
    for (const off of [-600_000, 600_000]) assert.ok(checkProof(proof, { ...expectation, now: SIGNED_AT + off }));
    for (const off of [-600_001, 600_001, 3_600_000]) {
      const check = () => checkProof(proof, { ...expectation, now: SIGNED_AT + off });
      assert.throws(check, { name: 'NoProof', message: TIME });
    }
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
