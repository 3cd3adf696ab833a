import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InterfaceAbi } from 'ethers';

/** What `ContractFactory` wants. */
export interface Compiled {
  readonly abi: InterfaceAbi;
  /** `0x` hex. */
  readonly bytecode: string;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const cache = join(root, '.cache', 'solidity');

// The compiler is a large synchronous program: in a process of its own it neither blocks nor stays.
const COMPILER = `
const { readFileSync } = require('node:fs');
const solc = require('solc');
const input = JSON.parse(readFileSync(0, 'utf8'));
const find = (path) => {
  try { return { contents: readFileSync(process.argv[1] + '/node_modules/' + path, 'utf8') }; }
  catch (error) { return { error: String(error) }; }
};
process.stdout.write(solc.compile(JSON.stringify(input), { import: find }));
`;

function compilerOutput(input: string, packages: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      ['-e', COMPILER, packages],
      { cwd: root, maxBuffer: 64 * 1024 * 1024, timeout: 300_000 },
      (error, stdout) => (error === null ? resolve(stdout) : reject(error)),
    );
    child.stdin?.end(input);
  });
}

interface CompilerOutput {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[];
  readonly contracts?: Readonly<
    Record<
      string,
      Readonly<Record<string, { readonly abi: InterfaceAbi; readonly evm: { readonly bytecode: { object: string } } }>>
    >
  >;
}

/** A file and all that it imports by relative paths, each under its path from the project's root. */
async function sourcesOf(file: string): Promise<Readonly<Record<string, { readonly content: string }>>> {
  const content = await readFile(join(root, file), 'utf8');
  const imported = [...content.matchAll(/^import .*"(\.[^"]+)";$/gm)].map(([, path = '']) => join(dirname(file), path));
  return Object.assign({ [file]: { content } }, ...(await Promise.all(imported.map(sourcesOf))));
}

/** Whose contracts are compiled together. */
const FOLDERS = ['verify/contracts', 'examples/contracts', 'test/support/contracts'];

/**
 * Compiles one Solidity file, optimised; other imports than relative ones resolve as Node packages. Results are kept by content under `.cache`:
 * the first of our contracts brings all others.
 *
 * @param file path from the project's root.
 * @param packages the folder whose `node_modules` are meant.
 * @throws Error with the compiler's own text, warnings included: a contract here compiles without any.
 * @returns every contract of that file by name.
 */
export async function compile(file: string, packages = root): Promise<Readonly<Record<string, Compiled>>> {
  const named = FOLDERS.map(async (folder) => (await readdir(join(root, folder))).map((name) => join(folder, name)));
  const ours = (await Promise.all(named)).flat().sort();
  const files = ours.includes(file) ? ours : [file];
  return (await compileAll(files, packages))[files.indexOf(file)] ?? {};
}

/** Compiles several files as one, which costs little more than one of them. @returns for each its contracts by name. */
async function compileAll(
  files: readonly string[],
  packages = root,
): Promise<readonly Readonly<Record<string, Compiled>>[]> {
  const input = JSON.stringify({
    language: 'Solidity',
    sources: Object.assign({}, ...(await Promise.all(files.map(sourcesOf)))),
    settings: {
      evmVersion: 'cancun',
      optimizer: { enabled: true, runs: 200 },
      outputSelection: Object.fromEntries(files.map((file) => [file, { '*': ['abi', 'evm.bytecode.object'] }])),
    },
  });
  const lock = await readFile(join(root, 'package-lock.json'), 'utf8');
  const kept = join(cache, `${createHash('sha256').update(input).update(lock).digest('hex')}.json`);
  const known = await readFile(kept, 'utf8').catch(() => undefined);
  const text = known ?? (await compilerOutput(input, packages));
  const output: CompilerOutput = JSON.parse(text);
  const errors = output.errors ?? [];
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join('\n'));
  if (known === undefined) {
    await mkdir(cache, { recursive: true });
    // Test files run in parallel: none may read a half-written file.
    await writeFile(`${kept}.${process.pid}`, text);
    await rename(`${kept}.${process.pid}`, kept);
  }
  const contractsOf = (file: string) =>
    Object.entries(output.contracts?.[file] ?? {}).map(([name, { abi, evm }]) => [
      name,
      { abi, bytecode: `0x${evm.bytecode.object}` },
    ]);
  return files.map((file) => Object.fromEntries(contractsOf(file)));
}
