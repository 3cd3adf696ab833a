/** The command `ask` before real services of one specification, and before one that lies, one that is dead and one of another. */
import assert from 'node:assert/strict';
import { after, describe, it, type TestContext } from 'node:test';
import { Interface, Wallet } from 'ethers';
import { stringify } from 'yaml';
import { dataOf } from '../support/quorum.ts';
import { answerBy } from '../support/receipts.ts';
import { type RunningService, serviceFor, startTestService } from '../support/service.ts';
import { startUpstream } from '../support/upstream.ts';
import { type Ended, folderWith, runCli } from './run.ts';

const QUORUM =
  'median((address node,bytes32 endpointId,uint256 timestamp,bytes data,bytes signature,bytes receiptSignature)[])';
const wallets = [1, 2, 3].map((n) => new Wallet(`0x${String(n).repeat(64)}`));
const signerOf = (n: number) => wallets[n]?.address ?? '';

const services: RunningService[] = [];
/** What prices wait for. */
let hold: Promise<void> | undefined;

function configFor(path = '/price') {
  const endpoint = { name: 'spot', path, parameters: [{ name: 'symbol', required: true }] };
  const endpoints = [{ ...endpoint, encoding: { type: 'int256', path: '$.price', times: '1e2' } }];
  const apis = [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints }];
  return { settings: { openapi: true }, apis };
}

const upstream = await startUpstream();
// Each request gets another price: -2064.25, then -2064.27, and so on.
let asked = 0;
upstream.on('/price', async (req, res) => {
  await hold;
  asked += 1;
  res.end(JSON.stringify({ price: -2064.23 - 0.02 * asked, of: req.url }));
});
for (const { privateKey } of wallets.slice(0, 2))
  services.push(await startTestService(configFor(), { env: { SERVICE_PRIVATE_KEY: privateKey } }));
const id = services[0]?.ids['prices/spot'] ?? '';
upstream.on(`/liar/endpoints/${id}`, async (_req, res) => {
  const unsigned = { endpointId: id, timestamp: Math.floor(Date.now() / 1000), parameters: {} };
  const [, , liar] = wallets;
  assert.ok(liar);
  res.end(JSON.stringify(await answerBy(liar, { ...unsigned, content: { data: dataOf(5n) } })));
});

after(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await upstream.close();
});

const from = (url: string, n: number) => ['--from', `${url}=${signerOf(n)}`];
const two = () => services.flatMap(({ url }, n) => from(url, n));
const liar = () => from(`${upstream.url}/liar`, 2);
const ask = (t: TestContext, ...args: string[]): Promise<Ended> => runCli(t, ['ask', ...args]);

function failed(message: string, ...more: string[]): Ended {
  return {
    code: more.length > 0 ? 2 : 1,
    signal: null,
    stdout: '',
    stderr: [message, ...more].map((line) => `error: ${line}\n`).join(''),
  };
}

