/** `SignedDataQuorum` accepts k of n good answers, and refuses all of them for one that is not. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { type BaseContract, dataSlice, type JsonRpcSigner, Signature, toBeHex, zeroPadValue } from 'ethers';
import fc from 'fast-check';
import { requestHashOf } from '../../verify/index.ts';
import { chainFor } from '../support/chain.ts';
import { suite } from '../support/lifetime.ts';
import {
  type Answer,
  answerOf,
  dataOf,
  deploy,
  ENDPOINT,
  errorOf,
  NO_HASH,
  NOBODY,
  type Settings,
  SignedDataQuorum,
  settingsOf,
  signer,
  signers,
} from '../support/quorum.ts';

const ORDER = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n;
const INT_MIN = -(2n ** 255n);
const INT_MAX = 2n ** 255n - 1n;
const OTHER = `0x${'0e'.repeat(32)}`;
const DAY = 86_400;

const chain = await chainFor(suite);
const deployer = await chain.provider.getSigner(0);
/** The time of the block that views are evaluated in. */
const now = (await chain.provider.getBlock('latest'))?.timestamp ?? 0;

const quorum = (changes: Partial<Settings> = {}, delay = 0): Promise<BaseContract> =>
  deploy(SignedDataQuorum, deployer, settingsOf(changes), delay);

/** Reads as if the latest block were of that time. */
async function read(contract: BaseContract, name: string, answers: readonly Answer[], time = now): Promise<unknown[]> {
  const { to, data } = await contract.getFunction(name).populateTransaction(answers);
  const bytes = await chain.provider.send('eth_call', [{ to, data }, 'latest', {}, { time: toBeHex(time) }]);
  return [...contract.interface.decodeFunctionResult(name, bytes)];
}

const refusal = (contract: BaseContract, answers: readonly Answer[], time = now) =>
  errorOf(read(contract, 'median', answers, time), contract.interface);

const said = (values: readonly (bigint | string)[], timestamp = now): Promise<Answer[]> =>
  Promise.all(values.map((value, n) => answerOf(n, timestamp, value)));

