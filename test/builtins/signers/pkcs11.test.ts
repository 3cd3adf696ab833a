/** A key in a PKCS#11 token signs as a local one does, and each fault has its words. */
import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { after, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import pkcs11 from 'pkcs11js';
import { signerPkcs11 } from '../../../builtins/signer-pkcs11/index.ts';
import { outputWithout } from '../../support/hide.ts';
import { CURVES, createSoftHsm } from '../../support/softhsm.ts';
import { assertSigns, openSigner, refusalOf } from '../../support/statements.ts';

const digest = new Uint8Array(32).fill(7);

describe('the signer pkcs11 with SoftHSM', async () => {
  const openAt = (config: object = {}) => {
    const all = { module: hsm.module, token: 'vault', label: 'answers', pin: hsm.pin, ...config };
    return openSigner(signerPkcs11, all);
  };

  const hsm = createSoftHsm();
  const addresses = hsm.initToken('vault', [
    ...[{ label: 'answers' }, { label: 'next' }, { label: 'lonely', lonely: true }],
    ...[{ label: 'p256', curve: CURVES.p256 }, { label: 'twice' }, { label: 'twice' }],
  ]);
  hsm.initToken('same', []);
  hsm.initToken('same', []);

  after(() => hsm.remove());

  it('takes its address from the public key, and has both kinds of statements signed', async () => {
    const signer = await openAt();
    assert.equal(signer.address, addresses.answers);
    await assertSigns(signer, digest);
    await signer.close?.();
  });

  it('signs 200 digests of any bytes, many at a time', async () => {
    const signer = await openAt();
    const digests = fc.sample(fc.uint8Array({ minLength: 32, maxLength: 32 }), 200);
    await Promise.all(digests.map((each) => assertSigns(signer, each)));
    await signer.close?.();
  });

  it('shares its module with another one, whichever is closed first', async () => {
    const [one, other] = await Promise.all([openAt(), openAt({ label: 'next' })]);
    assert.deepEqual([one.address, other.address], [addresses.answers, addresses.next]);
    await Promise.all([assertSigns(one, digest), assertSigns(other, digest)]);
    await one.close?.();
    await assertSigns(other, digest);
    const again = await openAt();
    await other.close?.();
    await assertSigns(again, digest);
    await again.close?.();
    assert.equal(await refusalOf(again), 'module: the signer is closed');
    const fresh = await openAt();
    await assertSigns(fresh, digest);
    await fresh.close?.();
  });

  it('closes after what is under way', async () => {
    const closed = 'Error: module: the signer is closed';
    const signer = await openAt();
    const under = [1, 2, 3, 4, 5, 6].map((byte) =>
      assertSigns(signer, new Uint8Array(32).fill(byte)).then(() => closed, String),
    );
    await setImmediate();
    await signer.close?.();
    for (const outcome of await Promise.all(under)) assert.equal(outcome, closed);
  });

  it('opens a session again that was lost, and logs in again', async () => {
    const signer = await openAt();
    await Promise.all([1, 2, 3, 4].map((byte) => assertSigns(signer, new Uint8Array(32).fill(byte))));
    hsm.meddle('vault', (library, slot) => library.C_CloseAllSessions(slot));
    await assertSigns(signer, digest);
    hsm.meddle('vault', (library, slot) => {
      const session = library.C_OpenSession(slot, pkcs11.CKF_SERIAL_SESSION);
      library.C_Logout(session);
      library.C_CloseSession(session);
    });
    await assertSigns(signer, digest);
    await signer.close?.();
  });

  it('sends a PIN that was refused never again', async () => {
    const signer = await openAt();
    const setPin = (from: string, to: string) =>
      hsm.meddle('vault', (library, slot) => {
        library.C_CloseAllSessions(slot);
        const session = library.C_OpenSession(slot, pkcs11.CKF_SERIAL_SESSION | pkcs11.CKF_RW_SESSION);
        library.C_SetPIN(session, from, to);
        library.C_CloseSession(session);
      });
    setPin(hsm.pin, 'another');
    const refused = 'pin: the module says CKR_PIN_INCORRECT';
    assert.equal(await refusalOf(signer), refused);
    setPin('another', hsm.pin);
    assert.equal(await refusalOf(signer), refused);
    const again = await openAt();
    await assertSigns(again, digest);
    await Promise.all([signer.close?.(), again.close?.()]);
  });

  it('says so when the token is away, and signs when it is back', async () => {
    const signer = await openAt();
    hsm.meddle('vault', (library, slot) => library.C_CloseAllSessions(slot));
    await signer.close?.();
    renameSync(hsm.tokens, `${hsm.tokens}.away`);
    const text = 'token: no token has this label, there are: none';
    const said = await openAt().then(
      () => assert.fail(),
      ({ message }) => message,
    );
    renameSync(`${hsm.tokens}.away`, hsm.tokens);
    assert.match(said, new RegExp(`^(${text}|module: the module says CKR_GENERAL_ERROR)$`));
    const again = await openAt();
    await assertSigns(again, digest);
    await again.close?.();
  });

  it('tries again to open a token that cannot be read for a moment, as while other processes log in', async () => {
    renameSync(hsm.tokens, `${hsm.tokens}.away`);
    const opening = openAt();
    await setImmediate();
    renameSync(`${hsm.tokens}.away`, hsm.tokens);
    const signer = await opening;
    await assertSigns(signer, digest);
    await signer.close?.();
  });

  it('is not opened with another PIN than the one that the process is logged in with, which nobody would check', async () => {
    const signer = await openAt();
    const message = 'pin: is not the one that this process is logged in with: only a restart can try it';
    await assert.rejects(openAt({ label: 'next', pin: '1357-geheim' }), { message });
    const next = await openAt({ label: 'next' });
    await Promise.all([assertSigns(signer, digest), assertSigns(next, digest)]);
    await Promise.all([signer.close?.(), next.close?.()]);
    await assert.rejects(openAt({ pin: '1357-geheim' }), { message: 'pin: the module says CKR_PIN_INCORRECT' });
  });

  const noModule = 'module: the file is no PKCS#11 library for this machine';
  const unopened: readonly [string, object, string][] = [
    ['a module that is not there', { module: '/nowhere/hsm.so' }, 'module: there is no such file'],
    ['a module that is a text', { module: import.meta.filename }, noModule],
    ['a module that is another library', { module: process.execPath }, noModule],
    ['no such token', { token: 'geheim' }, 'token: no token has this label, there are: "vault", "same", "same"'],
    ['two such tokens', { token: 'same' }, 'token: more than one token has this label'],
    ['a wrong PIN', { pin: '1357-geheim' }, 'pin: the module says CKR_PIN_INCORRECT'],
    ['a PIN that is too short', { pin: '1' }, 'pin: the module says CKR_PIN_INCORRECT'],
    ['no such key', { label: 'geheim' }, 'label: the token has no private EC key with this label'],
    ['half of the key', { label: 'lonely' }, 'label: the token has no public EC key with this label'],
    ['two such keys', { label: 'twice' }, 'label: more than one private key has this label'],
    ['a key on another curve', { label: 'p256' }, 'label: the key is not on the curve secp256k1'],
  ];
  for (const [what, config, text] of unopened) {
    it(`is not opened with ${what}, and shows no PIN`, async () => {
      const said: string = await openAt(config).then(
        () => assert.fail('it was opened'),
        ({ message }) => message,
      );
      const sorted = (list: string) => list.split(/[:,] /).sort();
      assert.deepEqual(sorted(said), sorted(text));
      assert.ok(!said.includes('geheim'));
      const good = await openAt();
      await assertSigns(good, digest);
      await good.close?.();
    });
  }

  it('says which package it needs', () => {
    const program = `import { signerPkcs11 } from './builtins/signer-pkcs11/index.ts';
      await signerPkcs11.signers.pkcs11.open({}, {}).catch((error) => console.log(error.message));`;
    const text = 'needs a package that is not installed, or not built: npm install pkcs11js@2\n';
    assert.equal(outputWithout('pkcs11js', program), text);
  });

  it('leaves the queue when nobody waits any more', async () => {
    const signer = await openAt();
    const stop = new AbortController();
    stop.abort();
    assert.equal(await refusalOf(signer, stop.signal).catch((reason) => reason), 'This operation was aborted');
    await signer.close?.();
  });
});
