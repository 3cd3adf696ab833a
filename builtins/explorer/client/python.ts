import { type Code, variableOf } from './code.ts';

const POLL = `answer = json.loads(text)
poll = urllib.parse.urljoin(url, "../" + answer["pollUrl"].lstrip("/"))
while answer["status"] != "complete":
    if answer["status"] == "failed":
        raise SystemExit(answer["error"])
    time.sleep(1)
    with urllib.request.urlopen(poll) as response:
        answer = json.load(response)`;

const READ: Readonly<Record<string, string>> = {
  stream: 'answer = json.loads(text.removeprefix("data: "))',
  async: POLL,
};

function valueCode({ endpoint: { encoding }, asked: { types = '' } }: Code): string {
  if (encoding === undefined) return 'answer["rawData"]';
  const [, unsigned] = /^(u?)int\d+$/.exec(types) ?? [];
  if (unsigned === undefined) return 'answer["data"]';
  const signed = unsigned === '' ? ', signed=True' : '';
  return `int.from_bytes(bytes.fromhex(answer["data"][2:]), "big"${signed})`;
}

/** A program for Python's own library, which cannot check a signature. */
export function pythonOf(code: Code): string {
  const { endpoint, asked, url } = code;
  const fields = [
    '"Content-Type": "application/json"',
    ...Object.keys(asked.headers).map((name) => `${JSON.stringify(name)}: os.environ["${variableOf(name)}"]`),
  ];
  return `import json, os, time, urllib.error, urllib.parse, urllib.request

url = ${JSON.stringify(url)}
body = ${JSON.stringify(asked.body)}
headers = {${fields.join(', ')}}
try:
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)) as response:
        text = response.read().decode()
except urllib.error.HTTPError as error:
    raise SystemExit(f"{error.code} {error.read().decode()} (request {error.headers['X-Request-Id']})")
${READ[endpoint.mode] ?? 'answer = json.loads(text)'}

# Nothing here checks the signature: Python's own library cannot. Check it before you rely on the value.
print(${valueCode(code)})
`;
}