describe('a quorum of three of five', async () => {
  const contract = await quorum();

  it('shows what it was made for', async () => {
    const [owner, endpointId, requestHash, threshold, maxAge, maxAhead, nodes] = await contract
      .getFunction('settings')
      .staticCall();
    assert.deepEqual(
      [owner, endpointId, requestHash, threshold, maxAge, maxAhead],
      [NOBODY, ENDPOINT, NO_HASH, 3n, 180n, 60n],
    );
    assert.deepEqual(
      [...nodes],
      signers.slice(0, 5).map(({ address }) => address),
    );
  });

  it('returns the data of all in their order, and the oldest time', async () => {
    const answers = [await answerOf(3, now, '0x1234'), await answerOf(0, now - 9, '0x'), await answerOf(1, now, 7n)];
    assert.deepEqual(
      (await read(contract, 'verify', answers)).map((value) => (Array.isArray(value) ? [...value] : value)),
      [['0x1234', '0x', dataOf(7n)], BigInt(now - 9)],
    );
  });

  for (const [values, median] of [
    [[3n, 1n, 2n], 2n],
    [[5n, 5n, 1n], 5n],
    [[4n, 1n, 3n, 2n], 2n],
    [[-4n, -1n, -3n, -2n], -2n],
    [[-1n, 2n, -2n, 1n], 0n],
    [[-2n, 1n, -9n, 9n], 0n],
    [[3n, 5n, 1n, 9n], 4n],
    [[INT_MIN, INT_MIN, INT_MIN, INT_MIN], INT_MIN],
    [[INT_MAX, INT_MAX, INT_MAX, INT_MAX], INT_MAX],
    [[INT_MIN, INT_MAX, INT_MIN, INT_MAX], 0n],
    [[INT_MAX, INT_MAX - 1n, INT_MAX, INT_MAX - 1n], INT_MAX - 1n],
    [[INT_MIN, INT_MIN + 1n, INT_MIN, INT_MIN + 1n], INT_MIN + 1n],
    [[5n, 4n, 3n, 2n, 1n], 3n],
  ] as const) {
    it(`has the median ${median} of ${values.join(', ').slice(0, 60)}`, async () => {
      const answers = await said(values);
      assert.deepEqual(await read(contract, 'median', answers), [median, BigInt(now)]);
      assert.deepEqual(await read(contract, 'median', answers.toReversed()), [median, BigInt(now)]);
    });
  }

  it('takes an answer as old or as far ahead as may be, and none beyond', async () => {
    const [old, ahead] = [now - 180, now + 60];
    const answers = [await answerOf(0, old, 1n), await answerOf(1, now, 2n), await answerOf(2, ahead, 3n)];
    assert.deepEqual(await read(contract, 'median', answers), [2n, BigInt(old)]);
    assert.equal(await refusal(contract, answers, now + 1), `Stale(${signer(0).address},${old})`);
    assert.equal(await refusal(contract, answers, now - 1), `FromTheFuture(${signer(2).address},${ahead})`);
  });

  describe('reads calldata', async () => {
    const WORD = 32;
    const call = async (data: string): Promise<string> => {
      const to = await contract.getAddress();
      return chain.provider.send('eth_call', [{ to, data }, 'latest', {}, { time: toBeHex(now) }]);
    };
    const { data: sent } = await contract.getFunction('median').populateTransaction(await said([3n, 1n, 2n]));
    /** How many words of it there are behind the selector. */
    const words = (sent.length / 2 - 5) / WORD;
    const result = await call(sent);
    const word = (value: bigint) => zeroPadValue(toBeHex(value), WORD).slice(2);
    /** The calldata with another word in the place of one. */
    const withWord = (place: number, value: string) => {
      const begin = 4 + place * WORD;
      return dataSlice(sent, 0, begin) + value + dataSlice(sent, begin + WORD).slice(2);
    };

    it('wherever an encoder puts its parts, in any order, or with something between', async () => {
      // Selector, where the list begins, its length, and where the three answers begin.
      const from = (place: number) => dataSlice(sent, 4 + (2 + place) * WORD).slice(2);
      const [one = 0, two = 0, three = 0] = [0, 1, 2].map((n) => Number(`0x${from(n).slice(0, 64)}`));
      const places = (...all: number[]) => all.map((place) => word(BigInt(place))).join('');
      const head = dataSlice(sent, 0, 4 + 2 * WORD);
      const answers = from(3);
      assert.equal(await call(head + places(three, one, two) + answers), result);
      assert.equal(await call(head + places(one + 7, two + 7, three + 7) + 'ff'.repeat(7) + answers), result);
      await assert.rejects(call(head + places(one, one, three) + answers));
    });

    it('and counts nothing but what was signed, whatever stands in its place', async () => {
      const max = 2n ** 256n - 1n;
      const special = fc.constantFrom(0n, 1n, 31n, 32n, 64n, 65n, 2n ** 32n, 2n ** 64n, 2n ** 255n, max - 31n, max);
      const value = fc.oneof(special, fc.nat(2000).map(BigInt), fc.bigInt(0n, max));
      const changes = fc.oneof(
        fc.tuple(fc.nat(words - 1), value).map(([place, other]) => withWord(place, word(other))),
        fc.nat(sent.length / 2 - 1).map((length) => dataSlice(sent, 0, length)),
      );
      let refused = 0;
      const property = fc.asyncProperty(changes, async (data) => {
        const answer = await call(data).catch(() => undefined);
        if (answer === undefined) refused += 1;
        else assert.equal(answer, result);
      });
      await fc.assert(property, { numRuns: 500 });
      assert.ok(refused > 250, `${refused} of 500 are refused`);
    });

    it('in which a length that nothing has costs no more than the rest', async () => {
      // Six words of the first answer begin at 5; its data is what follows.
      const data = withWord(11, word(2n ** 40n));
      const asked = { to: await contract.getAddress(), data, gas: toBeHex(200_000) };
      await assert.rejects(chain.provider.send('eth_call', [asked, 'latest']), /execution reverted/);
    });

    it('in which an address has no other bits', async () => {
      // Behind the list's place, its length and three places: the node of the first answer.
      const { address } = signer(0);
      assert.equal(await call(withWord(5, zeroPadValue(address, WORD).slice(2))), result);
      await assert.rejects(call(withWord(5, `01${zeroPadValue(address, WORD).slice(4)}`)));
    });
  });

  it('takes no time that would overflow', async () => {
    const [first, second] = await said([1n, 2n]);
    const far = { ...(await answerOf(2, now, 3n)), timestamp: 2n ** 256n - 1n };
    const answers = [first, second, far];
    const error = await errorOf(contract.getFunction('median').staticCall(answers), contract.interface);
    assert.equal(error, `FromTheFuture(${signer(2).address},${2n ** 256n - 1n})`);
  });

  describe('refuses all of them for', async () => {
    const good = await said([1n, 2n]);
    const last = await answerOf(2, now, 3n);
    const isRefused = async (answer: Answer, error: string) => {
      for (const answers of [
        [...good, answer],
        [answer, ...good],
      ]) {
        assert.equal(await refusal(contract, answers), error);
        assert.equal(await errorOf(read(contract, 'verify', answers), contract.interface), error);
      }
    };
    const { address: node } = signer(2);

    it('being fewer than three', async () => {
      assert.equal(await refusal(contract, []), 'TooFewAnswers(0,3)');
      assert.equal(await refusal(contract, good), 'TooFewAnswers(2,3)');
    });
    it('a signer twice, also with another answer', async () => {
      const [first] = good;
      assert.ok(first);
      const error = `DuplicateSigner(${first.node})`;
      assert.equal(await refusal(contract, [...good, first]), error);
      assert.equal(await refusal(contract, [...good, await answerOf(0, now - 1, 9n)]), error);
      assert.equal(await refusal(contract, [...good, last, first]), error);
    });
    it('an unknown signer, who signed well', async () => {
      await isRefused(await answerOf(5, now, 3n), `UnknownSigner(${signer(5).address})`);
    });
    it('the zero address, to which what is no signature recovers', async () => {
      await isRefused({ ...last, node: NOBODY, signature: `0x${'00'.repeat(64)}1b` }, `UnknownSigner(${NOBODY})`);
    });
    it('another endpoint', async () => {
      await isRefused(await answerOf(2, now, 3n, { endpointId: OTHER }), `OtherEndpoint(${node},${OTHER})`);
      await isRefused({ ...last, endpointId: OTHER }, `OtherEndpoint(${node},${OTHER})`);
    });
    it('an answer that is too old', async () => {
      await isRefused(await answerOf(2, now - 181, 3n), `Stale(${node},${now - 181})`);
    });
    it('an answer from the future', async () => {
      await isRefused(await answerOf(2, now + 61, 3n), `FromTheFuture(${node},${now + 61})`);
    });
    it('a high s, no v, no signature', async () => {
      const { r, s, v } = Signature.from(last.signature);
      const high = `${r}${(ORDER - BigInt(s)).toString(16).padStart(64, '0')}${(55 - v).toString(16)}`;
      await isRefused({ ...last, signature: high }, `InvalidSignature(${node},3)`);
      await isRefused({ ...last, signature: `${last.signature.slice(0, -2)}01` }, `InvalidSignature(${node},2)`);
      for (const signature of ['0x', `${last.signature}00`])
        await isRefused({ ...last, signature }, `InvalidSignature(${node},1)`);
      await isRefused({ ...last, signature: `0x${'00'.repeat(64)}1b` }, `InvalidSignature(${node},4)`);
    });
    it('the signature of another known signer', async () => {
      const { signature } = await answerOf(3, now, 3n);
      await isRefused({ ...last, signature }, `WrongSigner(${node},${signer(3).address})`);
    });
    it('data or a time that was changed', async () => {
      for (const change of [{ data: dataOf(4n) }, { timestamp: now - 1 }]) {
        assert.match(
          await refusal(contract, [...good, { ...last, ...change }]),
          new RegExp(`^WrongSigner\\(${node},0x`),
        );
      }
    });
    it('data of which there is no median', async () => {
      for (const data of ['0x', `${dataOf(1n)}00`, dataOf(1n).slice(0, -2)]) {
        const answers = [...good, await answerOf(2, now, data)];
        assert.equal(await refusal(contract, answers), `MalformedData(${node})`);
        assert.equal((await read(contract, 'verify', answers)).length, 2);
      }
    });
  });
});

