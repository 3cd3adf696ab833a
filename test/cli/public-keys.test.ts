/** Keys that everybody knows, and variables that others can read, are warned of. */
import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { HDNodeWallet, Wallet } from 'ethers';
import type { Address } from '../../lib/eth/hex.ts';
import { publicKeyWarning } from '../../service/public-keys.ts';
import { openFileWarning } from '../../service/surroundings.ts';
import { folderWith, launchCli } from './run.ts';
import { configText, KEY } from './service-config.ts';
import { lastLine } from './started.ts';

const ANVIL = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const ANVIL_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
const warning = (address: string, source: string) =>
  `the key of ${address} is public (${source}): anyone can sign in its name; make one with generate-mnemonic`;
const publishedIn = (address: Address) => /\((.*)\)/.exec(publicKeyWarning(address) ?? '')?.[1];
const readable = (mode: number) => `./.env can be read by others (mode ${mode.toString(8)}): chmod 600 it`;
const modes = process.platform !== 'win32';

it('a start warns of a key that is public, of variables that others can read, and of their lines that say nothing', async (t) => {
  const cwd = await folderWith(t, {
    'c.yaml': configText(),
    '.env': `SERVICE_PRIVATE_KEY=${ANVIL_KEY}\nA=a#1\nKEY hunter2\n`,
  });
  await chmod(join(cwd, '.env'), 0o644);
  const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd });
  await running.output(lastLine);
  const { stdout } = await running.stop();
  const warned = stdout.split('\n').flatMap((line) => / WARN (.*)$/.exec(line)?.[1]?.replaceAll(cwd, '.') ?? []);
  assert.deepEqual(warned, [
    ...(modes ? [readable(0o644)] : []),
    './.env:2: the value of A ends before the #: write it in quotes to keep the rest',
    './.env:3: this line is ignored: write NAME=value',
    warning(ANVIL, 'anvil and hardhat'),
  ]);
});

it('every mode is warned of by which others can read or write, but that of a secret in Kubernetes', {
  skip: !modes,
}, async (t) => {
  const cwd = await folderWith(t, { 'a.env': '' });
  const file = join(cwd, 'a.env');
  const warned = async (mode: number) => {
    await chmod(file, mode);
    return openFileWarning(file)?.replace(file, './.env');
  };
  for (const mode of [0o644, 0o640, 0o602, 0o444, 0o460]) assert.equal(await warned(mode), readable(mode));
  for (const mode of [0o600, 0o400, 0o440]) assert.equal(await warned(mode), undefined);
});

describe('public keys', () => {
  const first = (phrase: string, index = 0) =>
    HDNodeWallet.fromPhrase(phrase, '', `m/44'/60'/0'/0/${index}`).address as Address;

  it('are those of tools and standards, and no others', () => {
    const vector = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
    assert.equal(first(`${'abandon '.repeat(11)}about`), vector);
    assert.equal(publicKeyWarning(vector), warning(vector, 'the test vectors of BIP-39'));
    assert.equal(first(`${'test '.repeat(11)}junk`), ANVIL);
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
