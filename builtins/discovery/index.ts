import { definePlugin, type Endpoint, JsonText, type Route } from '../../plugins-sdk/index.ts';
import type { OpenApiObject } from '../../plugins-sdk/openapi.ts';
import { bodySchemaOf, memberAt, namesOf, operationOf, sentenceOf } from '../shared/described.ts';
import { detailsOf, discoveryKey, isSold, openapiKey, publicUrlOf, tagsKey } from '../shared/discovery.ts';
import { guideRoute, soldRoute } from './openapi.ts';

type Config = Readonly<Record<string, unknown>>;

function urlOf(endpoint: Endpoint, config: Config): string {
  return `${publicUrlOf(endpoint, config)}/endpoints/${endpoint.id}`;
}

/** Writes a text of the config in one line, so that it begins no link, heading or list in Markdown. */
function oneLine(text: unknown): string {
  return String(text)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .replace(/[[\]<>`]/g, '\\$&')
    .trim();
}

/** Describes what a request needs for admission: credentials, a payment, or nothing. */
function accessTo(operation: unknown): string {
  const price = memberAt(operation, 'x-payment-info', 'price');
  const amounts = [memberAt(price, 'amount'), memberAt(price, 'min'), memberAt(price, 'max')].filter(Boolean);
  const security = memberAt(operation, 'security');
  const schemes = Array.isArray(security) ? security.flatMap((one) => Object.keys(one)) : [];
  const paid = amounts.length === 0 ? 'paid by x402' : `${amounts.join(' to ')} USD by x402`;
  const ways = [...schemes.map((name) => `credentials (${name})`), ...(price === undefined ? [] : [paid])];
  return ways.length === 0 ? 'free' : ways.join(' or ');
}

function lineOf(document: OpenApiObject, endpoint: Endpoint, config: Config): string {
  const operation = operationOf(document, endpoint);
  const schema = memberAt(bodySchemaOf(document, endpoint), 'properties', 'parameters');
  const required = memberAt(schema, 'required');
  const names = Object.keys(Object(memberAt(schema, 'properties')));
  const said = names.map((name) => (Array.isArray(required) && required.includes(name) ? `${name} (required)` : name));
  const parameters = names.length === 0 ? 'none' : said.map(oneLine).join(', ');
  const title = oneLine(`${endpoint.api}/${endpoint.name}`);
  const about = sentenceOf(oneLine(memberAt(operation, 'description')));
  return `- [${title}](${urlOf(endpoint, config)}): ${about} Access: ${accessTo(operation)}. Parameters: ${parameters}.`;
}

/** Makes the text of `/llms.txt` (https://llmstxt.org). */
function guide(document: OpenApiObject, listed: readonly Endpoint[], config: Config): string {
  const { info, servers } = detailsOf(config);
  const { title, description } = info;
  const isDescribed = (openapiKey.in(config) ?? false) !== false;
  return [
    `# ${oneLine(title ?? 'Signed-data proxy')}`,
    ...(description === undefined ? [] : [`> ${oneLine(description)}`]),
    'Ask an endpoint by `POST` with `{"parameters": {…}}` as JSON. Its answer is signed (EIP-191) by `node`, which `GET /health` names: pin it. ' +
      'Where a request is to be paid, the answer is `402` with what to pay (x402, version 2); nothing is taken unless there is an answer.',
    '## Endpoints',
    listed.map((endpoint) => lineOf(document, endpoint, config)).join('\n'),
    ...(isDescribed
      ? ['## Documents', `- [OpenAPI](${servers[0] ?? ''}/openapi.json): every endpoint, with schemas`]
      : []),
  ]
    .join('\n\n')
    .concat('\n');
}

/** Returns the endpoints for the catalogue and for the guide: the paid ones, all, or none. */
function listsOf(endpoints: readonly Endpoint[], config: Config) {
  const chosen = discoveryKey.in(config);
  const sold = chosen === false ? [] : endpoints.filter(isSold);
  return { sold, guided: chosen === true ? endpoints : sold };
}

function recommend(endpoints: readonly Endpoint[], config: Config): string | undefined {
  const unknown = listsOf(endpoints, config).sold.filter((endpoint) => publicUrlOf(endpoint, config) === '');
  if (unknown.length === 0) return undefined;
  return `publicUrl for ${namesOf(unknown)}: catalogues list nothing without its URL (settings.discovery: false: not wanted)`;
}

/** Serves `GET /.well-known/x402` for catalogues and `GET /llms.txt` for agents. */
export const discovery = definePlugin({
  name: 'discovery',
  keys: [discoveryKey, tagsKey],
  recommend,
  openapi: ({ config, endpoints }) => {
    const { sold, guided } = listsOf(endpoints, config);
    return { routes: [...(sold.length > 0 ? [soldRoute] : []), ...(guided.length > 0 ? [guideRoute] : [])] };
  },
  setup({ config, endpoints, describe }) {
    const { sold, guided } = listsOf(endpoints, config);
    if (guided.length === 0) return {};
    const known = JsonText.stringify({ version: 1, resources: sold.map((endpoint) => urlOf(endpoint, config)) });
    const text = guide(describe().document, guided, config);
    const headers = { 'Content-Type': 'text/plain; charset=utf-8' };
    const serve = (path: string, handle: Route['handle']): Route => ({ method: 'GET', path, admit: true, handle });
    return {
      routes: [
        ...(sold.length > 0 ? [serve(soldRoute.path, () => ({ status: 200, body: known }))] : []),
        serve(guideRoute.path, () => ({ status: 200, headers, body: text })),
      ],
    };
  },
});
