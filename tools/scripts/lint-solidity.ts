import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Linter } from './linter.ts';
import { complain, fail, root } from './package/run.ts';

/**
 * Has solhint look at the contracts, and looks for what their code could do to others. It compiles them with the oldest and the newest
 * compiler, by both of its pipelines.
 */

const FOLDERS = ['verify/contracts', 'examples/contracts'];
/** Examples may want more than the package does. */
const OLDEST = /^verify\/|Reader\.sol$/;
/** Opcodes by which a contract does something: all that each may have, beside STATICCALL, which does nothing. */
const EFFECTS = /\b(?:CALL|CALLCODE|CREATE2?|DELEGATECALL|SELFDESTRUCT|SSTORE|TSTORE|ORIGIN|LOG[0-4])\b/g;
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  SignedDataQuorum: ['CREATE', 'LOG1', 'SSTORE'],
  SignedDataVerifier: ['CALL', 'LOG4', 'SSTORE'],
  PriceConsumer: ['LOG2', 'SSTORE'],
  PinnedPriceConsumer: ['CALL', 'LOG2', 'SSTORE', 'TSTORE'],
};

interface Contract {
  readonly abi: readonly { readonly stateMutability?: string }[];
  readonly evm: { readonly deployedBytecode: { readonly opcodes: string } };
}

interface CompilerOutput {
  readonly errors?: readonly { readonly formattedMessage: string }[];
  readonly contracts: Readonly<Record<string, Readonly<Record<string, Contract>>>>;
}

interface Compiler {
  compile(input: string): string;
  version(): string;
}

/** Each contract by its name; a warning is an error. */
function compiled(compiler: Compiler, files: readonly string[], viaIR: boolean): ReadonlyMap<string, Contract> {
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(files.map((file) => [file, { content: readFileSync(join(root, file), 'utf8') }])),
    settings: {
      ...{ viaIR, optimizer: { enabled: true, runs: 200 }, metadata: { appendCBOR: false } },
      outputSelection: { '*': { '*': ['abi', 'evm.deployedBytecode.opcodes'] } },
    },
  };
  const { errors = [], contracts }: CompilerOutput = JSON.parse(compiler.compile(JSON.stringify(input)));
  if (errors.length > 0) fail(`${compiler.version()}:\n${errors.map((each) => each.formattedMessage).join('\n')}`);
  return new Map(Object.values(contracts).flatMap(Object.entries));
}

function checkEffects(name: string, { abi, evm }: Contract): void {
  const found = [...new Set(evm.deployedBytecode.opcodes.match(EFFECTS))].sort();
  const allowed = ALLOWED[name] ?? [];
  if (!isDeepStrictEqual(found, allowed))
    fail(`${name} has the opcodes ${found.join()}, and may have ${allowed.join()}`);
  if (abi.some(({ stateMutability }) => stateMutability === 'payable')) fail(`${name} takes ether, and needs none`);
}

try {
  const linter = new Linter('tools/scripts/solidity-lint');
  const globs = FOLDERS.map((folder) => `${folder}/*.sol`);
  linter.run('solhint', '--config', linter.path('solhint.json'), '--noPoster', '--max-warnings', '0', ...globs);
  const files = FOLDERS.flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`));
  const newest: Compiler = createRequire(import.meta.url)('solc');
  const oldest: Compiler = createRequire(linter.path('package.json'))('solc');
  compiled(
    oldest,
    files.filter((file) => OLDEST.test(file)),
    false,
  );
  for (const viaIR of [false, true])
    for (const [name, contract] of compiled(newest, files, viaIR)) checkEffects(name, contract);
  console.log(`solhint, ${oldest.version()} and ${newest.version()} find nothing in ${FOLDERS.join(' and ')}`);
} catch (error) {
  complain(error);
}
