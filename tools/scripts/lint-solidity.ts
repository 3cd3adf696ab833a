import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Linter } from './linter.ts';
import { complain, fail, root } from './package/run.ts';

/** Has solhint look at the contracts, and compiles them with the oldest and the newest compiler. */

const CONTRACTS = ['verify/contracts', 'examples/contracts'];

interface Contract {
  readonly abi: readonly { readonly stateMutability?: string }[];
  readonly evm: { readonly deployedBytecode: { readonly opcodes: string } };
}

interface CompilerOutput {
  readonly errors?: readonly unknown[];
  readonly contracts: Readonly<Record<string, Readonly<Record<string, Contract>>>>;
}

/** By these a contract has others' code act as its own, ends, or takes who began a transaction for its caller: none of ours does. */
const FORBIDDEN = /\b(?:DELEGATECALL|CALLCODE|SELFDESTRUCT|CREATE2|ORIGIN)\b/;

/** A warning is an error, and so is a contract that takes ether or has a forbidden opcode. @param beside a file beside which the compiler is installed. */
function compile(beside: string, files: readonly string[], viaIR: boolean): void {
  const compiler: { compile(input: string): string; version(): string } = createRequire(beside)('solc');
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(files.map((file) => [file, { content: readFileSync(join(root, file), 'utf8') }])),
    settings: {
      // Without the hash behind the code, whose bytes would be read as opcodes.
      ...{ viaIR, optimizer: { enabled: true, runs: 200 }, metadata: { appendCBOR: false } },
      outputSelection: { '*': { '*': ['abi', 'evm.deployedBytecode.opcodes'] } },
    },
  };
  const { errors = [], contracts }: CompilerOutput = JSON.parse(compiler.compile(JSON.stringify(input)));
  if (errors.length > 0) fail(`${compiler.version()}:\n${JSON.stringify(errors, undefined, 2)}`);
  for (const [name, { abi, evm }] of Object.values(contracts).flatMap(Object.entries<Contract>)) {
    const [opcode] = FORBIDDEN.exec(evm.deployedBytecode.opcodes) ?? [];
    if (opcode !== undefined) fail(`${name} has the opcode ${opcode}`);
    if (abi.some(({ stateMutability }) => stateMutability === 'payable')) fail(`${name} takes ether, and needs none`);
  }
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
