import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { contract } from './contract.ts';
import { engineOn } from './file-setup.ts';

describe('state in a file', () => {
  contract(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'state-file-'));
    const { engine } = engineOn(join(folder, 'state'));
    await engine.start();
    let areas = 0;
    return {
      area: () => engine.area(`area ${areas++}`),
      close: async () => {
        await engine.close();
        await rm(folder, { recursive: true });
      },
    };
  });
});
