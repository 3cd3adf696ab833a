import { randomBytes } from 'node:crypto';
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { LineFile } from '../../builtins/state-file/line-file.ts';
import type { Change } from '../../builtins/state-file/record.ts';
import { stateConfig } from './configs.ts';
import { Bench } from './rounds.ts';

/** Measures a start from a state file with so many payments. */

const NUMBER = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 3);
const BATCH = 300;
const DAY = 86_400_000;

const random = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`;

function* lines(): Generator<string> {
  for (let n = 0; n < NUMBER; n += BATCH) {
    const payments = Array.from({ length: Math.min(BATCH, NUMBER - n) }, (_, i): Change => {
      return [`x402/${random(32)}:${random(20)}`, `redeemed ${random(32)}`, Date.now() + DAY + n + i];
    });
    yield JSON.stringify(payments);
  }
}

await Bench.run({ requests: 0, rounds: 0 }, async (bench) => {
  const path = join(bench.folder, 'payments');
  await LineFile.replacing(path, lines(), files, (file) => void file.close());
  const { size } = await files.stat(path);
  process.stdout.write(
    `${NUMBER} payments, ${Math.round(size / 1e6)} MB of file\n\n| start from | CPU s | RSS MB |\n|---|---|---|\n`,
  );
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, state] of [['memory', 'memory'] as const, ['file', { type: 'file', path }] as const]) {
      const service = await bench.startService(name, stateConfig('http://127.0.0.1:9', state));
      const [cpu, memory] = [await service.cpu(), await service.memory()];
      process.stdout.write(`| ${name} | ${(cpu / 1e6).toFixed(1)} | ${Math.round(memory)} |\n`);
      await service.stop();
    }
  }
});
