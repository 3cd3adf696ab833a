/** Whoever walks through a page of the documentation gets what it shows. */
import { it } from 'node:test';
import { TEST_KEY as KEY } from '../support/service.ts';
import { walk } from './walk.ts';

const GETTING_STARTED = 'docs/getting-started.md';

it('docs/getting-started.md', async (t) => {
  await walk(t, GETTING_STARTED, {
    until: 'Pay offline',
    skip: { 'npm ci && npm run demo': 'installs packages; test/cli/demo.slow.ts runs the demo' },
  });
});

it('docs/getting-started.md, a payment offline', async (t) => {
  await walk(t, GETTING_STARTED, {
    from: 'Pay offline',
    until: 'Is this for me?',
    env: { SERVICE_PRIVATE_KEY: KEY },
    instead: { '--port 8545': '--port 0' },
  });
});

it('docs/getting-started.md, a handler of your own', async (t) => {
  await walk(t, GETTING_STARTED, { from: 'Is this for me?', instead: { 'listen(3000': 'listen(0' } });
});

it('docs/import.md', async (t) => {
  await walk(t, 'docs/import.md', {
    skip: { 'UPSTREAM_COIN_PRICES_KEY=': 'there is no such upstream; test/cli/transcripts/try.txt has one' },
  });
});

it('docs/operate.md', async (t) => {
  await walk(t, 'docs/operate.md', { instead: { 'port: 9464': 'port: 0' } });
});

it('docs/on-chain.md', async (t) => {
  const part = 'part of a contract; test/docs/on-chain.slow.ts has one of these parts';
  await walk(t, 'docs/on-chain.md', {
    instead: { '--port 8545': '--port 0' },
    skip: {
      'function verifyAndFulfill(': 'part of a contract; test/e2e/verifier-contract.test.ts delivers to it',
      'new SignedDataQuorum(': part,
      '(int256 price': part,
      'import { AbiCoder': 'test/docs/on-chain.slow.ts runs it',
      'require(timestamp': part,
    },
  });
});
