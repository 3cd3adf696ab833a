/** What the service sends by an imported config, before a server that validates it by the document: prism, a process of its own. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { importDocument } from '../../cli/import/index.ts';
import { readDocument } from '../../cli/import/read.ts';
import { apiBlock } from '../../cli/import/write.ts';
import { installed } from '../../tools/scripts/installed.ts';
import { launch, PACKAGE_ROOT } from '../cli/run.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const examples = join(PACKAGE_ROOT, 'node_modules/@readme/oas-examples');

/** A value that fits the schema of a parameter. */
function sample({ type, items, enum: [only] = [], minimum = 1, exclusiveMinimum = minimum - 1 }: Sampled): unknown {
  if (only !== undefined) return only;
  if (type === 'integer' || type === 'number') return Math.max(minimum, exclusiveMinimum + 1);
  if (type === 'boolean') return true;
  return type === 'array' ? [sample(items ?? {})] : 'abc';
}
interface Sampled {
  readonly type?: unknown;
  readonly items?: Sampled;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
}

/** The endpoints of a document's config, asked each through a real service; what prism said of the requests. */
async function verdicts(t: TestContext, document: string, methods: readonly string[]): Promise<Record<string, string>> {
  const prism = join(installed('tools/scripts/prism'), 'node_modules/@stoplight/prism-cli/dist/index.js');
  const { output } = launch(t, process.execPath, [prism, 'mock', '-p', '0', document]);
  const [, url = ''] = await output(/listening on (http:\/\/[\w.:]+)/);
  const said: Record<string, string> = {};
  const between = await upstreamFor(t, {
    '*': async (_req, res, { method, path, headers, body }) => {
      const sent = {
        accept: 'application/json',
        ...Object.fromEntries(Object.entries(headers).map(([k, v]) => [k, String(v)])),
      };
      const { host: _, connection: __, ...rest } = sent as Record<string, string>;
      const answer = await fetch(`${url}${path}`, { method, headers: rest, ...(body !== '' && { body }) });
      const found = JSON.parse(answer.headers.get('sl-violations') ?? '[]') as {
        location: string[];
        message: string;
      }[];
      const wrong = found.filter(({ location: [where] }) => where === 'request').map(({ message }) => message);
      said[`${method} ${path}`] =
        answer.status === 404 || wrong.length > 0 ? `${answer.status} ${wrong.join()}` : 'valid';
      res.end('{}');
    },
  });
  const wants = (method: string) => methods.includes(method);
  const { apis } = await importDocument(await readDocument(document), {
    url: between.url,
    wants,
  });
  const open = apis.map((api) => ({ ...apiBlock(api), auth: { type: 'free' } }));
  const names = new Set(JSON.stringify(open).match(/(?<=\$\{)\w+/g));
  const env = Object.fromEntries([...names].map((name) => [name, 'Zm9vOmJhcg==']));
  const service = await serviceFor(t, { apis: open }, { env });
  for (const { name, endpoints } of apis)
    for (const endpoint of endpoints) {
      const needed = (endpoint.parameters ?? []).filter(({ required }) => required === true);
      const parameters = needed.map((each) => [each.name, sample((each.schema ?? {}) as Sampled)]);
      await service.post(`${name}/${endpoint.name}`, Object.fromEntries(parameters));
    }
  return said;
}

// To prism a document of Swagger that names no media type takes no body, to everybody else JSON.
for (const [name, ...methods] of [
  ['3.0/json/petstore.json', 'GET', 'POST'],
  ['3.1/json/petstore.json', 'GET', 'POST'],
  ['2.0/json/petstore.json', 'GET'],
] as const)
  it(`requests by the config of ${name} are valid by the document`, { timeout: 300_000 }, async (t) => {
    const said = await verdicts(t, join(examples, name), methods);
    assert.ok(Object.keys(said).length >= 7, Object.keys(said).join());
    const invalid = Object.entries(said).filter(([, verdict]) => verdict !== 'valid');
    assert.deepEqual(invalid, []);
  });
