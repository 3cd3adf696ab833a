import { it } from 'node:test';
import { walk } from './walk.ts';

it('docs/getting-started.md', async (t) => {
  await walk(t, 'docs/getting-started.md', {
    skip: { 'npm ci && npm run demo': 'installs packages; test/cli/demo.test.ts runs the demo' },
  });
});
