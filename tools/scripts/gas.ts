// What the contracts cost as whole transactions, on anvil. `npm run gas -- --redstone DIR` compares a median, after
// `npm i --prefix DIR @redstone-finance/evm-connector@0.9.0 @redstone-finance/protocol`, which bring some 200 packages along.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { AbiCoder, type BaseContract, encodeBytes32String, type Signer, Wallet } from 'ethers';
import { startChain } from '../../test/support/chain.ts';
import {
  answerOf,
  deploy,
  ENDPOINT,
  SignedDataQuorum,
  settingsOf,
  signer,
  signers,
} from '../../test/support/quorum.ts';
import { compile } from '../../test/support/solidity.ts';

const { values } = parseArgs({ options: { redstone: { type: 'string' } } });
const VALUE = 206_425_000_000n;
const FEED = 'ETHUSD';

/** What is used here of `@redstone-finance/protocol`. */
interface Protocol {
  readonly NumericDataPoint: new (point: { dataFeedId: string; value: number }) => object;
  readonly DataPackage: new (
    points: object[],
    milliseconds: number,
    id: string,
  ) => { sign(privateKey: string): object };
  readonly RedstonePayload: { prepare(packages: object[], metadata: string): string };
}

interface Cost {
  readonly what: string;
  readonly bytes: number;
  readonly gas: bigint;
}

async function costOf(what: string, sender: Signer, to: string, data: string): Promise<Cost> {
  return { what, bytes: data.length / 2 - 1, gas: await sender.estimateGas({ to, data }) };
}

async function quorumCost(sender: Signer, now: number, k: number, n: number): Promise<Cost> {
  const all = signers.slice(0, n).map(({ address }) => address);
  const contract = await deploy(SignedDataQuorum, sender, settingsOf({ threshold: k, signers: all }), 0);
  // The signers that are looked for longest, and values that are in order: neither the best nor the worst case.
  const answers = await Promise.all(
    Array.from({ length: k }, (_, i) => answerOf(n - 1 - i, now, VALUE + BigInt(i) * 1_000_000n)),
  );
  const data = contract.interface.encodeFunctionData('median', [answers]);
  return costOf(`median of \`SignedDataQuorum\`, ${k} of ${n}`, sender, await contract.getAddress(), data);
}

/** A callback as a transaction; the view that asks is never one. */
async function readerCost(sender: Signer, now: number): Promise<Cost> {
  const { PriceReader } = await compile('examples/contracts/PriceReader.sol');
  const contract = await deploy(PriceReader, sender, signer(0).address, ENDPOINT, []);
  const parameters = { symbol: FEED };
  const answer = await answerOf(0, now, VALUE, { parameters });
  const coder = AbiCoder.defaultAbiCoder();
  const { node, endpointId, timestamp, data, signature, receiptSignature } = answer;
  const types = ['address', 'bytes32', 'uint256', 'bytes', 'bytes', 'bytes'];
  const response = coder.encode(types, [node, endpointId, timestamp, data, signature, receiptSignature]);
  const extraData = coder.encode(['bytes32', 'string'], [endpointId, JSON.stringify(parameters)]);
  const call = contract.interface.encodeFunctionData('onSignedData', [response, extraData]);
  return costOf('callback of `PriceReader`, with a receipt', sender, await contract.getAddress(), call);
}

async function redstoneCost(sender: Signer, now: number, folder: string): Promise<Cost> {
  const require = createRequire(resolve(folder, 'index.js'));
  const protocol: Protocol = require('@redstone-finance/protocol');
  const { RedStoneMedian } = await compile('tools/scripts/RedStoneMedian.sol', resolve(folder));
  const contract = await deploy(RedStoneMedian, sender);
  const packages = [4, 3, 2].map((index, place) => {
    const point = new protocol.NumericDataPoint({ dataFeedId: FEED, value: 2064.25 + place / 100 });
    const key = new Wallet(`0x${(index + 1).toString(16).padStart(64, '0')}`).privateKey;
    return new protocol.DataPackage([point], now * 1000, FEED).sign(key);
  });
  const call = contract.interface.encodeFunctionData('median', [encodeBytes32String(FEED)]);
  const data = call + protocol.RedstonePayload.prepare(packages, '');
  return costOf("median of RedStone's `evm-connector` 0.9.0, 3 of 5", sender, await contract.getAddress(), data);
}

/** Deployments, and deliveries to the example and to a callback that only logs them. */
async function verifierCosts(sender: Signer, now: number): Promise<readonly Cost[]> {
  const { SignedDataVerifier } = await compile('verify/contracts/SignedDataVerifier.sol');
  const { PriceConsumer } = await compile('examples/contracts/PriceConsumer.sol');
  const { Recorder } = await compile('test/support/contracts/Callbacks.sol');
  const verifier = await deploy(SignedDataVerifier, sender);
  const consumer = await deploy(PriceConsumer, sender, await verifier.getAddress(), signer(0).address, ENDPOINT);
  const recorder = await deploy(Recorder, sender);
  const costs: Cost[] = [];
  const deliver = async (what: string, said: bigint | string, to: BaseContract, method: string, ahead: number) => {
    const { node, endpointId, timestamp, data, signature } = await answerOf(0, now + ahead, said);
    const target = [await to.getAddress(), to.getFunction(method).fragment.selector];
    const sent = await verifier
      .getFunction('verifyAndFulfill')
      .send(node, endpointId, timestamp, data, signature, ...target);
    costs.push({ what, bytes: sent.data.length / 2 - 1, gas: (await sent.wait())?.gasUsed ?? 0n });
  };
  for (const [name, contract] of Object.entries({ SignedDataVerifier: verifier, PriceConsumer: consumer })) {
    const sent = contract.deploymentTransaction();
    const gas = (await sent?.wait())?.gasUsed ?? 0n;
    costs.push({ what: `deploying \`${name}\``, bytes: (sent?.data.length ?? 2) / 2 - 1, gas });
  }
  await deliver('delivering an `int256` to `PriceConsumer`, the first time', VALUE, consumer, 'onPrice', 0);
  await deliver('delivering an `int256` to `PriceConsumer`, from then on', VALUE, consumer, 'onPrice', 1);
  for (const bytes of [32, 1_024, 10_240])
    await deliver(
      `delivering ${bytes.toLocaleString('en')} bytes to a callback that only logs them`,
      `0x${'e1'.repeat(bytes)}`,
      recorder,
      'receiveAnswer',
      0,
    );
  return costs;
}

const chain = await startChain();
try {
  const sender = await chain.provider.getSigner(0);
  const now = (await chain.provider.getBlock('latest'))?.timestamp ?? 0;
  const costs = [
    ...(await verifierCosts(sender, now)),
    await quorumCost(sender, now, 1, 1),
    await quorumCost(sender, now, 3, 5),
    await quorumCost(sender, now, 5, 7),
    await readerCost(sender, now),
    ...(values.redstone === undefined ? [] : [await redstoneCost(sender, now, values.redstone)]),
  ];
  console.log('| | calldata, bytes | gas |\n|---|---|---|');
  for (const { what, bytes, gas } of costs)
    console.log(`| ${what} | ${bytes.toLocaleString('en')} | ${gas.toLocaleString('en')} |`);
} finally {
  await chain.stop();
}
