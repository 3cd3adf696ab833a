/** Each block and each link of the documentation is tried, or says why not. */
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join, normalize } from 'node:path';
import { describe, it } from 'node:test';
import { runCommandLine } from '../../cli/command-line.ts';
import { PACKAGE_ROOT } from '../cli/run.ts';
import { anchorsOf, type Block, blocksOf, commandsOf, linksOf, readPage, wholeConfig } from '../support/docs.ts';
import { loadText } from './walk.ts';

const PAGES = [
  ...(await readdir(PACKAGE_ROOT)),
  ...(await readdir(join(PACKAGE_ROOT, 'docs'))).map((name) => `docs/${name}`),
].filter((path) => path.endsWith('.md'));
const pages = new Map(await Promise.all(PAGES.map(async (path) => [path, await readPage(path)] as const)));

/** Pages with a test of their own, which sees to every block. */
const OWN_TEST: Readonly<Record<string, string>> = {
  'README.md': 'test/docs/readme.test.ts',
  'ARCHITECTURE.md': 'test/docs/architecture.test.ts',
  'CONTRIBUTING.md': 'test/docs/contributing.test.ts',
  'docs/getting-started.md': 'test/docs/pages.slow.ts',
  'docs/agents.md': 'test/docs/agents.test.ts',
  'docs/http.md': 'test/docs/http.test.ts',
  'docs/verify.md': 'test/docs/verify.test.ts',
  'docs/import.md': 'test/docs/pages.slow.ts',
  'docs/operate.md': 'test/docs/pages.slow.ts',
  'docs/on-chain.md': 'test/docs/pages.slow.ts',
  'docs/configuration.md': 'test/docs/configuration.test.ts',
  'docs/metrics.md': 'test/docs/metrics.test.ts',
  'docs/plugins.md': 'test/cli/plugin-docs.slow.ts',
  'docs/sdk.md': 'test/docs/sdk.test.ts',
};

/** Blocks of other pages that are not run here, by the beginning of their text, with the reason. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'docs/payments.md': {
    'import { ExactEvmScheme }': 'test/examples/pay-x402.slow.ts runs it',
    'import { appendPaymentIdentifierToExtensions }': 'test/e2e/x402-exact-identifiers.test.ts does it',
    'import { definePlugin, Refusal }': 'test/e2e/x402-exact-plugin-prices.test.ts runs it',
  },
  'docs/deploy.md': {
    'docker build': 'there is no container engine; test/examples/dockerfile.slow.ts does what the Dockerfile does',
    'kubectl create secret': 'there is no cluster; test/examples/kubernetes.test.ts checks the manifest',
    'helm install': 'there is no cluster; test/examples/chart.slow.ts has helm make the manifests',
    'npm ci --ignore-scripts': 'installs into the system; test/examples/deploy.test.ts checks the unit',
  },
  'docs/signers.md': {
    'clef init': 'clef is not there; test/builtins/signers/json-rpc.test.ts speaks as it documents',
    'function ApproveSignData': 'rules for clef',
    'mkdir -p keys': 'web3signer is not there; test/builtins/signers/web3signer.test.ts speaks as it documents',
    'aws kms create-key': 'needs an account of AWS',
    '{\n  "Version": "2012-10-17"': 'a policy of AWS',
  },
};

/** Scripts and packages of the manifest that commands may name. */
const {
  scripts,
  devDependencies,
}: Record<'scripts' | 'devDependencies', Record<string, string>> = JSON.parse(await readPage('package.json'));
/** Packages that tests install apart. */
const { dependencies: apart }: { dependencies: Record<string, string> } = JSON.parse(
  await readPage('test/fhe/sdk/package.json'),
);

