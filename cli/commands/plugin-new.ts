import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Given, UsageError } from '../arguments.ts';
import { writePlugin } from '../plugin/write.ts';
import { userDirectory, userPath } from '../surroundings.ts';
import { print } from '../terminal.ts';

const LONGEST_NAME = 64;
const REGISTER = 'signed-data-proxy/plugins-sdk/register';

/** Writes a plugin and its test, and tells what to do next. */
export async function newPlugin(given: Given, name: string): Promise<number> {
  await checkName(name);
  const files = await writePlugin(name, userPath(given.optional('dir') ?? '.'));
  const [plugin = '', test = ''] = files.map((file) => relative(userDirectory(), file));
  await print(`${plugin}
${test}

Run its test:
  node --import ${registration()} --test ${test}

See what it does to a request:
  ${commandLine()} plugin test ${plugin} --config '{ decimals: 2 }'

Use it, in a config file beside it:
  settings:
    plugins:
      - source: ./${name}.ts
        timeout: 1000
        config:
          decimals: 2
`);
  return 0;
}

/** It becomes the name of files and of the plugin. */
async function checkName(name: string): Promise<void> {
  if (!/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(name) || name.length > LONGEST_NAME) {
    throw new UsageError(
      `the name of a plugin is lower-case words with dashes between them, such as price-floor, of ${LONGEST_NAME} characters at most`,
    );
  }
  const { definitions } = await import('../service.ts');
  if (definitions().some((builtin) => builtin.name === name)) {
    throw new UsageError(`the name "${name}" is that of a built-in plugin`);
  }
}

/** What node is to import before the test: by name where the user's folder has this package, else by path. */
function registration(): string {
  const file = fileURLToPath(new URL('../plugin/register.mjs', import.meta.url));
  try {
    const require = createRequire(join(userDirectory(), 'any.js'));
    return require.resolve(REGISTER) === file ? REGISTER : file;
  } catch {
    return file;
  }
}

function commandLine(): string {
  return import.meta.url.endsWith('.ts') ? 'npm run -s cli --' : 'npx signed-data-proxy';
}
