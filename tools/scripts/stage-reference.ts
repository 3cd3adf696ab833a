import { type Kind, type Stage, type StageName, stageNames, stageOf } from '../../kernel/stages.ts';

/** When each stage is asked, and what for. */
const ABOUT: { readonly [N in StageName]: string } = {
  admit: 'a request has arrived at a route that asks for it, such as that of endpoints',
  route: 'a request is for a route of the plugin; registered with `routes`, not with `hooks`',
  resolve: 'which endpoint is meant by the id in the path',
  parseBody: 'what the client sent: the parameters, parsed',
  onHttpRequest: 'may the request go on',
  price:
    'what a request costs; one function for each price that an auth method names, asked while that method has its turn',
  authenticate: 'does the client pass this method; one function for each auth type',
  validate:
    'what is asked, before it is checked: operators’ functions come first, and built-in ones check what they leave',
  vary: 'a text that becomes part of every key; registered beside `hooks`',
  prepare: 'the question: all that is asked, as one value that nothing changes any more',
  present: 'when the rest of the pipeline runs and how its answer travels; one function for each mode',
  answer: 'the signed answer: `next` makes it, and `share` makes it once for all who wait',
  onBeforeApiCall: 'the parameters that go upstream',
  callApi: 'what the upstream says: `next` sends the request',
  onAfterApiCall: 'what the upstream said, to be changed',
  encode: 'what is signed and what is shown of it',
  encrypt: 'what is signed instead of the encoded bytes',
  onBeforeSign: 'the bytes that are signed',
  statements: 'typed data that is signed beside the answer; each becomes a member of it',
  sign: 'the signature; it is checked before anybody sees it',
  attest: 'somebody else’s word for the upstream',
  approve: 'may the signed answer go out; all are asked, and after a refusal its client does not see it',
  concluded: 'the outcome is certain and nobody has seen it',
  respond: 'headers of any response',
  onResponseSent: 'a signed answer is on its way',
  onError: 'a request was refused',
};

const KINDS: Readonly<Record<Kind, string>> = {
  gate: 'the first function that says something decides',
  pick: 'the first function that has a result provides it',
  around: 'each function has the next one inside it, operators’ outside and built-in ones inside',
  map: 'each function gets what the one before returned',
  watch: 'all functions are told, and what they return is ignored',
};

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
    fails === 'open' ? 'When one fails, the request goes on without it.' : 'When one fails, the request is refused.',
    ...(always ? ['The stage runs also after the client has left.'] : []),
    ...(required ? ['Some plugin has to provide a function.'] : []),
  ].join(' ');
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param values the text of `kernel/values.ts`. @param table that of `kernel/stages.ts`. @returns Markdown: the stages in their order, then the types. */
export function stageReference(values: string, table: string): string {
  const types = typesOf(values);
  const stages = stageNames.map((name) => {
    const stage = stageOf(name);
    return `### ${name}\n\n${sentence(ABOUT[name])}. **${stage.kind}**: ${KINDS[stage.kind]}. ${policy(stage)}\n\n\`\`\`text\n${signature(name, types)}\n\`\`\`\n`;
  });
  const named = [...values.matchAll(/^export (?:interface|type) (\w+)/gm)].flatMap(([, name = '']) =>
    name === 'Values' ? [] : [declaration(values, name)],
  );
  const calls = ['AroundCall', 'Flight'].map((name) => declaration(table, name));
  return `## Stages\n\n${stages.join('\n')}\n## Types\n\n\`\`\`text\n${[...named, ...calls].join('\n\n')}\n\`\`\`\n`;
}
