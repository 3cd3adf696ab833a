/** Keys that everybody knows, and variables that others can read, are warned of. */
import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { HDNodeWallet, Wallet } from 'ethers';
import type { Address } from '../../lib/eth/hex.ts';
import { publishedIn } from '../../service/public-keys.ts';
import { folderWith, launchCli } from './run.ts';
import { configText, KEY } from './service-config.ts';
import { lastLine } from './started.ts';

/** What a start with that variables file warns of. */
async function warnings(t: TestContext, variables: string, mode = 0o600): Promise<string[]> {
  const cwd = await folderWith(t, { 'c.yaml': configText(), '.env': variables });
  await chmod(join(cwd, '.env'), mode);
  const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd });
  await running.output(lastLine);
  running.child.kill('SIGTERM');
  const { stdout } = await running.ended;
  return stdout.split('\n').flatMap((line) => / WARN (.*)$/.exec(line)?.[1]?.replaceAll(cwd, '.') ?? []);
}

describe('a start', { concurrency: 2 }, () => {
  it('warns of a key or mnemonic that is public', async (t) => {
    const anvil = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
    const warning = (address: string, source: string) =>
      `the key of ${address} is public (${source}): anyone can sign in its name; make one with generate-mnemonic`;
    const key = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
    const junk = `${'test '.repeat(11)}junk`;
    const abandon = `${'abandon '.repeat(11)}about`;
    assert.deepEqual(await warnings(t, `SERVICE_PRIVATE_KEY=${key}\n`), [warning(anvil, 'anvil and hardhat')]);
    assert.deepEqual(await warnings(t, `SERVICE_MNEMONIC=${junk}\n`), [warning(anvil, 'anvil and hardhat')]);
    const vector = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
    assert.deepEqual(await warnings(t, `SERVICE_MNEMONIC=${abandon}\n`), [
      warning(vector, 'the test vectors of BIP-39'),
    ]);
  });

  it('warns of variables that others can read', { skip: process.platform === 'win32' }, async (t) => {
    for (const mode of [0o644, 0o640, 0o602, 0o444, 0o460]) {
      const text = `./.env can be read by others (mode ${mode.toString(8)}): chmod 600 it`;
      assert.deepEqual(await warnings(t, `SERVICE_PRIVATE_KEY=${KEY}\n`, mode), [text]);
    }
    assert.deepEqual(await warnings(t, `SERVICE_PRIVATE_KEY=${KEY}\n`), []);
    // As Kubernetes mounts a secret with an fsGroup.
    assert.deepEqual(await warnings(t, `SERVICE_PRIVATE_KEY=${KEY}\n`, 0o440), []);
  });

  it('warns of lines of variables that do not say what they seem to', async (t) => {
    assert.deepEqual(await warnings(t, `SERVICE_PRIVATE_KEY=${KEY}#1\nKEY hunter2\n`), [
      './.env:1: the value of SERVICE_PRIVATE_KEY ends before the #: write it in quotes to keep the rest',
      './.env:2: this line is ignored: write NAME=value',
    ]);
  });
});

describe('public keys', () => {
  const first = (phrase: string, index = 0) =>
    HDNodeWallet.fromPhrase(phrase, '', `m/44'/60'/0'/0/${index}`).address as Address;

  it('are those of tools and standards, and no others', () => {
    assert.equal(publishedIn(first(`${'test '.repeat(11)}junk`, 19)), 'anvil and hardhat');
    const ganache = 'myth like bonus scare over problem client lizard pioneer submit female collect';
    assert.equal(publishedIn(first(ganache, 9)), 'ganache');
    const truffle = 'candy maple cake sugar pudding cream honey rich smooth crumble sweet treat';
    assert.equal(publishedIn(first(truffle)), 'truffle');
    const vectors = [
      'legal winner thank year wave sausage worth useful legal winner thank yellow',
      `${'zoo '.repeat(23)}vote`,
      'ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic',
      'scheme spot photo card baby mountain device kick cradle pact join borrow',
    ];
    for (const phrase of vectors) assert.equal(publishedIn(first(phrase)), 'the test vectors of BIP-39', phrase);
    assert.equal(publishedIn(new Wallet(`0x${'0'.repeat(63)}1`).address as Address), 'the private key 1');
    assert.equal(publishedIn(new Wallet(KEY).address as Address), undefined);
    assert.equal(publishedIn(Wallet.createRandom().address as Address), undefined);
  });
});
