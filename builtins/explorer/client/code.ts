import type { PublicEndpoint } from '../endpoint.ts';
import type { Asked } from './request.ts';

/** The parts that code for a request is made of. */
export interface Code {
  readonly endpoint: PublicEndpoint;
  readonly asked: Asked;
  /** Names of the headers with credentials. Code never shows their values. */
  readonly headers: readonly string[];
  readonly url: string;
  /** The expected signer. */
  readonly node: string;
}

/** Returns the name of the environment variable for a credential, so that code can be shown to others. */
function variableOf(header: string): string {
  return header.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
}

/** Quotes a text for a shell: inside single quotes, only the quote itself is special. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Returns the request as a shell command. */
export function curlOf({ url, asked, headers }: Code): string {
  const words = [
    `curl -sS ${quoted(url)}`,
    `-H ${quoted('Content-Type: application/json')}`,
    ...headers.map((name) => `-H "${name}: $${variableOf(name)}"`),
    `-d ${quoted(asked.body)}`,
  ];
  return words.join(' \\\n  ');
}

const POLL = `let answer = JSON.parse(text);
const poll = new URL('../' + answer.pollUrl.replace(/^\\//, ''), url);
while (answer.status !== 'complete') {
  if (answer.status === 'failed') throw new Error(answer.error);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  answer = await (await fetch(poll)).json();
}`;

const READ: Readonly<Record<string, string>> = {
  stream: "const answer = JSON.parse(text.replace('data: ', ''));",
  async: POLL,
};

function valueCode({ endpoint: { encoding }, asked: { types = '', times } }: Code): string {
  if (encoding === undefined) return 'JSON.parse(verified.json)';
  const factor = times === undefined ? '' : ` /* × ${times.replaceAll('*/', '')} */`;
  if (/^uint\d+$/.test(types)) return `BigInt(verified.data)${factor}`;
  return /^int\d+$/.test(types) ? `BigInt.asIntN(256, BigInt(verified.data))${factor}` : 'verified.data';
}

/** Returns a module for Node.js that sends the request, checks the signer and prints the value. */
export function javascriptOf(code: Code): string {
  const { endpoint, asked, headers, url, node } = code;
  const { body, parameters } = asked;
  const fields = [
    `'Content-Type': 'application/json'`,
    ...headers.map((name) => `${JSON.stringify(name)}: process.env.${variableOf(name)}`),
  ];
  const wanted = [
    `node: ${JSON.stringify(node)}`,
    `endpointId: '${endpoint.id}'`,
    'maxAge: 600',
    ...(parameters === undefined ? [] : [`parameters: ${JSON.stringify(parameters)}`]),
  ];
  return `import { verifyResponse } from 'signed-data-proxy/verify';

const url = ${JSON.stringify(url)};
const response = await fetch(url, {
  method: 'POST',
  headers: { ${fields.join(', ')} },
  body: ${JSON.stringify(body)},
});
const text = await response.text();
if (!response.ok) throw new Error(\`\${response.status} \${text} (request \${response.headers.get('X-Request-Id')})\`);
${READ[endpoint.mode] ?? 'const answer = JSON.parse(text);'}

const verified = verifyResponse(answer, {
  ${wanted.join(',\n  ')},
});
if (!verified.ok) throw new Error(verified.message);
console.log(${valueCode(code)});
`;
}
