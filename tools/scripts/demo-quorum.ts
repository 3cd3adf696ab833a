// `npm run demo:quorum` runs three operators of one specification, one of which lies, and a contract on anvil that needs two.
import { Wallet } from 'ethers';
import { chainFor } from '../../test/support/chain.ts';
import type { Lifetime } from '../../test/support/lifetime.ts';
import { deploy, errorOf, NO_HASH, NOBODY, SignedDataQuorum } from '../../test/support/quorum.ts';
import { serviceFor } from '../../test/support/service.ts';
import { faults, upstreamFor } from '../../test/support/upstream.ts';
import { askMany, calldataFor } from '../../verify/index.ts';
import { withLifetime } from './lifetime.ts';

const LIE = `export default {
  name: 'liar',
  hooks: { onAfterApiCall: ({ response: { data } }) => ({ data: { ...data, price: data.price * 10 } }) },
};
`;

const say = (line = '') => process.stdout.write(`${line}\n`);

async function operator(lifetime: Lifetime, upstream: string, lies: boolean) {
  const wallet = Wallet.createRandom();
  const endpoints = [{ name: 'eth-usd', path: '/price', encoding: { type: 'int256', path: '$.price', times: '1e18' } }];
  const apis = [{ name: 'prices', url: upstream, auth: { type: 'free' }, endpoints }];
  const settings = { plugins: lies ? [{ source: './liar.mjs' }] : [] };
  const env = { SERVICE_PRIVATE_KEY: wallet.privateKey };
  const service = await serviceFor(lifetime, { settings, apis }, { env, files: { 'liar.mjs': LIE } });
  const endpointId = service.ids['prices/eth-usd'] ?? '';
  say(`  ${service.url} signs as ${wallet.address}${lies ? ', and lies' : ''}`);
  return { url: service.url, signer: wallet.address, endpointId };
}

async function demo(lifetime: Lifetime): Promise<void> {
  const upstream = await upstreamFor(lifetime, { '/price': faults.text('{"price":2064.25}') });
  say('1. Three operators of one specification ask one upstream, which says 2064.25:\n');
  const all: Awaited<ReturnType<typeof operator>>[] = [];
  for (const lies of [false, false, true]) all.push(await operator(lifetime, upstream.url, lies));
  const [{ endpointId } = { endpointId: '' }] = all;
  if (all.some((each) => each.endpointId !== endpointId)) throw new Error('the endpoint IDs differ');
  say(`\n  All have the endpoint ID ${endpointId}.`);

  say('\n2. A program asks all of them, and wants two of three within 1 %:\n');
  const operators = all.map(({ url, signer }) => ({ url, signer }));
  const good = await askMany({ operators, endpointId, k: 2, settle: 'all', maxDeviation: 0.01 });
  say(`  value    ${good.value}, the median of ${good.answers.length}`);
  for (const { url, reason, message } of good.failures) say(`  failed   ${url}: ${reason}: ${message}`);

  say('\n3. A contract on anvil knows the three signers, and wants two of them:\n');
  const chain = await chainFor(lifetime);
  const signers = operators.map(({ signer }) => signer);
  const rules = { owner: NOBODY, endpointId, requestHash: NO_HASH, threshold: 2, maxAge: 180, maxAhead: 60, signers };
  const quorum = await deploy(SignedDataQuorum, await chain.provider.getSigner(0), rules, 0);
  const to = await quorum.getAddress();
  const read = async (answers: Parameters<typeof calldataFor>[0]) => {
    const result = await chain.provider.call({ to, data: calldataFor(answers) });
    return quorum.interface.decodeFunctionResult('median', result)[0];
  };
  const refusal = (answers: Parameters<typeof calldataFor>[0]) => errorOf(read(answers), quorum.interface);
  say(`  contract ${to}`);
  say(`  reads    ${await read(good.answers)} from the two that agree`);
  // Without a bound the lie is good, and the median of three is still between two honest values.
  const { answers } = await askMany({ operators, endpointId, k: 3 });
  say(`  reads    ${await read(answers)} from all three, the lie included`);
  const forged = answers.map((answer) => ({ ...answer, data: `0x${'ee'.repeat(32)}` }));
  say(`  refuses  changed data: ${await refusal(forged)}`);
  say(`  refuses  one answer: ${await refusal(answers.slice(0, 1))}`);
}

await withLifetime(demo);
