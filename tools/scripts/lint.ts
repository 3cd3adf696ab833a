import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { installed } from './installed.ts';
import { complain, env, fail, root, run } from './package/run.ts';

/** Runs a linter that is installed apart, with its own lock file: `lint.ts openapi`, `lint.ts prose` or `lint.ts solidity`. */

const CONFIGS = ['examples/configs/complete.yaml', 'tools/scripts/openapi-lint/everything.yaml'];
const PAGES = ['{README,CONTRIBUTING,ARCHITECTURE,SECURITY}.md', 'docs/*.md', 'tools/{bench,packages/*}/README.md'];
const CONTRACTS = ['verify/contracts', 'examples/contracts'];

/** Checks the OpenAPI documents of two configs with redocly and spectral. Any finding is an error. */
function openapi(): void {
  // Switches off their check for a newer version, and their telemetry.
  Object.assign(env, { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' });
  const documents = join(root, '.cache', 'openapi');
  mkdirSync(documents, { recursive: true });
  const paths = CONFIGS.map((config, i) => {
    const path = join(documents, `${i}.json`);
    writeFileSync(path, run(root, process.execPath, 'cli/bin.js', 'openapi', '-c', config));
    return path;
  });
  const linter = installed('tools/scripts/openapi-lint');
  linter.run('redocly', 'lint', '--config', linter.path('redocly.yaml'), ...paths);
  const ruleset = ['--ruleset', linter.path('spectral.yaml'), '--fail-severity', 'hint'];
  const said = linter.run('spectral', 'lint', ...ruleset, ...paths);
  if (!said.includes('No results with a severity of')) fail(said);
}

/** Checks documents, generated ones included, for long sentences with textlint. */
function prose(): void {
  const linter = installed('tools/scripts/prose-lint');
  linter.run('textlint', '--no-textlintrc', '--rulesdir', linter.path('rules'), ...PAGES);
}

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

/** Checks the contracts with solhint, compiles them with the oldest and the newest compiler, and checks their opcodes. */
function solidity(): void {
  const linter = installed('tools/scripts/solidity-lint');
  const globs = CONTRACTS.map((folder) => `${folder}/*.sol`);
  linter.run('solhint', '--config', linter.path('solhint.json'), '--noPoster', '--max-warnings', '0', ...globs);
  const files = CONTRACTS.flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`));
  // Examples may need a newer compiler than the package does.
  const old = files.filter((file) => /^verify\/|Reader\.sol$/.test(file));
  compiled(linter.path('package.json'), old, false);
  for (const viaIR of [false, true])
    for (const [name, { abi, evm }] of compiled(join(root, 'package.json'), files, viaIR)) {
      const [opcode] = FORBIDDEN.exec(evm.deployedBytecode.opcodes) ?? [];
      if (opcode !== undefined) fail(`${name} has the opcode ${opcode}`);
      if (abi.some(({ stateMutability }) => stateMutability === 'payable')) fail(`${name} takes ether, and needs none`);
    }
}

/** Compiles files; a warning is an error. @returns the contracts by name. @param beside a file next to the compiler's folder. */
function compiled(beside: string, files: readonly string[], viaIR: boolean): [string, Contract][] {
  const compiler: { compile(input: string): string; version(): string } = createRequire(beside)('solc');
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

try {
  const kinds: Readonly<Record<string, () => void>> = { openapi, prose, solidity };
  const [, , kind = ''] = process.argv;
  const lint = kinds[kind] ?? fail(`write one of ${Object.keys(kinds).join(', ')}`);
  lint();
  console.log(`${kind}: nothing found`);
} catch (error) {
  complain(error);
}
