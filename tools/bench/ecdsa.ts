import { type EcdsaBackend, ecdsaOf } from '../../lib/eth/ecdsa.ts';

/** Measures what can do the arithmetic of signing, against the native binding. `tools/bench/README.md` says how to read it. */

const ROUNDS = 9;
/** Calls of one turn. */
const CALLS = 200;
const BACKENDS: readonly EcdsaBackend[] = ['secp256k1', 'tiny-secp256k1', 'ethers'];
const key = new Uint8Array(32).fill(0x11);
const hash = new Uint8Array(32).fill(0x22);

/** Microseconds of CPU of one call, in the fastest turn: what else the machine does can only add to it. */
function microseconds(works: readonly (() => unknown)[]): number[] {
  const best = works.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round++) {
    works.forEach((work, i) => {
      const before = process.cpuUsage();
      for (let call = 0; call < CALLS; call++) work();
      const { user, system } = process.cpuUsage(before);
      best[i] = Math.min(best[i] ?? 0, (user + system) / CALLS);
    });
  }
  return best;
}

function columns(times: readonly number[]): string[][] {
  return times.map((time) => [(1e6 / time).toFixed(0), ((times[0] ?? time) / time).toFixed(2)]);
}

const curves = BACKENDS.map((backend) => ecdsaOf(backend));
const signing = columns(
  microseconds(
    curves.map(
      ({ sign }) =>
        () =>
          sign(hash, key),
    ),
  ),
);
const recovering = columns(
  microseconds(
    curves.map(({ sign, recover }) => {
      const { signature, recoveryId } = sign(hash, key);
      return () => recover(hash, signature, recoveryId);
    }),
  ),
);
console.log('| backend | signatures/s | ratio | recoveries/s | ratio |\n|---|---|---|---|---|');
BACKENDS.forEach((backend, i) => {
  console.log(`| ${[backend, ...(signing[i] ?? []), ...(recovering[i] ?? [])].join(' | ')} |`);
});