describe('ask', () => {
  it('prints the median, the spread, and who failed; the name of the endpoint is what all operators say', async (t) => {
    upstream.requests.length = 0;
    // The liar is asked for its document and an answer, and has ended both.
    hold = upstream.until(() => upstream.requests.length === 4 && upstream.open === 2);
    const wanted = ['--endpoint', 'prices/spot', '--param', 'symbol=a=b', '--k', '2', '--max-deviation', '0.01'];
    const { code, stdout, stderr } = await ask(t, ...two(), ...liar(), ...wanted);
    assert.deepEqual([code, stderr], [0, '']);
    const paths = upstream.requests.filter(({ path }) => path.startsWith('/price')).map(({ path }) => path);
    assert.deepEqual(paths, ['/price?symbol=a%3Db', '/price?symbol=a%3Db']);
    const [value, spread, endpoint, head, ...rest] = stdout.trimEnd().split('\n');
    assert.deepEqual([value, endpoint], ['Value: -206426 (int256, the median of 2)', `Endpoint ID: ${id}`]);
    assert.equal(spread, 'Spread: 0.0009 %, from -206427 to -206425');
    assert.match(head ?? '', /^Operator +Signer +Timestamp +Value$/);
    assert.deepEqual(
      rest.slice(0, 2).map((line) => line.split(/ +/).slice(0, 2)),
      services.map(({ url }, n) => [url, signerOf(n)]),
    );
    assert.deepEqual(rest.slice(2), [
      `Failed: ${upstream.url}/liar (${signerOf(2)}): deviation: 5 is further than 0.01 of it from the median, -206425`,
    ]);
  });

  it('prints JSON with the calldata of a quorum contract', async (t) => {
    const { code, stdout } = await ask(
      t,
      ...two(),
      '--endpoint',
      id.toUpperCase().replace('0X', '0x'),
      '--param',
      'symbol=ETH',
      '--json',
    );
    const { ok, value, answers, failures, calldata } = JSON.parse(stdout);
    assert.deepEqual([code, ok, failures, answers.length], [0, true, [], 2]);
    const [structs] = new Interface([`function ${QUORUM}`]).decodeFunctionData('median', calldata);
    assert.deepEqual(
      [...structs].map(([node, , timestamp, data]) => [node, Number(timestamp), data]),
      answers.map(({ signer, timestamp, data }: Record<string, unknown>) => [signer, timestamp, data]),
    );
    const [low, high] = answers.map((answer: { value: string }) => BigInt(answer.value));
    assert.equal(BigInt(value), (low + high) / 2n);
  });

  it('ends with 2 where too few are good, and says why of each', async (t) => {
    const wrong = from(`${upstream.url}/liar`, 0);
    const args = [
      ...from(services[0]?.url ?? '', 0),
      ...from(`${upstream.url}/nothing`, 1),
      ...wrong,
      '--endpoint',
      id,
      '--param',
      'symbol=x',
    ];
    const failures = [
      [`${upstream.url}/nothing`, signerOf(1), 'status', 'the operator answered 404: no such route'],
      [`${upstream.url}/liar`, signerOf(0), 'node', `the response is signed by ${signerOf(2)}, not by ${signerOf(0)}`],
    ].map(([url, signer, reason, message]) => ({ url, signer, reason, message }));
    const lines = failures.map(({ url, signer, reason, message }) => `${url} (${signer}): ${reason}: ${message}`);
    const message = '1 good answers, and 2 are needed';
    assert.deepEqual(await ask(t, ...args), failed(message, ...lines));
    const { code, stdout } = await ask(t, ...args, '--json');
    assert.deepEqual([code, JSON.parse(stdout)], [2, { ok: false, errors: [{ message }], failures }]);
  });

  it('takes the ID of a name from a config file, or where the operators agree, and from nobody else', async (t) => {
    const other = await serviceFor(t, configFor('/other'), {
      env: { SERVICE_PRIVATE_KEY: wallets[2]?.privateKey ?? '' },
    });
    const wanted = ['--endpoint', 'prices/spot', '--param', 'symbol=x'];
    const ids = [...services, other].map((service) => `${service.url} ${service.ids['prices/spot']}`).join(', ');
    assert.deepEqual(
      await ask(t, ...two(), ...from(other.url, 2), ...wanted, '--k', '2'),
      failed(`prices/spot: the operators have different specifications of it: give the ID of one: ${ids}`),
    );
    assert.deepEqual(
      await ask(t, ...two(), ...liar(), ...wanted),
      failed(
        'prices/spot: 2 operators say its ID at /openapi.json, and 3 have to: give the ID, or a config file that has it (-c)',
      ),
    );
    const folder = await folderWith(t, {
      'config.yaml': stringify({ version: '1.0', server: { port: 0 }, ...configFor() }),
    });
    const file = `${folder}/config.yaml`;
    const { code } = await ask(t, ...two(), ...liar(), ...wanted, '--k', '2', '-c', file);
    assert.equal(code, 0);
    assert.deepEqual(
      await ask(t, ...two(), '--endpoint', 'prices/none', '-c', file),
      failed(`${file}: there is no endpoint prices/none`),
    );
  });

  it('says what is wrong with its options before it asks anybody', async (t) => {
    upstream.requests.length = 0;
    const id64 = `0x${'ab'.repeat(32)}`;
    const operatorRule =
      'option --from <url=address> must be the base of a service and the address that signs there, such as https://api.example.com=0x…';
    const cases: [string[], string][] = [
      [[], 'missing required option --from <url=address>'],
      [[...liar()], 'missing required option --endpoint <id|name>'],
      [['--from', upstream.url, '--endpoint', id64], operatorRule],
      [['--from', `ftp://x=${signerOf(0)}`, '--endpoint', id64], operatorRule],
      [
        [...liar(), '--endpoint', 'spot'],
        'option --endpoint <id|name> must be 0x and 64 hex digits, or <api>/<endpoint>',
      ],
      [
        [...liar(), '--endpoint', id64, '--param', 'symbol'],
        'option --param <name=text> must be a name and what to give it, such as symbol=ETH',
      ],
      [[...liar(), '--endpoint', id64, '--k', '1e1'], 'option --k <n> must be a whole number, 1 or more'],
      [
        [...liar(), '--endpoint', id64, '--k', '2'],
        'wrong options: k is 2, and operators have 1 different signers: add some',
      ],
      [
        [...liar(), '--endpoint', id64, '--max-deviation', '1%'],
        'option --max-deviation <fraction> must be from 0 to 1, such as 0.01',
      ],
      [[...liar(), '--endpoint', id64, '--k', '1', '--k', '2'], 'option --k <n> is given more than once'],
      [[...liar(), upstream.url, '--endpoint', id64], `unexpected argument "${upstream.url}"`],
    ];
    for (const [args, message] of cases) assert.deepEqual(await ask(t, ...args), failed(message));
    assert.equal(upstream.requests.length, 0);
  });
});