/** What is wrong with a command of npm, if anything. @throws UsageError for an option that the command does not have. */
async function checkNpm(words: readonly string[]): Promise<void> {
  const [verb, ...rest] = words.slice(1).filter((word) => word !== '-s');
  if (verb === 'ci' || verb === 'test') return;
  if (verb === 'install') {
    const [, name = '', version] = /^(.+)@(.+)$/.exec(String(words.at(-1))) ?? [];
    assert.equal(version, devDependencies[name] ?? apart[name], 'an optional package, in the version that is tested');
    return;
  }
  const script = verb === 'run' ? rest.find((word) => word !== '-s') : verb;
  assert.ok(script !== undefined && script in scripts, `npm has no script ${script}`);
  const typed = words.includes('--') ? words.slice(words.indexOf('--') + 1) : [];
  if (script === 'start') await checkCommand(['start', ...typed]);
  if (script === 'cli' && !typed.includes('--version')) await checkCommand(typed);
}

async function checkCommand(typed: readonly string[]): Promise<void> {
  assert.equal(await runCommandLine(typed, async () => 0), 0);
}

/** Has a block of a page without a test of its own run, as far as that is cheap. */
async function run({ language, text }: Block): Promise<void> {
  if (language === 'yaml') {
    await loadText(wholeConfig(text).replaceAll("'0x…'", "'0x70997970C51812dc3A010C7d01b50e0d17dc79C8'"));
  } else if (language === 'sh') {
    for (const words of commandsOf(text)) assert.equal(words[0], 'npm', `${words.join(' ')} is run by nobody`);
  } else {
    assert.ok(['', 'text'].includes(language), `a block of ${language} is run by nobody`);
  }
}

describe('blocks of the documentation', () => {
  for (const [path, page] of pages) {
    it(`${path}: the commands of npm are such`, async () => {
      const all = blocksOf(page).filter(({ language }) => language === 'sh');
      for (const words of all.flatMap(({ text }) => commandsOf(text))) if (words[0] === 'npm') await checkNpm(words);
    });

    const own = OWN_TEST[path];
    if (own !== undefined) {
      it(`${path} is run by ${own}`, async () => {
        assert.ok((await readFile(join(PACKAGE_ROOT, own), 'utf8')).includes(`'${path}'`));
      });
      continue;
    }

    it(`${path}: every block is run, or is not for a reason`, async () => {
      const excused = Object.keys(NOT_RUN[path] ?? {});
      const used = new Set<string>();
      for (const block of blocksOf(page)) {
        const excuse = excused.find((beginning) => block.text.startsWith(beginning));
        if (excuse === undefined) await run(block);
        else used.add(excuse);
      }
      assert.deepEqual([...used], excused);
    });
  }

  it('lists only pages that there are', () => {
    const listed = [...Object.keys(OWN_TEST), ...Object.keys(NOT_RUN)];
    assert.deepEqual(
      listed.filter((path) => !pages.has(path)),
      [],
    );
  });
});

describe('links of the documentation', () => {
  for (const [path, page] of pages) {
    it(path, async () => {
      for (const link of linksOf(page)) {
        const [file = '', anchor] = link.split('#');
        const target = file === '' ? path : normalize(join(dirname(path), file));
        assert.ok(!target.startsWith('..'), `${link} leaves the repository`);
        await assert.doesNotReject(stat(join(PACKAGE_ROOT, target)), `${link} leads to nothing`);
        if (anchor === undefined) continue;
        assert.equal(target.endsWith('.md'), true, `${link} has an anchor`);
        const anchors = anchorsOf(pages.get(target) ?? (await readPage(target)));
        assert.ok(anchors.has(anchor), `${link}: ${basename(target)} has only ${[...anchors].join(', ')}`);
      }
    });
  }

  it('every page is in the index', () => {
    const index = linksOf(pages.get('docs/README.md') ?? '');
    const missing = PAGES.filter((path) => path.startsWith('docs/') && path !== 'docs/README.md');
    assert.deepEqual(
      missing.filter((path) => !index.includes(basename(path))),
      [],
    );
  });
});
