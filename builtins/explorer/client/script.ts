import { type Code, variableOf } from './code.ts';

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

/** A module for Node that asks, checks who signed, and prints the value. */
export function javascriptOf(code: Code): string {
  const { endpoint, asked, url, node } = code;
  const { body, headers, parameters } = asked;
  const fields = [
    `'Content-Type': 'application/json'`,
    ...Object.keys(headers).map((name) => `${JSON.stringify(name)}: process.env.${variableOf(name)}`),
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
