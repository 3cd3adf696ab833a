import { type Stage, type StageName, stageNames, stageOf } from '../../kernel/stages.ts';

/** The types that the table of stages speaks of, by their names there. */
function typesOf(values: string): ReadonlyMap<string, string> {
  const body = /export interface Values \{([\s\S]*?)\n\}/.exec(values)?.[1] ?? '';
  return new Map([...body.matchAll(/^ {2}(\w+): (.+);$/gm)].map(([, name = '', type = '']) => [name, type]));
}

/** The text of an exported declaration, with its docstring; a type may have members of its own, so it ends before what follows it. */
function declaration(source: string, name: string): string {
  const pattern = `(?:/\\*\\*(?:(?!\\*/)[\\s\\S])*\\*/\\n)?export (?:interface ${name}\\b[^{]*\\{[\\s\\S]*?\\n\\}|type ${name}\\b[^=]*=[\\s\\S]*?;)(?=\\n(?:\\n|export |/\\*\\*|$))`;
  const [text] = new RegExp(pattern).exec(source) ?? [];
  if (text === undefined) throw new Error(`${name} has no declaration that can be read`);
  return text;
}

/** `sign(signRequest: SignRequest, exchange: Exchange, call: CallContext): Signed | undefined`. */
function signature(name: StageName, types: ReadonlyMap<string, string>): string {
  const { kind, takes, returns, context, variants } = stageOf(name);
  if (context) return `${name}(context)  // see "Hooks" in plugins.md`;
  const given = takes.map((value) => `${value}: ${types.get(value)}`);
  const result = returns === undefined ? 'void' : `${types.get(returns)} | undefined`;
  if (name === 'vary') return 'vary(exchange: Exchange, call: CallContext): Awaitable<string | undefined>';
  const value = types.get(takes[0] ?? '');
  const call = kind === 'around' ? `AroundCall<${value}, ${types.get(returns ?? '')}>` : 'CallContext';
  const args = [...given, 'exchange: Exchange', `call: ${call}`].join(', ');
  const label = variants === undefined ? name : `${name}[${variants}]`;
  return `${label}(${args}): Awaitable<${result}>`;
}

function policy({ fails, always, required }: Stage): string {
  return [
    fails === 'open' ? 'when one fails, the request goes on without it.' : 'when one fails, the request is refused.',
    ...(always ? ['The stage runs also after the client has left.'] : []),
    ...(required ? ['Some plugin has to provide a function.'] : []),
  ].join(' ');
}

/**
 * @param page under the heading of each stage stands a paragraph that is written by hand: when the stage is asked, and what for.
 * @param values the text of `kernel/values.ts`. @param table that of `plugins-sdk/stage-functions.ts`.
 * @returns Markdown: the stages in their order, then the types.
 */
export function stageReference(page: string, values: string, table: string): string {
  const types = typesOf(values);
  const stages = stageNames.map((name) => {
    const [, about] = new RegExp(`^### ${name}\n\n(.+)\n`, 'm').exec(page) ?? [];
    if (about === undefined)
      throw new Error(`docs/stages.md has no heading "### ${name}" with a paragraph on the stage`);
    const stage = stageOf(name);
    return `### ${name}\n\n${about}\n\n**${stage.kind}**: ${policy(stage)}\n\n\`\`\`text\n${signature(name, types)}\n\`\`\`\n`;
  });
  const named = [...values.matchAll(/^export (?:interface|type) (\w+)/gm)].flatMap(([, name = '']) =>
    name === 'Values' ? [] : [declaration(values, name)],
  );
  const calls = ['AroundCall', 'Flight'].map((name) => declaration(table, name));
  return `## Stages\n\n${stages.join('\n')}\n## Types\n\n\`\`\`text\n${[...named, ...calls].join('\n\n')}\n\`\`\`\n`;
}
