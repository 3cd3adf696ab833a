/** What docs/on-chain.md shows compiles, and runs with operators and a chain. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { Interface } from 'ethers';
import { PACKAGE_ROOT } from '../cli/run.ts';
import { startChain } from '../support/chain.ts';
import { filesOf, readPage, textsOf } from '../support/docs.ts';
import {
  answerOf,
  dataOf,
  deploy,
  ENDPOINT,
  errorOf,
  SignedDataQuorum,
  settingsOf,
  signer,
} from '../support/quorum.ts';
import { serviceFor } from '../support/service.ts';
import { compile } from '../support/solidity.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const page = await readPage('docs/on-chain.md');
const FOLDER = `.cache/on-chain-${process.pid}`;

await mkdir(join(PACKAGE_ROOT, FOLDER), { recursive: true });
const chain = await startChain();
const deployer = await chain.provider.getSigner(0);

after(async () => {
  await rm(join(PACKAGE_ROOT, FOLDER), { recursive: true, force: true });
  await chain?.stop();
});

it('a contract of its parts deploys a quorum, reads it, and does not go back', async () => {
  const part = (beginning: string) => textsOf(page, 'solidity').find((text) => text.startsWith(beginning)) ?? '';
  const [made, reads, newer] = [part('new SignedDataQuorum('), part('(int256 price'), part('require(timestamp')];
  const contract = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;
import {SignedDataAnswers} from "../../verify/contracts/SignedDataAnswers.sol";
import {SignedDataQuorum} from "../../verify/contracts/SignedDataQuorum.sol";
contract Page {
    SignedDataQuorum public quorum;
    uint256 private lastTimestamp;
    constructor(address[] memory signers) {
        quorum = ${made.replace('0xc2f6…', ENDPOINT)}
    }
    function take(SignedDataAnswers.Answer[] calldata answers) external returns (int256, bytes[] memory, uint256) {
        ${reads}
        ${newer}
        return (price, data, oldest);
    }
}
`;
  await writeFile(join(PACKAGE_ROOT, FOLDER, 'Page.sol'), contract);
  const { Page } = await compile(`${FOLDER}/Page.sol`);
  const signers = [0, 1, 2, 3, 4].map((n) => signer(n).address);
  const deployed = await deploy(Page, deployer, signers);
  const { timestamp = 0 } = (await chain.provider.getBlock('latest')) ?? {};
  const answers = await Promise.all([0, 1, 2].map((n) => answerOf(n, timestamp - n, BigInt(-n))));
  const take = deployed.getFunction('take');
  const [price, data, oldest] = await take.staticCall(answers);
  assert.deepEqual([price, [...data], oldest], [-1n, [0n, -1n, -2n].map(dataOf), BigInt(timestamp - 2)]);
  await (await take.send(answers)).wait();
  assert.equal(await errorOf(take.staticCall(answers), deployed.interface), 'Error(not newer)');
});

it('the contract on the package’s page takes the median once', async () => {
  const shown = filesOf(await readPage('tools/packages/contracts/README.md')).get('Consumer.sol') ?? '';
  const contract = shown.replaceAll('signed-data-proxy-contracts/', '../../verify/contracts/');
  await writeFile(join(PACKAGE_ROOT, FOLDER, 'Consumer.sol'), contract);
  const { Consumer } = await compile(`${FOLDER}/Consumer.sol`);
  const quorum = await deploy(SignedDataQuorum, deployer, settingsOf(), 0);
  const consumer = await deploy(Consumer, deployer, await quorum.getAddress());
  const { timestamp = 0 } = (await chain.provider.getBlock('latest')) ?? {};
  const answers = await Promise.all([0, 1, 2].map((n) => answerOf(n, timestamp, BigInt(n))));
  await (await consumer.getFunction('settle').send(answers)).wait();
  assert.equal(await consumer.getFunction('price').staticCall(), 1n);
  const again = consumer.getFunction('settle').staticCall(answers);
  assert.equal(await errorOf(again, consumer.interface), `NotNewer(${timestamp})`);
});

it('names every error of a read with its arguments, and no other', () => {
  const rows =
    page
      .split('### Errors')[1]
      ?.split('###')[0]
      ?.match(/^\| `.*?\|/gm) ?? [];
  const named = rows.flatMap((row) => row.match(/\w+\([\w, ]*\)/g) ?? []);
  const errors = new Interface(SignedDataQuorum?.abi ?? []).fragments.flatMap((fragment) =>
    fragment.type === 'error' ? [fragment.format('full')] : [],
  );
  const known = errors.map((text) => text.replace('error ', '').replace(/\w+ (?=\w+[,)])/g, ''));
  const ofSettings = ['InvalidSettings(problem)', 'NotReady(readyAt)', 'Unauthorized(caller)'];
  assert.deepEqual([...named, ...ofSettings].sort(), known.sort());
});

it('its program reads the median of two operators on chain', async (t) => {
  const upstream = await upstreamFor(t, { '/price': faults.json({ price: 2064 }) });
  const endpoints = [
    {
      ...{ name: 'eth-usd', path: '/price', parameters: [{ name: 'symbol' }] },
      encoding: { type: 'int256', path: '$.price' },
    },
  ];
  const apis = [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints }];
  let program = textsOf(page, 'js').find((text) => text.includes('askMany')) ?? '';
  let endpointId = '';
  for (const n of [0, 1]) {
    const service = await serviceFor(t, { apis }, { env: { SERVICE_PRIVATE_KEY: signer(n).privateKey } });
    program = program.replace(/'https:[^']*', signer: '0x…'/, `'${service.url}', signer: '${signer(n).address}'`);
    endpointId = service.ids['prices/eth-usd'] ?? '';
  }
  const quorum = await deploy(SignedDataQuorum, deployer, settingsOf({ endpointId, threshold: 2 }), 0);
  const file = join(PACKAGE_ROOT, FOLDER, 'read.mjs');
  const yours = { endpointId, quorum: await quorum.getAddress(), provider: chain.provider };
  Object.assign(globalThis, yours);
  t.after(() => Object.keys(yours).forEach((name) => void Reflect.deleteProperty(globalThis, name)));
  await writeFile(file, `${program}\nexport { failures, price, timestamp };\n`);
  // Answers must not be too far ahead of the latest block.
  await chain.provider.send('evm_mine', []);
  const { failures, price, timestamp } = await import(file);
  assert.deepEqual([failures, price], [[], 2064n]);
  assert.ok(Math.abs(Number(timestamp) - Date.now() / 1000) < 600);
});