describe('a quorum that wants one request', () => {
  const parameters = { symbol: 'ETHUSD' };
  const answersTo = (asked?: Readonly<Record<string, unknown>>) =>
    Promise.all([0, 1, 2].map((n) => answerOf(n, now, BigInt(n), asked && { parameters: asked })));
  const { address: first } = signer(0);

  it('takes answers with receipts of it, and no others', async () => {
    const contract = await quorum({ requestHash: requestHashOf(parameters) });
    assert.deepEqual(await read(contract, 'median', await answersTo(parameters)), [1n, BigInt(now)]);
    assert.equal(await refusal(contract, await answersTo()), `InvalidReceipt(${first},1)`);
    assert.match(
      await refusal(contract, await answersTo({ symbol: 'BTCUSD' })),
      new RegExp(`^WrongReceipt\\(${first},0x`),
    );
    const [mine, ...others] = await answersTo(parameters);
    const older = await answerOf(0, now - 1, 0n, { parameters });
    assert.ok(mine);
    const swapped = [{ ...mine, receiptSignature: older.receiptSignature }, ...others];
    assert.match(await refusal(contract, swapped), new RegExp(`^WrongReceipt\\(${first},0x`));
  });

  it('without one, takes answers with any receipt or none', async () => {
    const contract = await quorum();
    assert.deepEqual(await read(contract, 'median', await answersTo({ symbol: 'BTCUSD' })), [1n, BigInt(now)]);
  });
});

