import type { OptionSpec } from '../arguments.ts';

/** Options of the command `import`. */
export const importOptions: readonly OptionSpec[] = [
  { long: 'out', value: 'file', description: 'Where to write it (default: stdout)' },
  { long: 'merge', description: 'Add to that file what it lacks, and leave the rest as it is' },
  { long: 'only', value: 'methods', many: true, description: 'Such as GET or GET,POST' },
  { long: 'include', value: 'pattern', many: true, description: 'Paths or names, in which * is any text' },
  { long: 'url', value: 'url', description: 'The upstream, in place of its servers' },
  { long: 'refs', description: 'Read documents beside it that it refers to: below its folder, or of its server' },
  { long: 'yes', description: 'Write without a question' },
];
