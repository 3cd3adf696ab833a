/** A key in AWS KMS signs as a local one does, and each fault has its words. */
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1';
import { computeAddress } from 'ethers';
import fc from 'fast-check';
import { signerAwsKms } from '../../../builtins/signer-aws-kms.ts';
import { CURVE_ORDER } from '../../../lib/eth/eip191.ts';
import { outputWithout } from '../../support/hide.ts';
import { suite } from '../../support/lifetime.ts';
import { assertSays, assertSigns, openSigner, refusalOf } from '../../support/statements.ts';
import { faults, type Handler, upstreamFor } from '../../support/upstream.ts';

const KEY = 'alias/answers';
const SECRET = 'geheim';
const spki = (key: KeyObject) => key.export({ type: 'spki', format: 'der' });

function keyOf(pair: { privateKey: KeyObject; publicKey: KeyObject }) {
  const { d = '' } = pair.privateKey.export({ format: 'jwk' });
  const secret = Buffer.from(d, 'base64url');
  return { ...pair, secret, address: computeAddress(`0x${secret.toString('hex')}`) };
}
const key = keyOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }));
const stranger = keyOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }));

const described = {
  KeyId: 'arn:aws:kms:eu-central-1:111122223333:key/1',
  PublicKey: spki(key.publicKey).toString('base64'),
  KeySpec: 'ECC_SECG_P256K1',
  CustomerMasterKeySpec: 'ECC_SECG_P256K1',
  KeyUsage: 'SIGN_VERIFY',
  SigningAlgorithms: ['ECDSA_SHA_256'],
};

/** DER with a random nonce, as an HSM makes it, s in either half. */
function derOf(hash: Buffer, { secret } = key, high = Math.random() < 0.5): string {
  const { r, s } = secp256k1.sign(hash, secret, { extraEntropy: true });
  return Buffer.from(new secp256k1.Signature(r, high ? CURVE_ORDER - s : s).toDERRawBytes()).toString('base64');
}

const json = (value: unknown, status = 200): Handler =>
  faults.text(JSON.stringify(value), { status, type: 'application/x-amz-json-1.1' });
const failing = (type: string, status = 400) => json({ __type: type, message: SECRET }, status);

/** The AWS JSON 1.1 protocol: one URL, the operation in a header. */
const serving =
  (operations: Readonly<Record<string, Handler>> = {}): Handler =>
  (req, res, recorded) => {
    assert.equal(recorded.headers['content-type'], 'application/x-amz-json-1.1');
    assert.match(
      String(recorded.headers.authorization),
      /^AWS4-HMAC-SHA256 Credential=AKTEST\/\d{8}\/eu-central-1\/kms\//,
    );
    const [service, operation = ''] = String(recorded.headers['x-amz-target']).split('.');
    assert.equal(service, 'TrentService');
    return ({ GetPublicKey: getPublicKey, Sign: signing(), ...operations }[operation] ?? failing('x'))(
      req,
      res,
      recorded,
    );
  };
const getPublicKey: Handler = (req, res, recorded) => {
  assert.deepEqual(JSON.parse(recorded.body), { KeyId: KEY });
  return json(described)(req, res, recorded);
};
const signing =
  (make = (hash: Buffer) => derOf(hash)): Handler =>
  (req, res, recorded) => {
    const { Message, ...rest } = JSON.parse(recorded.body);
    assert.deepEqual(rest, { KeyId: KEY, MessageType: 'DIGEST', SigningAlgorithm: 'ECDSA_SHA_256' });
    const Signature = make(Buffer.from(Message, 'base64'));
    return json({ KeyId: described.KeyId, Signature, SigningAlgorithm: 'ECDSA_SHA_256' })(req, res, recorded);
  };

