import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fail, root } from './package/run.ts';

/** Compiles the contracts with the oldest and the newest compiler, also by its IR, and checks their opcodes. */

const FOLDERS = ['verify/contracts', 'examples/contracts'];

/**
 * Opcodes that none of our contracts may use: they run another contract's code as the contract's own, end the contract, create
 * one at a chosen address, or read who began the transaction.
 */
const FORBIDDEN = /\b(?:DELEGATECALL|CALLCODE|SELFDESTRUCT|CREATE2|ORIGIN)\b/;

interface Contract {
  readonly abi: readonly { readonly stateMutability?: string }[];
  readonly evm: { readonly deployedBytecode: { readonly opcodes: string } };
}

interface CompilerOutput {
  readonly errors?: readonly { readonly formattedMessage: string }[];
  readonly contracts: Readonly<Record<string, Readonly<Record<string, Contract>>>>;
}

/** Compiles files; a warning is an error. @returns the contracts by name. @param beside a file next to the compiler's folder. */
function compiled(beside: string, files: readonly string[], viaIR: boolean): [string, Contract][] {
  const compiler: { compile(input: string): string; version(): string } = createRequire(join(root, beside))('solc');
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(files.map((file) => [file, { content: readFileSync(join(root, file), 'utf8') }])),
    settings: {
      // Leaves out the metadata after the code, whose bytes would be read as opcodes.
      ...{ viaIR, optimizer: { enabled: true, runs: 200 }, metadata: { appendCBOR: false } },
      outputSelection: { '*': { '*': ['abi', 'evm.deployedBytecode.opcodes'] } },
    },
  };
  const { errors = [], contracts }: CompilerOutput = JSON.parse(compiler.compile(JSON.stringify(input)));
  if (errors.length > 0) fail(`${compiler.version()}:\n${errors.map((each) => each.formattedMessage).join('\n')}`);
  return Object.values(contracts).flatMap(Object.entries);
}

const files = FOLDERS.flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`));
// Examples may need a newer compiler than the package does.
const old = files.filter((file) => /^verify\/|Reader\.sol$/.test(file));
compiled('tools/scripts/solidity-lint/package.json', old, false);
for (const viaIR of [false, true])
  for (const [name, { abi, evm }] of compiled('package.json', files, viaIR)) {
    const [opcode] = FORBIDDEN.exec(evm.deployedBytecode.opcodes) ?? [];
    if (opcode !== undefined) fail(`${name} has the opcode ${opcode}`);
    if (abi.some(({ stateMutability }) => stateMutability === 'payable')) fail(`${name} takes ether, and needs none`);
  }
