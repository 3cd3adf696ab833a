import { errorAt, type Finding, warningAt } from '../plugins-sdk/define.ts';
import { childPath, isRecord } from '../plugins-sdk/schema/path.ts';
import { type Environment, SECRET_VARIABLES } from '../plugins-sdk/signing/variables.ts';
import { writtenNumbers } from './tree.ts';

const TOKEN = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{/g;
const IN_KEY = /(?<!\$)\$\{[A-Za-z_][A-Za-z0-9_]*\}/;
const SHELL_VARIABLE = /^\$([A-Z_][A-Z0-9_]+)$/;
const ONLY_REFERENCES = /^(?:\$\{[A-Za-z_][A-Za-z0-9_]*\})+$/;

// biome-ignore lint/suspicious/noTemplateCurlyInString: the text shows the syntax
const MALFORMED = 'malformed variable reference: write ${NAME}, or $${ for the text ${';

/** The variables that hold the signer's secret; a configuration cannot refer to them. */
const FORBIDDEN: ReadonlySet<string> = new Set(SECRET_VARIABLES);

/** A string that refers to variables. */
export interface Reference {
  /** Whether the string consists of references alone. */
  readonly whole: boolean;
  /** Names of variables that have no value. */
  readonly unset: readonly string[];
  /** Names of variables whose value is an empty text. */
  readonly empty: readonly string[];
  /** Whether the text is not what the operator meant: a variable is unset or forbidden, or the syntax is wrong. */
  readonly doubtful: boolean;
}

/** The content of a config file with its variables replaced. */
export interface Interpolated {
  /** The content, with stand-ins for variables that are not set. */
  readonly value: unknown;
  /** The strings that refer to variables, by config path. */
  readonly references: ReadonlyMap<string, Reference>;
  /** Faults of references, other than unset variables, and texts that only look like references. */
  readonly findings: readonly Finding[];
  /** The values of variables that were put in. */
  readonly values: ReadonlySet<string>;
  /** The texts of numbers in the file, by config path. */
  readonly written: ReadonlyMap<string, string>;
}

/**
 * Replaces `${NAME}` in every string of a parsed value by the variable's value, in which nothing is replaced again. `$${`
 * stands for the text `${`. Anything else that begins with `${` is an error, and so is a variable in a key.
 */
export function interpolate(tree: unknown, variables: Environment): Interpolated {
  const references = new Map<string, Reference>();
  const findings: Finding[] = [];
  const values = new Set<string>();
  const written = new Map<string, string>();

  const replaceIn = (text: string, path: string): string => {
    const found = new Map<string, string | undefined>();
    const problems = new Set<string>();
    const replaced = text.replace(TOKEN, (token, name: string | undefined) => {
      if (token === '$${') return '${';
      if (name === undefined || FORBIDDEN.has(name)) {
        problems.add(name === undefined ? MALFORMED : `the variable ${name} cannot be used in the config`);
        return token;
      }
      const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
      found.set(name, value);
      return value ?? standInFor(name);
    });
    const [, name] = SHELL_VARIABLE.exec(text) ?? [];
    if (name !== undefined)
      findings.push(warningAt(path, `the text $${name} is taken as it is: a variable is \${${name}}`));
    if (found.size + problems.size === 0) return replaced;
    findings.push(...[...problems].map((problem) => errorAt(path, problem)));
    for (const value of found.values()) if (value !== undefined) values.add(value);
    const namesOf = (wanted: string | undefined) => [...found.keys()].filter((name) => found.get(name) === wanted);
    const unset = namesOf(undefined);
    const doubtful = problems.size + unset.length > 0;
    references.set(path, { whole: ONLY_REFERENCES.test(text), unset, empty: namesOf(''), doubtful });
    return replaced;
  };

  const visit = (value: unknown, path: string): unknown => {
    if (typeof value === 'string') return replaceIn(value, path);
    if (typeof value !== 'object' || value === null) return value;
    for (const [key, text] of writtenNumbers(value)) written.set(childPath(path, key), text);
    if (Array.isArray(value)) return value.map((item, index) => visit(item, childPath(path, index)));
    if (!isRecord(value)) return value;
    const members = Object.entries(value).map(([key, member]) => {
      const at = childPath(path, key);
      if (IN_KEY.test(key)) findings.push(errorAt(at, 'a variable cannot stand in a key'));
      return [key, visit(member, at)];
    });
    return Object.fromEntries(members);
  };
  return { value: visit(tree, ''), references, findings, values, written };
}

/**
 * Returns the stand-in for a variable without a value. It is valid in host names, so that a URL around it stays valid, and ends in
 * a character that no name has, so that it does not begin the stand-in of a longer name.
 */
export function standInFor(name: string): string {
  return `unset-${name.toLowerCase().replaceAll('_', '-')}.`;
}
