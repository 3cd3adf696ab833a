/** Whoever walks through a page of the documentation gets what it shows. */
import { it } from 'node:test';
import { TEST_KEY as KEY } from '../support/service.ts';
import { walk } from './walk.ts';

it('docs/getting-started.md', async (t) => {
  await walk(t, 'docs/getting-started.md', {
    skip: { 'npm ci && npm run demo': 'installs packages; test/cli/demo.test.ts runs the demo' },
  });
});

it('docs/import.md', async (t) => {
  await walk(t, 'docs/import.md', {
    skip: { 'UPSTREAM_COIN_PRICES_KEY=': 'there is no such upstream; test/cli/try.test.ts has one' },
  });
});

it('docs/run.md', async (t) => {
  await walk(t, 'docs/run.md', {
    env: { SERVICE_PRIVATE_KEY: KEY },
    skip: { 'openssl rand': 'openssl need not be installed' },
  });
});

it('docs/is-this-for-me.md', async (t) => {
  await walk(t, 'docs/is-this-for-me.md', { instead: { 'listen(3000': 'listen(0' } });
});

it('docs/try-payments.md', async (t) => {
  await walk(t, 'docs/try-payments.md', { instead: { '--port 8545': '--port 0' } });
});

it('docs/operators-day.md', async (t) => {
  await walk(t, 'docs/operators-day.md', { instead: { 'port: 9464': 'port: 0' } });
});

it('docs/consumers-day.md', async (t) => {
  await walk(t, 'docs/consumers-day.md', { instead: { '--port 8545': '--port 0' } });
});
