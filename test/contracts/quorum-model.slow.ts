/** `SignedDataQuorum` says of 2,000 sets of answers, others in each run, what a model of a few lines says. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BaseContract } from 'ethers';
import fc from 'fast-check';
import { type Chain, startChain } from '../support/chain.ts';
import {
  type Answer,
  answerOf,
  deploy,
  ENDPOINT,
  errorOf,
  SignedDataQuorum,
  settingsOf,
  signer,
} from '../support/quorum.ts';

const CASES = 2000;
const THRESHOLD = 3;
const KNOWN = 5;
const MAX_AGE = 180;
const MAX_AHEAD = 60;
const OTHER_ENDPOINT = `0x${'0e'.repeat(32)}`;

/** What makes an answer. */
interface Said {
  readonly signer: number;
  readonly value: bigint;
  readonly age: number;
  readonly fault: 'none' | 'endpoint' | 'signature' | 'length' | 'by another';
}

// Few enough that most answers are signed once only, which takes longest.
const values = fc.constantFrom(
  -(2n ** 255n),
  1n - 2n ** 255n,
  -7n,
  -2n,
  -1n,
  0n,
  1n,
  2n,
  7n,
  2n ** 255n - 2n,
  2n ** 255n - 1n,
);
const ages = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(-MAX_AHEAD, -1, 0, 1, 77, MAX_AGE) },
  { weight: 1, arbitrary: fc.constantFrom(-MAX_AHEAD - 1, MAX_AGE + 1, 100_000) },
);
const faults = fc.oneof(
  { weight: 40, arbitrary: fc.constant<Said['fault']>('none') },
  { weight: 1, arbitrary: fc.constantFrom<Said['fault']>('endpoint', 'signature', 'length', 'by another') },
);
const said: fc.Arbitrary<Said> = fc.record({
  signer: fc.oneof({ weight: 40, arbitrary: fc.nat(KNOWN - 1) }, { weight: 1, arbitrary: fc.nat(KNOWN) }),
  value: values,
  age: ages,
  fault: faults,
});
// Mostly different signers: else nearly every set would be refused for one that stands in it twice.
const sets = fc.oneof(
  { weight: 9, arbitrary: fc.uniqueArray(said, { maxLength: KNOWN + 1, selector: (each) => each.signer }) },
  { weight: 1, arbitrary: fc.array(said, { maxLength: KNOWN + 1 }) },
);

const answers = new Map<string, Promise<Answer>>();

/** The answer as somebody sends it, who signed or spoilt it. */
function answer(each: Said, now: number): Promise<Answer> {
  const key = Object.values(each).join();
  const made = answers.get(key) ?? make(each, now);
  answers.set(key, made);
  return made;
}

async function make(each: Said, now: number): Promise<Answer> {
  const endpointId = each.fault === 'endpoint' ? OTHER_ENDPOINT : ENDPOINT;
  const whole = `0x${BigInt.asUintN(256, each.value).toString(16).padStart(64, '0')}`;
  const data = each.fault === 'length' ? `${whole}00` : whole;
  const made = await answerOf(each.signer, now - each.age, data, { endpointId });
  if (each.fault === 'signature') return { ...made, signature: `${made.signature.slice(0, -2)}02` };
  if (each.fault === 'by another') return { ...made, node: signer((each.signer + 1) % KNOWN).address };
  return made;
}

function faultOf({ signer: index, age, fault }: Said, seen: ReadonlySet<string>, node: string): string | undefined {
  const known = fault === 'by another' || index < KNOWN;
  if (!known) return 'UnknownSigner';
  if (seen.has(node)) return 'DuplicateSigner';
  if (fault === 'endpoint') return 'OtherEndpoint';
  if (age < -MAX_AHEAD) return 'FromTheFuture';
  if (age > MAX_AGE) return 'Stale';
  if (fault === 'signature') return 'InvalidSignature';
  if (fault === 'by another') return 'WrongSigner';
  if (fault === 'length') return 'MalformedData';
  return undefined;
}

/** The name of the error, or the median and the age of the oldest answer. */
function expected(set: readonly Said[], nodes: readonly string[]): string {
  if (set.length < THRESHOLD) return 'TooFewAnswers';
  const seen = new Set<string>();
  for (const [place, each] of set.entries()) {
    const node = nodes[place] ?? '';
    const fault = faultOf(each, seen, node);
    if (fault !== undefined) return fault;
    seen.add(node);
  }
  const sorted = set.map(({ value }) => value).sort((a, b) => (a < b ? -1 : Number(a > b)));
  const low = sorted[Math.ceil(sorted.length / 2) - 1] ?? 0n;
  const high = sorted[Math.floor(sorted.length / 2)] ?? 0n;
  // A quotient of bigints is rounded towards zero.
  return `${(low + high) / 2n} ${Math.max(...set.map(({ age }) => age))}`;
}

let chain: Chain;
let contract: BaseContract;
before(async () => {
  chain = await startChain();
  contract = await deploy(SignedDataQuorum, await chain.provider.getSigner(0), settingsOf(), 0);
});
after(() => chain?.stop());

async function found(sent: readonly Answer[], now: number): Promise<string> {
  const { to, data } = await contract.getFunction('median').populateTransaction(sent);
  const call = chain.provider.send('eth_call', [{ to, data }, 'latest', {}, { time: `0x${now.toString(16)}` }]);
  try {
    const [value, timestamp] = contract.interface.decodeFunctionResult('median', await call);
    return `${value} ${BigInt(now) - timestamp}`;
  } catch {
    return (await errorOf(call, contract.interface)).replace(/\(.*/, '');
  }
}

describe('the median of a quorum', () => {
  it(`is that of the model, ${CASES} times`, async () => {
    const now = (await chain.provider.getBlock('latest'))?.timestamp ?? 0;
    const outcomes = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(sets, async (set) => {
        const sent = await Promise.all(set.map((each) => answer(each, now)));
        const wanted = expected(
          set,
          sent.map(({ node }) => node),
        );
        const kind = /^-?\d/.test(wanted) ? 'median' : wanted;
        outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
        assert.equal(await found(sent, now), wanted);
      }),
      { numRuns: CASES },
    );
    const kinds = ['DuplicateSigner', 'FromTheFuture', 'InvalidSignature', 'MalformedData', 'OtherEndpoint', 'Stale'];
    assert.deepEqual([...outcomes.keys()].sort(), [
      ...kinds,
      'TooFewAnswers',
      'UnknownSigner',
      'WrongSigner',
      'median',
    ]);
    assert.ok((outcomes.get('median') ?? 0) > CASES / 4, `medians: ${outcomes.get('median')}`);
  });
});