describe('a quorum’s settings', () => {
  for (const [changes, problem] of [
    [{ threshold: 0 }, 'threshold: 0 would accept no answer at all'],
    [{ threshold: 6 }, 'threshold: more than there are signers'],
    [{ endpointId: NO_HASH }, 'endpointId: zero'],
    [{ signers: [signer(0).address, NOBODY, signer(1).address] }, 'signers: the zero address'],
    [{ signers: [0, 1, 0].map((n) => signer(n).address) }, 'signers: one of them twice'],
    [
      { signers: Array.from({ length: 65 }, (_, i) => `0x${(i + 1).toString(16).padStart(40, '0')}`) },
      'signers: more than 64',
    ],
  ] as const) {
    it(`are refused: ${problem}`, async () => {
      assert.ok(SignedDataQuorum);
      const { interface: known } = await quorum();
      assert.equal(await errorOf(quorum(changes), known), `InvalidSettings(${problem})`);
    });
  }

  it('of 64 signers and the largest numbers are kept', async () => {
    const many = Array.from({ length: 64 }, (_, i) => `0x${'ab'.repeat(19)}${(i + 16).toString(16)}`.toLowerCase());
    const wide = { threshold: 64, maxAge: 2 ** 32 - 1, maxAhead: 2 ** 32 - 1, signers: many };
    const kept = await (await quorum(wide)).getFunction('settings').staticCall();
    assert.equal(kept.signers.length, 64);
    assert.deepEqual([kept.threshold, kept.maxAge, kept.maxAhead], [64n, 2n ** 32n - 1n, 2n ** 32n - 1n]);
  });

  it('stay as they are without an owner', async () => {
    const contract = await quorum();
    const { address } = deployer;
    for (const [name, ...args] of [['propose', settingsOf()], ['cancel']] as const) {
      assert.equal(
        await errorOf(contract.getFunction(name).staticCall(...args), contract.interface),
        `Unauthorized(${address})`,
      );
    }
    assert.equal(await errorOf(contract.getFunction('accept').staticCall(), contract.interface), 'NotReady(0)');
  });

  describe('change in two steps', () => {
    let other: JsonRpcSigner;
    let contract: BaseContract;
    // Not while another suite deploys: two transactions would have one nonce.
    before(async () => {
      other = await chain.provider.getSigner(1);
      contract = await quorum({ owner: deployer.address }, DAY);
    });
    const send = async (from: JsonRpcSigner, name: string, ...args: readonly unknown[]) => {
      const sent = await contract
        .connect(from)
        .getFunction(name)
        .send(...args);
      return (await sent.wait())?.blockNumber;
    };
    const fails = (from: JsonRpcSigner, name: string, ...args: readonly unknown[]) =>
      errorOf(
        contract
          .connect(from)
          .getFunction(name)
          .staticCall(...args),
        contract.interface,
      );
    const readyAt = async () => Number(await contract.getFunction('readyAt').staticCall());
    const settings = async () => contract.getFunction('settings').staticCall();

    it('which the owner alone proposes, and which count after the delay', async () => {
      const next = settingsOf({ owner: deployer.address, threshold: 2 });
      assert.equal(await fails(other, 'propose', next), `Unauthorized(${other.address})`);
      await send(deployer, 'propose', next);
      assert.equal((await settings()).threshold, 3n);
      assert.equal((await contract.getFunction('proposal').staticCall()).threshold, 2n);
      assert.equal(await fails(deployer, 'accept'), `NotReady(${await readyAt()})`);
      assert.equal(await fails(other, 'accept'), `Unauthorized(${other.address})`);
      await chain.provider.send('evm_setNextBlockTimestamp', [(await readyAt()) - 1]);
      await chain.provider.send('evm_mine', []);
      await chain.provider.send('evm_setNextBlockTimestamp', [await readyAt()]);
      await send(deployer, 'accept');
      assert.equal((await settings()).threshold, 2n);
      assert.equal(await readyAt(), 0);
      assert.equal(await fails(deployer, 'accept'), 'NotReady(0)');
      assert.equal(await fails(deployer, 'proposal'), 'NotReady(0)');
    });

    it('and are taken back before, or replaced with the whole delay', async () => {
      await send(deployer, 'propose', settingsOf({ owner: deployer.address, threshold: 1 }));
      assert.equal(await fails(other, 'cancel'), `Unauthorized(${other.address})`);
      await send(deployer, 'cancel');
      assert.equal(await fails(deployer, 'accept'), 'NotReady(0)');
      await send(deployer, 'propose', settingsOf({ owner: deployer.address, threshold: 1 }));
      const first = await readyAt();
      await chain.provider.send('evm_setNextBlockTimestamp', [first]);
      const block = await send(deployer, 'propose', settingsOf({ owner: other.address, threshold: 4 }));
      const { timestamp } = (await chain.provider.getBlock(block ?? 0)) ?? {};
      assert.equal(await readyAt(), (timestamp ?? 0) + DAY);
    });

    it('a new owner included, who accepts, and can give up the rest', async () => {
      await chain.provider.send('evm_increaseTime', [DAY]);
      await chain.provider.send('evm_mine', []);
      assert.equal(await fails(deployer, 'accept'), `Unauthorized(${deployer.address})`);
      await send(other, 'accept');
      assert.equal((await settings()).owner, other.address);
      assert.equal(await fails(deployer, 'propose', settingsOf()), `Unauthorized(${deployer.address})`);
      await send(other, 'propose', settingsOf());
      await chain.provider.send('evm_increaseTime', [DAY]);
      await chain.provider.send('evm_mine', []);
      assert.equal(await fails(deployer, 'accept'), `Unauthorized(${deployer.address})`);
      await send(other, 'accept');
      assert.equal((await settings()).owner, NOBODY);
      assert.equal(await fails(other, 'propose', settingsOf()), `Unauthorized(${other.address})`);
    });

    it('which are checked when they are proposed', async () => {
      const owned = await quorum({ owner: deployer.address });
      const call = owned.getFunction('propose').staticCall(settingsOf({ threshold: 0 }));
      assert.equal(await errorOf(call, owned.interface), 'InvalidSettings(threshold: 0 would accept no answer at all)');
    });
  });
});
