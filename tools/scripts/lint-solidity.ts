import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Linter } from './linter.ts';
import { complain, fail, root } from './package/run.ts';

/** Has solhint look at the contracts, and compiles them with the oldest and the newest compiler. */

const CONTRACTS = ['verify/contracts', 'examples/contracts'];

/** A warning is an error. @param beside a file beside which the compiler is installed. */
function compile(beside: string, files: readonly string[], viaIR: boolean): void {
  const compiler: { compile(input: string): string; version(): string } = createRequire(beside)('solc');
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(files.map((file) => [file, { content: readFileSync(join(root, file), 'utf8') }])),
    settings: {
      ...{ viaIR, optimizer: { enabled: true, runs: 200 } },
      outputSelection: { '*': { '*': ['evm.deployedBytecode.object'] } },
    },
  };
  const { errors = [] } = JSON.parse(compiler.compile(JSON.stringify(input)));
  if (errors.length > 0) fail(`${compiler.version()}:\n${JSON.stringify(errors, undefined, 2)}`);
}

try {
  const linter = new Linter('tools/scripts/solidity-lint');
  const globs = CONTRACTS.map((folder) => `${folder}/*.sol`);
  linter.run('solhint', '--config', linter.path('solhint.json'), '--noPoster', '--max-warnings', '0', ...globs);
  const files = CONTRACTS.flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`));
  // Examples may want more than the package does.
  const old = files.filter((file) => /^verify\/|Reader\.sol$/.test(file));
  compile(linter.path('package.json'), old, false);
  for (const viaIR of [false, true]) compile(join(root, 'package.json'), files, viaIR);
  console.log('solidity: nothing found');
} catch (error) {
  complain(error);
}
