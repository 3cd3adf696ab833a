import { Linter } from './linter.ts';
import { complain } from './package/run.ts';

/** Has textlint look for long sentences in documents, generated ones included. */

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'ARCHITECTURE.md',
  'SECURITY.md',
  'docs/*.md',
  'tools/{bench,packages/*}/README.md',
];

try {
  const linter = new Linter('tools/scripts/prose-lint');
  linter.run('textlint', '--no-textlintrc', '--rulesdir', linter.path('rules'), ...PAGES);
  console.log(`textlint finds nothing in ${PAGES.join(', ')}`);
} catch (error) {
  complain(error);
}