describe('the signer aws-kms', async () => {
  const openAt = (t: TestContext, config: object = {}) => {
    const all = { keyId: KEY, region: 'eu-central-1', endpoint: server.url, ...config };
    return openSigner(t, signerAwsKms, all);
  };

  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKTEST', AWS_SECRET_ACCESS_KEY: SECRET });
  const server = await upstreamFor(suite);

  beforeEach(() => server.on('/', serving()));

  it('takes its address from the public key, and has both kinds of statements signed', async (t) => {
    const signer = await openAt(t);
    assert.equal(signer.address, key.address);
    await assertSigns(signer, new Uint8Array(32).fill(7));
  });

  it('signs 50 digests of any bytes, with signatures of either half', async (t) => {
    const signer = await openAt(t);
    for (const digest of fc.sample(fc.uint8Array({ minLength: 32, maxLength: 32 }), 50))
      await assertSigns(signer, digest);
  });

  it('takes what OpenSSL makes of the same key', async (t) => {
    const pkcs8 = key.privateKey.export({ type: 'pkcs8', format: 'der' });
    const again = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
    const PublicKey = spki(createPublicKey(again)).toString('base64');
    server.on('/', serving({ GetPublicKey: json({ ...described, PublicKey }) }));
    const signer = await openAt(t);
    assert.equal(signer.address, key.address);
  });

  const p256 = spki(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey).toString('base64');
  const wrongKey = 'the key must be ECC_SECG_P256K1 for SIGN_VERIFY: see keyId';
  const noCurve = 'the public key is not on the curve secp256k1';
  const unopened: readonly [string, Handler, string | RegExp][] = [
    ['of another kind', json({ ...described, KeySpec: 'ECC_NIST_P256', PublicKey: p256 }), wrongKey],
    ['for encryption', json({ ...described, KeyUsage: 'ENCRYPT_DECRYPT' }), wrongKey],
    ['without the algorithm', json({ ...described, SigningAlgorithms: ['ECDSA_SHA_384'] }), wrongKey],
    ['that nothing is said of', json({}), wrongKey],
    ['that is not what it is said to be', json({ ...described, PublicKey: p256 }), noCurve],
    ['that is none', json({ ...described, PublicKey: 'AAAA' }), noCurve],
    [
      'that is not there',
      failing('NotFoundException'),
      'KMS GetPublicKey: NotFoundException: there is no such key there: see keyId and region',
    ],
    [
      'that is not ours',
      failing('com.amazonaws.kms#AccessDeniedException'),
      'KMS GetPublicKey: AccessDeniedException: the AWS credentials do not allow it for this key: see keyId',
    ],
    [
      'of credentials that are none',
      failing('UnrecognizedClientException'),
      'KMS GetPublicKey: UnrecognizedClientException: the AWS credentials are not accepted',
    ],
    [
      'of a secret that is another',
      failing('InvalidSignatureException'),
      'KMS GetPublicKey: InvalidSignatureException: the AWS credentials are not accepted',
    ],
    ['behind a stranger', faults.html(), 'KMS GetPublicKey: SyntaxError: the answer is not one of KMS'],
    ['behind an endless answer', faults.endless(), /^KMS GetPublicKey: too-large: POST http:\S+ failed: /],
    ['behind a reset', faults.reset(), /^KMS GetPublicKey: network: POST http:\S+ failed: /],
  ];
  for (const [what, handler, text] of unopened) {
    it(`is not opened with a key ${what}, and shows no text of the server's`, async (t) => {
      server.on('/', serving({ GetPublicKey: handler }));
      const said: string = await openAt(t).then(
        () => assert.fail('it was opened'),
        ({ message }) => message,
      );
      assertSays(said, text, SECRET);
    });
  }

  const notBy = `the signature is not by ${key.address}`;
  const notDer = 'the signature is not DER-encoded (Ecdsa-Sig-Value)';
  const faulty: readonly [string, Handler, string | RegExp][] = [
    ['signs with another key', signing((hash) => derOf(hash, stranger)), notBy],
    ['signs something else', signing((hash) => derOf(Buffer.from(hash).reverse())), notBy],
    ['signs nothing', json({}), notDer],
    ['signs with garbage', signing(() => Buffer.alloc(71, 48).toString('base64')), notDer],
    ['has disabled the key', failing('DisabledException'), 'KMS Sign: DisabledException: the key is disabled'],
    [
      'may not',
      failing('AccessDeniedException'),
      'KMS Sign: AccessDeniedException: the AWS credentials do not allow it for this key: see keyId',
    ],
    ['has another trouble', failing('DependencyTimeoutException', 500), 'KMS Sign: DependencyTimeoutException'],
    ['names its trouble strangely', failing(`${SECRET} ${'x'.repeat(100)}`), 'KMS Sign: unknown error'],
    ['is behind a proxy that says nothing', faults.empty(503), 'KMS Sign: HTTP status 503'],
    ['answers without end', faults.endless(), /^KMS Sign: too-large: POST http:\S+ failed: /],
    ['hangs up', faults.closeHalfWay(), /^KMS Sign: network: POST http:\S+ failed: /],
  ];
  for (const [what, handler, text] of faulty) {
    it(`says so when KMS ${what}, and signs when it is well again`, async (t) => {
      const signer = await openAt(t);
      server.on('/', serving({ Sign: handler }));
      const said = await refusalOf(signer);
      server.on('/', serving());
      assertSays(said, text, SECRET);
      await assertSigns(signer, new Uint8Array(32));
    });
  }

  it('asks once more when it is throttled, and no more', async (t) => {
    const signer = await openAt(t);
    const throttled = failing('ThrottlingException');
    server.on('/', serving({ Sign: throttled }));
    const from = server.requests.length;
    const text = 'KMS Sign: ThrottlingException: more requests than the quota of the AWS account';
    assert.equal(await refusalOf(signer), text);
    assert.equal(server.requests.length - from, 2);
  });

  it('ends its request when nobody waits any more', async (t) => {
    const signer = await openAt(t);
    server.on('/', faults.hang());
    const from = server.requests.length;
    const stop = new AbortController();
    const refused = refusalOf(signer, stop.signal);
    await server.until(() => server.requests.length > from);
    stop.abort();
    assert.match(await refused, /^KMS Sign: (aborted|AbortError)/);
    await server.untilIdle();
  });

  it('is not opened without credentials', async (t) => {
    const { AWS_ACCESS_KEY_ID: id } = process.env;
    delete process.env.AWS_ACCESS_KEY_ID;
    const nowhere = { AWS_SHARED_CREDENTIALS_FILE: '/dev/null', AWS_CONFIG_FILE: '/dev/null' };
    Object.assign(process.env, { AWS_EC2_METADATA_DISABLED: 'true', ...nowhere });
    const none = 'no AWS credentials were found in the environment, a profile or a role';
    const message = `KMS GetPublicKey: CredentialsProviderError: ${none}`;
    await assert.rejects(openAt(t), { message });
    process.env.AWS_ACCESS_KEY_ID = id;
  });

  it('says which package it needs', () => {
    const program = `import { signerAwsKms } from './builtins/signer-aws-kms.ts';
      await signerAwsKms.signers['aws-kms'].open({ keyId: 'k', region: 'r' }, { isNext: false })
        .catch((error) => console.log(error.message));`;
    const text = 'needs a package that is not installed: npm install @aws-sdk/client-kms@3\n';
    assert.equal(outputWithout('@aws-sdk/client-kms', program), text);
  });
});
