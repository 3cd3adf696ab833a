/** What contracts ask by ERC-3668 is answered as a client's request is, and refused so that clients try other gateways where those may answer. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { AbiCoder, Interface, keccak256 } from 'ethers';
import { ccipRead } from '../../builtins/ccip-read/index.ts';
import { testEndpoint, testPlugin } from '../../service/testing.ts';
import { auditLines } from '../support/audit.ts';
import { suite } from '../support/lifetime.ts';
import { requestHash, verifyReceipt } from '../support/receipts.ts';
import { served } from '../support/served.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

const SENDER = `0x${'5e'.repeat(20)}`;
const gateway = new Interface(['function ask(bytes32 endpointId, string parameters)']);
const ANSWER = ['address', 'bytes32', 'uint256', 'bytes', 'bytes', 'bytes'];
const ETHUSD = { symbol: 'ETHUSD' };
const callOf = (id: string | undefined, parameters = JSON.stringify(ETHUSD)) =>
  gateway.encodeFunctionData('ask', [id, parameters]);

const encoding = { type: 'int256', path: '$.price' };
const ENDPOINTS = {
  price: { encoding, parameters: [{ name: 'symbol' }], receipt: true },
  strict: { encoding, parameters: [{ name: 'symbol', required: true }] },
  plain: { encoding },
  raw: {},
  async: { encoding, mode: 'async' },
  stream: { encoding, mode: 'stream' },
  keyed: { encoding, auth: { type: 'apiKey', keys: ['valid'] } },
  either: { encoding, auth: [{ type: 'apiKey', keys: ['valid'] }, { type: 'free' }] },
  gone: { encoding },
  unwanted: { encoding },
};
const unwilling = `export default { name: 'unwilling', hooks: { onHttpRequest: ({ endpoint }) =>
  endpoint === 'unwanted' ? { reject: true, status: 403, message: 'Not today' } : undefined } };`;

describe('CCIP-Read', async () => {
  const { upstream, service } = await served(suite, ENDPOINTS, {
    answers: { '*': faults.json({ price: 2064 }), '/gone': faults.serverError() },
    sources: { unwilling },
    settings: { ccipRead: true, openapi: true, audit: { path: 'audit.jsonl' } },
    env: { LOG_FORMAT: 'json' },
  });

  const get = (data: string, { sender = SENDER, headers = {} } = {}) =>
    fetch(`${service.url}/ccip/${sender}/${data}.json`, { headers });
  const post = (body: string | Uint8Array, url = service.url) =>
    fetch(`${url}/ccip`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  const ask = (data: unknown, sender: unknown = SENDER) => post(JSON.stringify({ data, sender }));
  const idOf = (name: string) => service.ids[`api/${name}`];
  /** Status and text of a refusal, which is said twice. */
  const refusal = async (asked: Promise<Response>) => {
    const response = await asked;
    const { error, message, ...others } = JSON.parse(await response.text());
    assert.deepEqual([message, others], [error, {}]);
    return `${response.status} ${error}`;
  };
  const decoded = async (asked: Promise<Response>) => {
    const response = await asked;
    const { data, ...others } = JSON.parse(await response.text());
    assert.deepEqual([response.status, others], [200, {}]);
    const values = AbiCoder.defaultAbiCoder().decode(ANSWER, data);
    // Letter by letter what contracts' own encoder makes.
    assert.equal(data, AbiCoder.defaultAbiCoder().encode(ANSWER, [...values]));
    const [node, endpointId, timestamp, value, signature, receiptSignature] = values;
    return { node, endpointId, timestamp: Number(timestamp), data: value, signature, receiptSignature };
  };

  for (const [how, asked] of Object.entries({
    GET: (data: string) => get(data),
    'GET in capitals': (data: string) => get(data.toUpperCase().replace('X', 'x'), { sender: SENDER.toUpperCase() }),
    'GET with 0X': (data: string) => get(data.toUpperCase()),
    POST: (data: string) => ask(data),
    'POST in capitals': (data: string) => ask(data.toUpperCase()),
  })) {
    it(`answers ${how} with the answer that a contract checks, and its receipt`, async () => {
      const { receiptSignature, ...answer } = await decoded(asked(callOf(idOf('price'))));
      assert.equal(answer.data, AbiCoder.defaultAbiCoder().encode(['int256'], [2064]));
      const hashes = { requestHash: requestHash(ETHUSD), dataHash: keccak256(answer.data) };
      const receipt = { ...hashes, signature: receiptSignature };
      await verifyReceipt({ ...answer, receipt }, ETHUSD, TEST_ADDRESS);
      assert.equal(answer.endpointId, idOf('price'));
      assert.equal(upstream.requests.at(-1)?.path, '/price?symbol=ETHUSD');
    });
  }

  it('leaves the receipt empty of an endpoint that gives none, and needs no key where one of two ways is free', async () => {
    for (const name of ['plain', 'either']) {
      const { receiptSignature, ...answer } = await decoded(get(callOf(idOf(name), '{}')));
      assert.equal(receiptSignature, '0x');
      await verifyEncoded(answer, TEST_ADDRESS);
    }
  });

  it('is found by the X-Request-Id of its response: what was asked, in the log and in the audit record', async () => {
    const response = await get(callOf(idOf('plain'), '{}'));
    const id = response.headers.get('x-request-id');
    const linesOf = () =>
      service.logs.filter(({ message, fields }) => message === 'request' && fields.requestId === id);
    const [asked, outer] = await eventually(() => (linesOf().length > 1 ? linesOf() : undefined), 'both lines');
    const path = join(service.folder, 'audit.jsonl');
    const look = async () => (await auditLines(path)).find(({ requestId }) => requestId === id);
    const line = await eventually(look, 'the line of the audit record');
    const endpoints = [asked?.fields.endpoint, outer?.fields.endpoint, line.endpoint];
    assert.deepEqual(endpoints, ['api/plain', undefined, 'api/plain']);
    assert.equal(Object(asked?.fields.signed).digest, line.digest);
    assert.equal(outer?.fields.route, '/ccip/:sender/:data.json');
  });

  it('is for pages of other origins, also with a preflight', async () => {
    const headers = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'POST' };
    const preflight = await fetch(`${service.url}/ccip`, { method: 'OPTIONS', headers });
    const answered = await get(callOf(idOf('plain'), '{}'), { headers });
    assert.deepEqual([preflight.status, answered.status], [204, 200]);
    for (const response of [preflight, answered])
      assert.equal(response.headers.get('access-control-allow-origin'), '*');
  });

  it('lets no cache on the way keep an answer or a refusal', async () => {
    const asked = [get(callOf(idOf('plain'), '{}')), ask(callOf(idOf('plain'), '{}')), get('0x'), get('0x1')];
    for (const name of ['keyed', 'raw', 'gone', 'unwanted']) asked.push(get(callOf(idOf(name))));
    asked.push(get(callOf(`0x${'00'.repeat(32)}`)));
    for (const response of asked) assert.equal((await response).headers.get('cache-control'), 'no-store');
  });

  describe('refuses, so that clients stop,', () => {
    const args = () => callOf(idOf('price')).slice(10);
    const selector = callOf(`0x${'00'.repeat(32)}`).slice(0, 10);
    const WRONG = {
      sender: '400 sender must be an address: 0x and 40 hex digits',
      data: '400 data must be bytes: 0x and an even number of hex digits',
      body: '400 Request body must be {"data": "0x…", "sender": "0x…"}',
      selector: '404 Unknown selector: data must call ask(bytes32,string)',
      call: '400 data must be the ABI encoding of ask(bytes32 endpointId, string parameters)',
      parameters: '400 parameters must be the text of a JSON object, without numbers of more digits than a double has',
      closed: '403 The endpoint needs a key or a payment, and contracts have neither',
      unfit: '400 The endpoint is not for contracts: they need mode sync, an encoding and no encrypt',
    };

    it('a sender that is no address', async () => {
      for (const sender of ['0x', `${SENDER}00`, SENDER.slice(2), 'vitalik.eth', 7, null, [SENDER]])
        assert.equal(await refusal(ask(callOf(idOf('price')), sender)), WRONG.sender);
      assert.equal(await refusal(get(callOf(idOf('price')), { sender: 'me' })), WRONG.sender);
    });

    it('data that is no hex', async () => {
      for (const data of [`${selector}0`, `${selector}zz`, '1234', '', 7, null, [selector], { toLowerCase: '0x' }])
        assert.equal(await refusal(ask(data)), WRONG.data);
      assert.equal(await refusal(get('0x1')), WRONG.data);
      assert.equal(await refusal(get('%00')), WRONG.data);
    });

    it('another function, or none', async () => {
      for (const data of ['0x', '0x12345678', `0x00000000${args()}`, selector.slice(0, 8)])
        assert.equal(await refusal(ask(data)), WRONG.selector);
      assert.equal(await refusal(get('0x')), WRONG.selector);
    });

    it('arguments that no encoder makes', async () => {
      const word = (value: number) => value.toString(16).padStart(64, '0');
      const max = 'f'.repeat(64);
      const id = '11'.repeat(32);
      const head = `${id}${word(0x40)}`;
      for (const wrong of [
        ...['', args().slice(2), `${args()}00`],
        ...[head, `${id}${word(0x60)}${word(0)}${word(0)}`, `${id}${max}${word(0)}`],
        ...[`${head}${max}`, `${head}${word(1e9)}7b7d`],
        ...['7b7d'.padEnd(64, '1'), ...['ff7d', 'c080'].map((text) => text.padEnd(64, '0'))].map(
          (text) => `${head}${word(2)}${text}`,
        ),
      ])
        assert.equal(await refusal(ask(`${selector}${wrong}`)), WRONG.call);
    });

    it('parameters that are no JSON object, or lose digits', async () => {
      for (const text of ['', 'null', '[]', '"a"', '{', '{"a":1e999}', '{"a":12345678901234567890}', '{a:1}'])
        assert.equal(await refusal(ask(callOf(idOf('price'), text))), WRONG.parameters);
      const deep = `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`;
      assert.equal(await refusal(ask(callOf(idOf('price'), deep))), '400 Request body is nested too deeply');
    });

    it('a body that is none', async () => {
      for (const body of ['', '{', new Uint8Array([0x22, 0xff, 0x22])])
        assert.equal(await refusal(post(body)), WRONG.body);
      for (const body of ['[]', 'null', '7', '{}', '{"data":"0x"}'])
        assert.equal(await refusal(post(body)), WRONG.sender);
      const long = await post(`{"data":"0x${'00'.repeat(40_000)}","sender":"${SENDER}"}`);
      assert.deepEqual([long.status, await long.json()], [413, { error: 'Request body too large' }]);
    });

    it('endpoints that need a key, also with one, before anything is asked', async () => {
      const headers = { 'X-Api-Key': 'valid' };
      const { length } = upstream.requests;
      assert.equal(await refusal(get(callOf(idOf('keyed')), { headers })), WRONG.closed);
      assert.equal((await service.post('api/keyed', {}, headers)).status, 200);
      assert.equal(upstream.requests.length, length + 1);
    });

    it('endpoints whose answers come later, in pieces, or without an encoding', async () => {
      for (const name of ['raw', 'async', 'stream']) assert.equal(await refusal(get(callOf(idOf(name)))), WRONG.unfit);
    });

    it('an endpoint that is not there, and what its endpoint refuses', async () => {
      assert.equal(await refusal(get(callOf(`0x${'00'.repeat(32)}`))), '404 Endpoint not found');
      assert.equal(await refusal(get(callOf(idOf('strict'), '{}'))), '400 Missing required parameter(s): symbol');
    });

    it('other paths', async () => {
      for (const path of ['/ccip', `/ccip/${SENDER}`, `/ccip/${SENDER}/0x`, `/ccip/${SENDER}/0x/a.json`])
        assert.match(await (await fetch(service.url + path)).text(), /^\{"error":"(Not Found|Method Not Allowed)"\}$/);
    });
  });

  it('refuses, so that clients go on, what fails and what an operator does not want', async () => {
    assert.equal(await refusal(get(callOf(idOf('gone')))), '502 API call failed');
    assert.equal(await refusal(get(callOf(idOf('unwanted')))), '503 Not today');
  });

  const limit = (t: TestContext, max: number, endpoint: object) => {
    const rest = { server: { rateLimit: { max, window: 3_600_000 } }, settings: { ccipRead: true } };
    return serviceFor(t, oneApi(upstream.url, { e: { encoding, ...endpoint } }, rest));
  };
  const calling = (data: string) => JSON.stringify({ data, sender: SENDER });

  it('takes from the limit of its client once for each question, and says when to ask again', async (t) => {
    const limited = await limit(t, 2, {});
    const body = calling(callOf(limited.ids['api/e'], '{}'));
    assert.equal((await post(body, limited.url)).status, 200);
    assert.equal((await limited.post('api/e')).status, 200);
    const full = await post(body, limited.url);
    assert.deepEqual([full.status, full.headers.get('retry-after')], [503, '1800']);
    assert.deepEqual(await full.json(), { error: 'Too Many Requests', message: 'Too Many Requests' });
    assert.equal((await limited.post('api/e')).status, 429);
  });

  it('takes from that limit for a question that is wrong, too', async (t) => {
    const limited = await limit(t, 4, { auth: { type: 'apiKey', keys: ['valid'] } });
    const closed = calling(callOf(limited.ids['api/e'], '{}'));
    const unknown = calling('0x12345678');
    const statuses = [];
    for (const body of ['{', '{}', unknown, closed, closed, unknown]) {
      const { status, headers } = await post(body, limited.url);
      statuses.push([status, headers.get('retry-after')]);
    }
    const inLimit = [400, 400, 404, 403].map((status) => [status, null]);
    assert.deepEqual(statuses, [...inLimit, [503, '900'], [503, '900']]);
  });

  it('is described, with who can be asked and who needs a key', async () => {
    const { paths } = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const open = ['price', 'strict', 'plain', 'either', 'gone', 'unwanted'].map((name) => `\`api/${name}\``);
    const closed = 'The endpoint needs a key or a payment, even of a client that sends one: `api/keyed`';
    for (const { responses } of [paths['/ccip'].post, paths['/ccip/{sender}/{data}.json'].get]) {
      assert.equal(responses[200].description, `Contracts can ask: ${open.join(', ')}`);
      assert.equal(responses[403].description, closed);
      for (const status of [502, 503]) assert.ok(responses[status].content['application/json'].examples);
    }
  });

  it('is off unless the config says so', async (t) => {
    const off = await serviceFor(t, oneApi(upstream.url, { plain: {} }, { settings: { openapi: true } }));
    assert.equal((await post('{}', off.url)).status, 404);
    const { paths } = JSON.parse(await (await fetch(`${off.url}/openapi.json`)).text());
    assert.ok(!Object.keys(paths).some((path) => path.startsWith('/ccip')));
  });
});

it('a fault of the service is none of the client, whatever its kind', async () => {
  const [endpoint] = [testEndpoint({ block: { encoding } })];
  const ask = () => Promise.reject(new TypeError('a fault of the service'));
  const services = { config: { settings: { ccipRead: true } }, endpoints: [endpoint], ask };
  const harness = await testPlugin(ccipRead, { services });
  const body = JSON.stringify({ sender: SENDER, data: callOf(endpoint.id) });
  const outcome = await harness.run('route', { route: 'POST /ccip', body });
  assert.deepEqual(outcome, { refused: { status: 500, message: 'Internal server error' } });
});
