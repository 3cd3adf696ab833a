import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { definitions } from '../../service/index.ts';
import { userDirectory, userPath } from '../../service/surroundings.ts';
import { print } from '../../service/terminal.ts';
import { type Given, UsageError } from '../arguments.ts';
import { registration, shellWord } from '../plugin/invocation.ts';
import { kinds, usageOf, writePlugin } from '../plugin/write.ts';

const LONGEST_NAME = 64;
/** The default kind: a plugin of the six hooks, without `setup`. */
const SIMPLEST = 'hooks';

/** Writes a plugin and its test, and prints the next steps. */
export async function newPlugin(given: Given, name: string): Promise<void> {
  checkName(name);
  const kind = given.optional('kind') ?? SIMPLEST;
  const known = await kinds();
  if (!known.includes(kind)) throw new UsageError(`option --kind <kind>: "${kind}" is none of ${known.join(', ')}`);
  const files = await writePlugin(name, userPath(given.optional('dir') ?? '.'), kind);
  const folder = userDirectory();
  const paths = files.map((file) => relative(folder, file));
  // Node 22 removes `./` from a test's path, and would then read a leading `-` as an option.
  const [, test = ''] = paths.map((path, i) => shellWord(path.startsWith('-') ? (files[i] ?? '') : path));
  const usage = usageOf(await readFile(files[0] ?? '', 'utf8')).replace(/^(?=.)/gm, '  ');
  await print(`${paths.join('\n')}

Run its test:
  node --import ${registration(folder)} --test ${test}

Use it, in a config file beside it:
${usage}`);
}

/** Checks the plugin's name, which its files get, too. @throws UsageError */
function checkName(name: string): void {
  if (!/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(name) || name.length > LONGEST_NAME) {
    throw new UsageError(
      `the name of a plugin is lower-case words with dashes between them, such as price-floor, of ${LONGEST_NAME} characters at most`,
    );
  }
  if (definitions().some((builtin) => builtin.name === name)) {
    throw new UsageError(`the name "${name}" is that of a built-in plugin`);
  }
}
