import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Linter } from './linter.ts';
import { complain, env, fail, root, run } from './package/run.ts';

/** Linters that are installed apart, each with a lock file of its own: `lint.ts openapi`, `lint.ts prose`, `lint.ts solidity`. */

const CONFIGS = ['examples/configs/complete.yaml', 'tools/scripts/openapi-lint/everything.yaml'];
const PAGES = ['{README,CONTRIBUTING,ARCHITECTURE,SECURITY}.md', 'docs/*.md', 'tools/{bench,packages/*}/README.md'];
const CONTRACTS = ['verify/contracts', 'examples/contracts'];

/** Has redocly and spectral look at the OpenAPI documents of two configs, and takes nothing that they find. */
function openapi(): void {
  // They would ask whether there is a newer version, and tell that they ran.
  Object.assign(env, { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' });
  const documents = join(root, '.cache', 'openapi');
  mkdirSync(documents, { recursive: true });
  const paths = CONFIGS.map((config, i) => {
    const path = join(documents, `${i}.json`);
    writeFileSync(path, run(root, process.execPath, 'cli/bin.js', 'openapi', '-c', config));
    return path;
  });
  const linter = new Linter('tools/scripts/openapi-lint');
  linter.run('redocly', 'lint', '--config', linter.path('redocly.yaml'), ...paths);
  const ruleset = ['--ruleset', linter.path('spectral.yaml'), '--fail-severity', 'hint'];
  const said = linter.run('spectral', 'lint', ...ruleset, ...paths);
  if (!said.includes('No results with a severity of')) fail(said);
}

/** Has textlint look for long sentences in documents, generated ones included. */
function prose(): void {
  const linter = new Linter('tools/scripts/prose-lint');
  linter.run('textlint', '--no-textlintrc', '--rulesdir', linter.path('rules'), ...PAGES);
}

/** By these a contract has others' code act as its own, ends, or takes who began a transaction for its caller: none of ours does. */
const FORBIDDEN = /\b(?:DELEGATECALL|CALLCODE|SELFDESTRUCT|CREATE2|ORIGIN)\b/;

interface Contract {
  readonly abi: readonly { readonly stateMutability?: string }[];
  readonly evm: { readonly deployedBytecode: { readonly opcodes: string } };
}

interface CompilerOutput {
  readonly errors?: readonly { readonly formattedMessage: string }[];
  readonly contracts: Readonly<Record<string, Readonly<Record<string, Contract>>>>;
}

/** Has solhint look at the contracts, compiles them with the oldest and the newest compiler, and looks at what their code could do. */
function solidity(): void {
  const linter = new Linter('tools/scripts/solidity-lint');
  const globs = CONTRACTS.map((folder) => `${folder}/*.sol`);
  linter.run('solhint', '--config', linter.path('solhint.json'), '--noPoster', '--max-warnings', '0', ...globs);
  const files = CONTRACTS.flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`));
  // Examples may want more than the package does.
  const old = files.filter((file) => /^verify\/|Reader\.sol$/.test(file));
  compiled(linter.path('package.json'), old, false);
  for (const viaIR of [false, true])
    for (const [name, { abi, evm }] of compiled(join(root, 'package.json'), files, viaIR)) {
      const [opcode] = FORBIDDEN.exec(evm.deployedBytecode.opcodes) ?? [];
      if (opcode !== undefined) fail(`${name} has the opcode ${opcode}`);
      if (abi.some(({ stateMutability }) => stateMutability === 'payable')) fail(`${name} takes ether, and needs none`);
    }
}

/** Each contract by its name; a warning is an error. @param beside a file beside which the compiler is installed. */
function compiled(beside: string, files: readonly string[], viaIR: boolean): [string, Contract][] {
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
