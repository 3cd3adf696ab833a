import { type Stage, type StageName, stageNames, stages } from '../../kernel/stages.ts';

/** Returns the types of the values in the table of stages, by their names there. */
function typesOf(values: string): ReadonlyMap<string, string> {
  const body = /export interface Values \{([\s\S]*?)\n\}/.exec(values)?.[1] ?? '';
  return new Map([...body.matchAll(/^ {2}(\w+): (.+);$/gm)].map(([, name = '', type = '']) => [name, type]));
}

/** Returns a signature such as `sign(signRequest: SignRequest, exchange: Exchange, call: CallContext): Signed | undefined`. */
function signature(name: StageName, types: ReadonlyMap<string, string>): string {
  const { kind, takes, returns, public: isPublic, variants } = stages[name];
  if (isPublic) return `${name}(context)  // one of the six hooks`;
  const given = takes.map((value) => `${value}: ${types.get(value)}`);
  const result = returns === undefined ? 'void' : [...new Set([types.get(returns), 'undefined'])].join(' | ');
  if (name === 'vary') return 'vary(exchange: Exchange, call: CallContext): Awaitable<string | undefined>';
  const value = types.get(takes[0] ?? '');
  const call = kind === 'around' ? `AroundCall<${value}, ${types.get(returns ?? '')}>` : 'CallContext';
  const args = [...given, 'exchange: Exchange', `call: ${call}`].join(', ');
  const label = variants === undefined ? name : `${name}[${variants}]`;
  return `${label}(${args}): Awaitable<${result}>`;
}

/** Returns the policy of a stage, such as `pick, required` or `watch, open`. */
function policy({ kind, fails, required }: Stage): string {
  return [kind, ...(required ? ['required'] : []), ...(fails === 'open' ? ['open'] : [])].join(', ');
}

/**
 * @param page the page as it is. The last cell of each stage's row is written by hand: when the stage is asked, and what for.
 * @param values the text of `kernel/values.ts`.
 * @returns Markdown: a table of the stages in their order, then their signatures.
 */
export function stageReference(page: string, values: string): string {
  const types = typesOf(values);
  const rows = stageNames.map((name) => {
    const [, about] = new RegExp(`^\\| \`${name}\` \\|[^|]*\\| ([^|]+) \\|$`, 'm').exec(page) ?? [];
    if (about === undefined) throw new Error(`docs/plugins.md has no row "| \`${name}\` | kind | when |"`);
    return `| \`${name}\` | ${policy(stages[name])} | ${about} |\n`;
  });
  const signatures = stageNames.map((name) => signature(name, types)).join('\n');
  return `| stage | kind | when |\n|---|---|---|\n${rows.join('')}\n\`\`\`text\n${signatures}\n\`\`\`\n`;
}
